"""Lines of code, laid out as formatters do, so that a snippet can be pasted as it is."""

from __future__ import annotations

import sys

from inspector.records import dataclass, field

_MOST_CHARS = 88
_INDENT = "    "


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracketed:
    """A call or collection that may have to be broken over several lines.

    Attributes:
        head: All up to the opening bracket: `checkpoint = torch.load(`.
        items: What stands between the brackets.
        tail: The closing bracket.
    """

    head: str
    items: tuple[str | Bracketed, ...]
    tail: str

    def flat(self) -> str:
        """Return it on one line."""
        return self.head + ", ".join(map(_flat, self.items)) + self.tail


def format_code(code: str | Bracketed, indent: str = "", end: str = "") -> list[str]:
    """Break code over as many lines as it needs."""
    line = indent + _flat(code) + end
    if isinstance(code, str) or len(line) <= _MOST_CHARS:
        return [line]
    inside = indent + _INDENT
    together = inside + ", ".join(map(_flat, code.items))
    if code.tail == ")" and len(together) <= _MOST_CHARS:  # arguments may share a line, elements may not
        lines = [together]
    else:
        lines = [line for item in code.items for line in format_code(item, inside, ",")]
    return [indent + code.head, *lines, indent + code.tail + end]


def _flat(code: str | Bracketed) -> str:
    return code if isinstance(code, str) else code.flat()


@dataclass(slots=True)
class Script:
    """A snippet while it is written.

    Attributes:
        uses_torch: Whether it imports torch itself, as nearly all do.
    """

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
        for statement in sorted(needed, key=_import_order):
            imports[_import_group(statement)].append(statement)
        blocks = [block for block in (*imports, *self._paragraphs) if block]
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _import_group(statement: str) -> int:
    """Return whether it is of the standard library, of others, or of the program itself."""
    top = statement.split()[1].partition(".")[0]
    if top == "__main__":
        return 2
    return 0 if top in sys.stdlib_module_names else 1


def _import_order(statement: str) -> tuple[bool, str]:
    return statement.startswith("from"), statement
