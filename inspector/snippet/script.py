"""Lines of code, laid out as formatters do, so that a snippet can be pasted as it is."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from inspector.records import dataclass, field

MOST_CHARS = 88
"""What formatters let a line have."""
_NARROW = 60
"""What is in sight beside a tree."""
_INDENT = "    "
_MOVE = re.compile(r'\.to\("([a-z]+(?::\d+)?)"\)$')
_REPEATED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracketed:
    """A call or collection that may have to be broken over several lines.

    Attributes:
        head: All up to the opening bracket: `checkpoint = torch.load(`.
        is_tall: Whether each item has a line of its own as soon as a narrow one does not hold all of it.
    """

    head: str
    items: tuple[str | Bracketed, ...]
    tail: str
    is_tall: bool = False

    def flat(self) -> str:
        """Return it on one line."""
        return self.head + ", ".join(map(_flat, self.items)) + self.tail


def format_code(code: str | Bracketed, indent: str = "", end: str = "") -> list[str]:
    """Break code over as many lines as it needs."""
    line = indent + _flat(code) + end
    if isinstance(code, str) or len(line) <= (_NARROW if code.is_tall else MOST_CHARS):
        return [line]
    inside = indent + _INDENT
    together = inside + ", ".join(map(_flat, code.items))
    if (
        code.tail == ")" and not code.is_tall and len(together) <= MOST_CHARS
    ):  # arguments may share a line, elements may not
        lines = [together]
    else:
        lines = [line for item in code.items for line in format_code(item, inside, ",")]
    return [indent + code.head, *lines, indent + code.tail + end]


def call(head: str, *items: str | Bracketed, indent: str = "", end: str = "") -> list[str]:
    """Return the lines of a call; its head ends with the opening bracket."""
    return format_code(Bracketed(head=head, items=items, tail=")"), indent, end)


def _flat(code: str | Bracketed) -> str:
    return code if isinstance(code, str) else code.flat()


@dataclass(slots=True)
class Script:
    """A snippet while it is written."""

    uses_torch: bool = True
    _imports: set[str] = field(default_factory=set)
    _paragraphs: list[list[str]] = field(default_factory=list)

    def need(self, statement: str) -> None:
        """Import something."""
        self._imports.add(statement)

    def paragraph(self, *lines: str) -> None:
        """Add lines after an empty one; nothing at all if there are none."""
        if lines:
            self._paragraphs.append(list(lines))

    def text(self) -> str:
        """Return the whole snippet: imports in the usual order, then the paragraphs."""
        imports: tuple[list[str], ...] = ([], [], [])
        needed = self._imports | ({"import torch"} if self.uses_torch else set())
        for statement in sorted(_together(needed), key=_import_order):
            imports[_import_group(statement)].extend(_import_lines(statement))
        blocks = [block for block in (*imports, *_with_device(self._paragraphs)) if block]
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _with_device(paragraphs: list[list[str]]) -> list[list[str]]:
    """Give a device that several lines end with a variable, so that another one is one edit."""
    moved = Counter(match[1] for lines in paragraphs for line in lines if (match := _MOVE.search(line)))
    name, count = next(iter(moved.most_common(1)), ("", 0))
    if count < _REPEATED:
        return paragraphs
    end = f'.to("{name}")'
    named = [
        [f"{line.removesuffix(end)}.to(device)" if line.endswith(end) else line for line in lines]
        for lines in paragraphs
    ]
    return [[f'device = "{name}"'], *named]


def _together(statements: set[str]) -> Iterator[str]:
    """Join what is imported from one module into one statement, as sorters of imports do."""
    names: dict[str, list[str]] = {}
    for statement in statements:
        head, found, name = statement.partition(" import ")
        if not found:
            yield statement
        else:
            names.setdefault(head, []).append(name)
    for head, listed in names.items():
        yield f"{head} import {', '.join(sorted(listed, key=_name_order))}"


def _name_order(name: str) -> tuple[int, str]:
    return 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name


def _import_lines(statement: str) -> list[str]:
    head, found, names = statement.partition(" import ")
    if len(statement) <= MOST_CHARS or not found:
        return [statement]
    return [f"{head} import (", *(f"{_INDENT}{name}," for name in names.split(", ")), ")"]


def _import_group(statement: str) -> int:
    """Return whether it is of the standard library, of others, or of the program itself."""
    top = statement.split()[1].partition(".")[0]
    if top == "__main__":
        return 2
    return 0 if top in sys.stdlib_module_names else 1


def _import_order(statement: str) -> tuple[bool, str]:
    return statement.startswith("from"), statement


def comment_lines(text: str) -> list[str]:
    """Break a comment over as many lines as it needs."""
    return wrap(
        f"# {text}", MOST_CHARS, subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
    )
