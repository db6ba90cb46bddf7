"""House rules that no linter knows: short modules, mirrored tests, no loose ends."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "inspector"
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = MODULES + sorted({*(ROOT / "tests").rglob("*.py")} - {Path(__file__)})  # this one names them
MOST_LINES = 400
MOST_MODULES = 15

LOOSE = re.compile(
    r"\b(TODO|FIXME|XXX)\b"
    r"|# type: ignore(?!\[)"  # an ignore says what it ignores
    r"|# noqa(?!: )"
    r"|pragma: no (cover|branch)(?! - )"  # and a gap in the coverage why it is there
)

# Modules without a test module of the same name, each with the reason.
UNMIRRORED: dict[str, str] = {}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Facts(NamedTuple):
    """What a module does.

    Attributes:
        has_code: Whether anything in it runs: data classes and protocols are tested where they are used.
        prints: Whether it writes to the standard output.
    """

    has_code: bool
    prints: bool


@functools.cache
def facts(path: Path) -> Facts:
    """Parse a module, which takes as long as a test, once for all tests."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    names = [node.func for node in nodes if isinstance(node, ast.Call)]
    return Facts(
        has_code=any(not all(isinstance(line, ast.Expr) for line in node.body) for node in functions),
        prints=any(isinstance(name, ast.Name) and name.id == "print" for name in names),
    )


def wants_mirror(path: Path) -> bool:
    return "gui" not in path.relative_to(PACKAGE).parts and facts(path).has_code


def mirrors(path: Path) -> list[Path]:
    """The test modules of a module: tests/unit/pickles/test_machine[_*].py for pickles/machine.py."""
    below = path.relative_to(PACKAGE)
    stem = below.parent.name if path.stem == "__init__" else path.stem.strip("_")
    folder = ROOT / "tests" / "unit" / below.parent
    return [*folder.glob(f"test_{stem}.py"), *folder.glob(f"test_{stem}_*.py")]


def test_modules_can_be_read_in_one_sitting() -> None:
    lines = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_folders_can_be_seen_at_a_glance() -> None:
    counts = Counter(name(path.parent) for path in MODULES)
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


@pytest.mark.wide
def test_modules_have_tests_of_their_own() -> None:
    wanting = [path for path in MODULES if wants_mirror(path)]
    assert [name(path) for path in wanting if bool(mirrors(path)) == (name(path) in UNMIRRORED)] == []


def test_table_of_modules_without_tests_is_true() -> None:
    assert set(UNMIRRORED) <= {name(path) for path in MODULES}
    assert all(UNMIRRORED.values())


@pytest.mark.wide
def test_only_the_command_line_and_the_worker_print() -> None:
    printing = [path.relative_to(PACKAGE) for path in MODULES if facts(path).prints]
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
