"""House rules that no linter knows: who prints, no loose ends, no clocks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "inspector"
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = MODULES + sorted({*(ROOT / "tests").rglob("*.py")} - {Path(__file__)})  # this one names them

LOOSE = re.compile(
    r"\b(TODO|FIXME|XXX)\b"
    r"|# type: ignore(?!\[)"  # an ignore says what it ignores
    r"|# noqa(?!: )"
    r"|pragma: no (cover|branch)(?! - )"  # and a gap in the coverage why it is there
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prints(path: Path) -> bool:
    calls = [
        node.func
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
    return any(isinstance(func, ast.Name) and func.id == "print" for func in calls)


@pytest.mark.wide
def test_only_the_command_line_and_the_worker_print() -> None:
    printing = [path.relative_to(PACKAGE) for path in MODULES if prints(path)]
    assert {path.parts[0] for path in printing} <= {"cli", "worker"}


@pytest.mark.wide
def test_no_loose_ends() -> None:
    assert {
        f"{name(path)}:{number}": line
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if LOOSE.search(line)
    } == {}


CLOCKS = re.compile(r"\b(perf_counter|thread_time|process_time|monotonic)\b")

# Tests that may name a clock, each with the reason.
WITH_A_CLOCK = {
    "tests/end2end/screen.py": "waits for a window, and gives up at last",
    "tests/fuzz/fuzzing.py": "throws bytes for as long as it is told",
    "tests/hanging.py": "ends what hangs",
    "tests/hostile/running.py": "measures for `make hostile`",
    "tests/torch/test_snippets_distributed.py": "ends children that wait for each other",
    "tests/unit/pickles/test_machine.py": "puts a clock of its own in the place of the thread's",
    "tests/unit/test_limits.py": "a limit on time is told by a clock",
}


@pytest.mark.wide
def test_no_test_looks_at_a_clock() -> None:
    found = {name(path) for path in SOURCES if path not in MODULES and CLOCKS.search(path.read_text("utf-8"))}
    assert found == set(WITH_A_CLOCK)
