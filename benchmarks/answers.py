"""How long an open window waits for each of its answers: `python answers.py FILE RUNS`.

The window asks for them anew on each change of the device map or of the target, so each should come within a
keystroke. Prints the median seconds of each as JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.paste import MOST_CHARS
from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.remap.describe import describe_plan
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from inspector.report.tree import build_tree
from inspector.safety.verdict import judge
from inspector.snippet.styles.table import render, styles
from inspector.target.call import LoadCall
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import first_failure

path, runs = sys.argv[1], int(sys.argv[2])
checkpoint = open_checkpoint(path)
safety = judge(checkpoint)
rules = [parse_rule("*=cpu")]
plan = plan_remap(checkpoint, rules)
# A text that brings the patterns for errors to their worst, as long as is looked at.
pasted = ("aError: " * (MOST_CHARS // 8))[:MOST_CHARS]

ANSWERS: dict[str, Callable[[], object]] = {
    "tree": lambda: build_tree(checkpoint, {}),
    "plan of a device map": lambda: plan_remap(checkpoint, rules),
    "description of that plan": lambda: describe_plan(checkpoint, plan),
    "forecast of `torch.load`": lambda: first_failure(checkpoint, CPU_ONLY, LoadCall(weights_only=False)),
    "findings": lambda: diagnose(checkpoint, safety, CPU_ONLY),
    "code in all styles": lambda: [
        render(checkpoint, style=style.id, target=CPU_ONLY) for style in styles(checkpoint)
    ],
    "explanation of the longest error text": lambda: explain_error(pasted, checkpoint),
}


def forget() -> None:
    """Take another checkpoint of the same rows: `inspector.model.once` remembers answers by identity."""
    global checkpoint  # noqa: PLW0603 - the answers look it up
    checkpoint = replace(checkpoint)


def seconds(work: Callable[[], object]) -> float:
    """Measure several times, after once for what is imported on the first call only."""
    work()
    taken = []
    for _ in range(runs):
        forget()
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


print(json.dumps({name: seconds(work) for name, work in ANSWERS.items()}))
