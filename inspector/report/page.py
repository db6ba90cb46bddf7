"""Answers as pages of blocks, each of which knows its plain text."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, cast

from inspector.records import replace
from inspector.report.outline.node import Node, Tree
from inspector.report.outline.nodes import Nodes, Places
from inspector.report.words.values import sparkline
from inspector.units import cut_text, escape_text, format_nbytes

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_ELLIPSIS = "\u2026"


def width_of(text: str) -> int:
    """Return the columns of a text in a terminal: two for East Asian characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return len(text) + sum(map(_excess, _NOT_ASCII.findall(text)))


@lru_cache(maxsize=4096)
def _excess(char: str) -> int:
    """Return the columns of a character beyond one; the same few (\u00d7, \u2026) stand in every line."""
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me"}:
        return -1
    return int(unicodedata.east_asian_width(char) in "WF")


def cut_end(text: str, most: int) -> str:
    """Cut a text to this many columns of a terminal, one at least."""
    most = max(most, 1)
    if width_of(text) <= most:
        return text
    text = text[:most]
    while width_of(text) >= most:
        text = text[:-1]
    return f"{text}{_ELLIPSIS}"


def cut_middle(text: str, most: int) -> str:
    """Cut the middle out of a name: its beginning and its end say most."""
    most = max(most, 1)
    if width_of(text) <= most:
        return text
    begin, end = text[: most // 2], text[-(most // 2) :]
    while width_of(begin) + width_of(end) >= most:
        begin, end = (begin[:-1], end) if width_of(begin) >= width_of(end) else (begin, end[1:])
    return f"{begin}{_ELLIPSIS}{end}"


# What an answer is made of, before anybody knows how wide it may be.
#
# Functions of `report` put an answer together from blocks. Piped, each block is the plain text that `plain`
# returns, which other programs read and which therefore stays as it is. On a terminal the same blocks are
# laid out for its width and colors (`cli.terminal`), so that no sentence is worded twice.

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


# A histogram as a block.


class Bars(NamedTuple):
    """A histogram."""

    caption: str
    counts: tuple[int, ...]
    edges: tuple[float, ...]
    width: int

    def plain(self) -> Iterator[str]:
        """Return it as one line of bars."""
        yield f"  {self.caption:<{self.width}}  |{sparkline(self.counts)}|"


# Captions with what they say, and figures in columns, as blocks.

_MOST_NAME = 48


class DeviceRow(NamedTuple):
    """A device with how much is on it."""

    device: str
    name: str
    tensors: str
    size: str

    def plain(self) -> Iterator[str]:
        """Return it with its figures right-aligned."""
        yield f"  {self.name:<10} {self.tensors:>16} {self.size:>10}"


class Fact(NamedTuple):
    """A caption and what it says."""

    caption: str
    text: str
    width: int
    gap: str = "  "

    def plain(self) -> Iterator[str]:
        """Return it with what it says behind the captions."""
        yield f"  {self.caption:<{self.width}}{self.gap}{self.text}"


class Change(NamedTuple):
    """A line of a comparison.

    Attributes:
        mark: What became of it: `+`, `-`, `~` (changed), `>` (another name), `=`, or `!` (what loading runs).
    """

    mark: str
    path: str
    detail: str

    def plain(self) -> Iterator[str]:
        """Return it with its mark in front."""
        yield f"  {self.mark} {self.path}" + (f"   {self.detail}" if self.detail else "")


class Code(NamedTuple):
    """Python code to be copied."""

    lines: tuple[str, ...]

    def plain(self) -> Iterator[str]:
        """Return it as it is."""
        yield from self.lines


def code_page(code: str) -> Page:
    """Return code as a page."""
    return page_of([Code(tuple(code.removesuffix("\n").split("\n")))])


class Columns(NamedTuple):
    """A table of figures, with a name in front of each row."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    def plain(self) -> Iterator[str]:
        """Return it with columns of one width."""
        yield self.title
        for name, cells in (("", self.header), *self.rows):
            shown = f"{cut_text(name, _MOST_NAME):<{_MOST_NAME}}"
            yield "  " + " ".join([shown, *(f"{cell:>10}" for cell in cells)]).rstrip()


class Pointed(NamedTuple):
    """A tensor or a file, and what is said of it."""

    path: str
    text: str
    indent: str = "  "
    gap: str = "  "
    is_title: bool = False

    def plain(self) -> Iterator[str]:
        """Return both in one line."""
        yield f"{self.indent}{self.path}{self.gap}{self.text}"


class Result(NamedTuple):
    """What was done with a file."""

    name: str
    parts: tuple[str, ...]
    is_good: bool = True

    def plain(self) -> Iterator[str]:
        """Return it as one sentence."""
        yield f"{escape_text(self.name)}: {'; '.join(self.parts)}"


# The rows of the tree as a block.

HEADER = ("Name", "Device", "Shape or value", "Type", "Size")
NOTHING_FOUND = "Nothing matches the filter."
_MOST_WIDE = (48, 24, 40, 32, 12)
_MOST_LEVELS = 12
Cells = tuple[str, str, str, str, str]


class TreeRows(NamedTuple):
    """Rows of a tree.

    Attributes:
        rows: The id and the level of each row, in the order of display.
    """

    tree: Tree
    rows: list[tuple[int, int]]
    sought: bool = False

    def node(self, id_: int) -> Node:
        """Return a row with a mark where something is wrong with its bytes, or below it; a word says what.

        The name has the mark: of the columns, it alone is always there.
        """
        node = self.tree.nodes[id_]
        wrong = self.tree.marks.of(id_, _places(self.tree).ends[id_] - 1) if self.tree.marks else ""
        if not wrong:
            return node
        name = f"! {node.name}"
        if node.kind == "tensor":
            return replace(node, name=name, shape_text=f"{wrong}, {node.shape_text}")
        return replace(node, name=name, type_text=f"{wrong}, {node.type_text}")

    def plain(self) -> Iterator[str]:
        """Align the columns; one is as wide as its widest text, up to a limit, and longer texts are cut."""
        if not self.rows:
            if self.sought:
                yield NOTHING_FOUND
            return
        rows = (_cells(self.node(id_), level) for id_, level in self.rows)
        cut = [HEADER, *(tuple(map(cut_end, row, _MOST_WIDE)) for row in rows)]
        widths = [max(map(width_of, column)) for column in zip(*cut, strict=True)]
        for *cells, size in cut:
            padded = [
                cell + " " * (width - width_of(cell)) for cell, width in zip(cells, widths[:-1], strict=True)
            ]
            yield "  ".join([*padded, size.rjust(widths[-1])]).rstrip()


def tree_rows(tree: Tree, depth: int | None = None, only: Collection[int] | None = None) -> TreeRows:
    """Return the rows of a tree down to a level, or the rows with these ids together with their ancestors."""
    return TreeRows(tree, list(_rows(tree, depth, only)), only is not None)


def _rows(tree: Tree, depth: int | None, only: Collection[int] | None) -> Iterator[tuple[int, int]]:
    """Yield rows from top to bottom without making any: ids are numbered so, and know where a branch ends."""
    shown = None if only is None else _with_ancestors(tree, only)
    places = _places(tree)
    ends: list[int] = []
    id_ = 1
    while id_ < len(tree.nodes):
        while ends and ends[-1] <= id_:
            ends.pop()
        if (shown is not None and id_ not in shown) or (depth is not None and len(ends) >= depth):
            id_ = places.ends[id_]
            continue
        yield id_, len(ends)
        ends.append(places.ends[id_])
        id_ += 1


def _with_ancestors(tree: Tree, only: Collection[int]) -> set[int]:
    shown: set[int] = set()
    parents = _places(tree).parents
    for found in only:
        id_ = found
        while id_ >= 0 and id_ not in shown:
            shown.add(id_)
            id_ = parents[id_]
    return shown


def _places(tree: Tree) -> Places:
    return cast("Nodes", tree.nodes).places  # a tree of a checkpoint has no other


def _cells(node: Node, level: int) -> Cells:
    indent = "  " * min(level, _MOST_LEVELS)
    return (indent + cut_middle(node.name, _MOST_WIDE[0] - len(indent)), *facts_of(node))


def facts_of(node: Node) -> tuple[str, str, str, str]:
    """Return what stands behind the name of a row."""
    if node.kind == "value":
        return "", node.text, node.type_text, ""
    if not node.tensors:
        return "", "", "", ""
    if node.kind == "tensor":
        return node.device_text, node.shape_text, node.type_text, format_nbytes(node.nbytes)
    below = ", ".join(filter(None, (node.type_text, node.shape_text)))
    return node.device_text, below, "", format_nbytes(node.nbytes)
