"""What an answer is made of, before anybody knows how wide it may be.

Functions of `report` put an answer together from blocks. Piped, each block is the plain text that `plain`
returns, which other programs read and which therefore stays as it is. On a terminal the same blocks are laid
out for its width and colors (`cli.terminal`), so that no sentence is worded twice.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from inspector.units import escape_text

LINE = 100
"""The columns of plain text."""

MARKS = {"error": "!!", "warning": " !", "note": "  "}
"""What stands before a finding in plain text, by its severity."""

Role = Literal[
    "text",
    "more",
    "file",
    "heading",
    "good",
    "caution",
    "bad",
    "error",
    "warning",
    "note",
    "bullet",
    "code",
    "aside",
]
"""What a line is: the end of a verdict, a file's name, a finding, a thing in a list, what is pasted."""


class Block(Protocol):
    """A part of an answer."""

    def plain(self) -> Iterable[str]:
        """Return its lines as plain text."""


class Line(NamedTuple):
    """One line, or one paragraph.

    Attributes:
        hang: What stands before its further lines, where it is wrapped and that differs.
        wraps: Whether it is a sentence, which may be broken; paths and lines to be pasted never are.
    """

    text: str
    role: Role = "text"
    indent: str = ""
    hang: str | None = None
    wraps: bool = False
    keeps_words: bool = False

    def plain(self) -> list[str]:
        """Return it as plain text, wrapped if it may be."""
        if not self.wraps:
            return [f"{self.indent}{self.text}"]
        return textwrap.wrap(
            self.text,
            LINE,
            initial_indent=self.indent,
            subsequent_indent=self.indent if self.hang is None else self.hang,
            break_long_words=not self.keeps_words,
            break_on_hyphens=not self.keeps_words,
        )


class Page(NamedTuple):
    """An answer: its sections, in the order of plain text, with an empty line between them."""

    sections: tuple[tuple[Block, ...], ...]


def page_of(*sections: Iterable[Block]) -> Page:
    """Return a page of these sections; those that are empty are left out."""
    made = (tuple(section) for section in sections)
    return Page(tuple(section for section in made if section))


def plain_text(page: Page) -> str:
    """Return a page as it is written where nobody looks at it.

    Names are escaped where they come from; this is the last door, as `Paint.text` is where colors are. A text
    of a block ends no line: all ends of lines, and nothing else that a terminal obeys but tabs, are ours.
    """
    sections = ("\n".join(map(_obeyed_by_none, plain_lines(section))) for section in page.sections)
    text = "\n\n".join(text for text in sections if text)
    return f"{text}\n" if text else ""


def _obeyed_by_none(line: str) -> str:
    return "\t".join(map(escape_text, line.split("\t")))


def plain_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield blocks as lines of plain text."""
    for block in blocks:
        yield from block.plain()


def prose(text: str, indent: str, *, hang: str | None = None) -> list[Line]:
    """Return a sentence as a paragraph; nothing for an empty one."""
    return [Line(escape_text(text), "text", indent, hang, wraps=True)] if text.strip() else []


def lines_of(texts: Sequence[str], role: Role = "text") -> list[Line]:
    """Return texts as lines that are not wrapped."""
    return [Line(text, role) for text in texts]
