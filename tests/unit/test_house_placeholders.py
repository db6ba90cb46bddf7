"""What is printed can be pasted: no text asks its reader to put a name in the place of FILE or OUT.

Help texts of the command line speak of the words in its usage, and are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "inspector"
_SHOUTED = re.compile(r"\b(?:FILE|OUT)\b")
_COMMAND = re.compile(r"\b(?:checkpoint-inspector|remap|recover|snippet|show|check) (?=[A-Z]{3,}\b)")


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text of a module that is no docstring, and no help of an option."""
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument"):
            left_out |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.lineno, node.value


def asked(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.rglob("*.py")):
        code = path.read_text(encoding="utf-8")
        if not (_SHOUTED.search(code) or _COMMAND.search(code)):
            continue
        for line, text in texts(ast.parse(code)):
            if _SHOUTED.search(text) or _COMMAND.search(text):
                found.append(f"{path.relative_to(folder)}:{line}: {text}")
    return found


@pytest.mark.wide
def test_no_text_holds_a_place_to_be_filled_in() -> None:
    assert asked(PACKAGE) == []


def test_such_a_text_is_seen(tmp_path: Path) -> None:
    lines = ('"""Not this FILE."""', 'x = f"show FILE {y}"', 'z = "-o OUT"', 'add_argument("f", help="FILE")')
    (tmp_path / "a.py").write_text("\n".join(lines))
    assert sorted(row.partition(": ")[0] for row in asked(tmp_path)) == ["a.py:2", "a.py:3"]
