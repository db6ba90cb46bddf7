"""Captions with what they say, and figures in columns, as blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inspector.report.page.blocks import Page, page_of
from inspector.units import cut_text, escape_text

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
