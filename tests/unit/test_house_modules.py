"""House rules that no linter knows: short modules, mirrored tests, no loose ends."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "inspector"
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = MODULES + sorted({*(ROOT / "tests").rglob("*.py")} - {Path(__file__)})  # this one names them
MOST_LINES = 400

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


def has_code(path: Path) -> bool:
    """Whether anything in a module runs: data classes and protocols are tested where they are used."""
    return any(
        isinstance(node, ast.FunctionDef) and not all(isinstance(line, ast.Expr) for line in node.body)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def wants_mirror(path: Path) -> bool:
    return "gui" not in path.relative_to(PACKAGE).parts and has_code(path)


def mirrors(path: Path) -> list[Path]:
    """The test modules of a module: tests/unit/pickles/test_machine[_*].py for pickles/machine.py."""
    below = path.relative_to(PACKAGE)
    stem = below.parent.name if path.stem == "__init__" else path.stem.strip("_")
    folder = ROOT / "tests" / "unit" / below.parent
    return [*folder.glob(f"test_{stem}.py"), *folder.glob(f"test_{stem}_*.py")]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", [path for path in MODULES if wants_mirror(path)], ids=name)
def test_module_has_tests_of_its_own(path: Path) -> None:
    assert bool(mirrors(path)) != (name(path) in UNMIRRORED)


def test_table_of_modules_without_tests_is_true() -> None:
    assert set(UNMIRRORED) <= {name(path) for path in MODULES}
    assert all(UNMIRRORED.values())


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_only_the_command_line_and_the_worker_print(path: Path) -> None:
    if {"cli", "worker"} & {part.removesuffix(".py") for part in path.relative_to(PACKAGE).parts}:
        return
    calls = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
    ]
    assert not [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_loose_ends(path: Path) -> None:
    assert not [line for line in path.read_text(encoding="utf-8").splitlines() if LOOSE.search(line)]
