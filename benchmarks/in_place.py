"""How long a change in place takes in a running program, in seconds: `python in_place.py FILE RULE RUNS`."""

from __future__ import annotations

import statistics
import sys
import time

from inspector.model.build import open_checkpoint
from inspector.remap.in_place import patch_in_place, undo_patch
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule

path, rule, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
plan = plan_remap(open_checkpoint(path), [parse_rule(rule)])
seconds = []
for _ in range(runs + 1):  # the first loads what is loaded when it is needed
    started = time.perf_counter()
    patch_in_place(path, plan)
    seconds.append(time.perf_counter() - started)
    undo_patch(path)
print(statistics.median(seconds[1:]))
