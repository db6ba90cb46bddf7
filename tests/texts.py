"""List the texts that a user can meet: `python -m tests.texts [FOLDER ...]`, to be read from top to bottom.

Without a folder, the texts that are worded in one place for all, and those of errors where they are raised.
With folders of `inspector/` (`diagnose`, `gui`, ...), all that reads like prose in them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "inspector"
WORDS = ("report/words", "containers/notes.py", "pickles/oddities.py", "model/obstacles.py", "safety")
_PROSE = re.compile(r"[A-Za-z]{2,}[,:;.]? [A-Za-z0-9{(]|^[A-Z][a-z]+$")


def texts_in(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each text of a module with its line; what is filled in stands as `{expression}`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from sorted(_texts(tree))


def errors_in(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of the errors that a module raises."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error"):
            yield from _texts(node)


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            parts.add(id(node.value))  # a docstring
        elif isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
        if id(node) not in parts and (text := _text(node)) is not None and _PROSE.search(text):
            yield node.lineno, text


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
        for part in node.values
        if isinstance(part, ast.Constant | ast.FormattedValue)
    )


def modules(*below: str) -> list[Path]:
    found = (PACKAGE / one for one in below)
    return sorted(path for one in found for path in ([one] if one.is_file() else one.rglob("*.py")))


def main(folders: list[str]) -> None:
    chosen = folders or WORDS
    for read, paths in ((texts_in, modules(*chosen)), (errors_in, [] if folders else modules("."))):
        for path in paths:
            lines = [f"  {line:4}  {text!r}" for line, text in dict.fromkeys(read(path))]
            if lines:
                sys.stdout.write("\n".join([f"\n{path.relative_to(PACKAGE)}", *lines, ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
