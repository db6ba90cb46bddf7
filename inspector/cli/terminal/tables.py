"""Captions, figures, histograms and differences on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.cli.terminal.lines import columns_for
from inspector.cli.terminal.paint import Paint
from inspector.cli.terminal.wrapping import wrap
from inspector.report.colors import device_colors
from inspector.report.page.bars import Bars
from inspector.report.page.cells import cut_middle, width_of
from inspector.report.page.facts import Change, Columns, DeviceRow, Fact, Pointed, Result
from inspector.report.words.values import format_number, sparkline

_LEAST_NAME = 8
_BEFORE_TEXT = 4


def lay_devices(rows: Sequence[DeviceRow], paint: Paint) -> Iterator[str]:
    """Yield devices with their dots, and their figures right-aligned below each other."""
    colors = device_colors(row.device for row in rows)
    names = max(width_of(row.name) for row in rows)
    figures = [max(len(row.tensors) for row in rows), max(len(row.size) for row in rows)]
    names = min(names, max(paint.look.width - sum(figures) - 8, 8))
    for row in rows:
        name = cut_middle(row.name, names)
        blank = " " * (names - width_of(name))
        figure = f"{row.tensors:>{figures[0]}}  {row.size:>{figures[1]}}"
        yield f"  {paint.dot(colors[row.device])} {paint.text(name)}{blank}  {paint.text(figure)}"


def lay_facts(rows: Sequence[Fact], paint: Paint) -> Iterator[str]:
    """Yield captions with what they say, wrapped beside them."""
    for row in rows:
        first, *rest = wrap(row.text, columns_for(paint, row.width + 4)) or [""]
        caption = paint.style(row.caption, "dim") + " " * (row.width - width_of(row.caption))
        yield f"  {caption}  {paint.text(first)}".rstrip()
        yield from (" " * (row.width + 4) + paint.text(text) for text in rest)


def lay_bars(block: Bars, paint: Paint) -> Iterator[str]:
    """Yield a histogram as one line of bars, with its ends below; in ASCII, its figures alone."""
    room = max(paint.look.width - block.width - 6, 8)
    blank = " " * (block.width - width_of(block.caption))
    if paint.look.is_unicode:
        bars = paint.style(sparkline(block.counts, room), "bar")
    else:
        bars = paint.text(_ascii_bars(block.counts, room))
    yield f"  {paint.style(block.caption, 'dim')}{blank}  |{bars}|"
    size = -(-len(block.counts) // room) or 1
    drawn = -(-len(block.counts) // size)
    low, high = format_number(block.edges[0]), format_number(block.edges[-1])
    middle = " " * max(drawn + 2 - len(low) - len(high), 1)
    yield " " * (block.width + 4) + paint.style(f"{low}{middle}{high}", "dim")


def _ascii_bars(counts: Sequence[int], width: int) -> str:
    drawn = sparkline(counts, width)
    levels = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
    return "".join(" .:-=+*%#"[levels.index(bar)] for bar in drawn)


def lay_change(block: Change, paint: Paint) -> Iterator[str]:
    """Yield a difference: its mark in its color, its path whole, and what differs beside or below it."""
    mark = paint.style(block.mark, block.mark)
    yield from _pair((f"  {mark} ", 4), block.path, block.detail, paint)


def lay_pointed(block: Pointed, paint: Paint) -> Iterator[str]:
    """Yield a tensor or a file, and what is said of it beside or below it."""
    style = "file" if block.is_title else ""
    yield from _pair((paint.text(block.indent), len(block.indent)), block.path, block.text, paint, style)


def _pair(before: tuple[str, int], path: str, text: str, paint: Paint, style: str = "") -> Iterator[str]:
    mark, indent = before
    room = paint.look.width - indent
    if not text or width_of(path) + 3 + width_of(text) <= room:
        shown = path if text else cut_middle(path, room)
        yield f"{mark}{paint.style(shown, style)}{'   ' if text else ''}{paint.text(text)}".rstrip()
        return
    yield mark + paint.style(cut_middle(path, room), style)
    below = " " * (indent + _BEFORE_TEXT)
    yield from (below + paint.text(line) for line in wrap(text, columns_for(paint, len(below))))


def lay_result(block: Result, paint: Paint) -> Iterator[str]:
    """Yield what was done with a file: its name behind a sign, then a line for each part."""
    sign = paint.sign("good" if block.is_good else "bad")
    yield f"{sign} {paint.style(cut_middle(block.name, paint.look.width - 2), 'file')}"
    for part in block.parts:
        first, *rest = wrap(part, columns_for(paint, _BEFORE_TEXT))
        yield f"  {paint.text('-')} {paint.text(first)}"
        yield from (" " * _BEFORE_TEXT + paint.text(text) for text in rest)


def lay_columns(block: Columns, paint: Paint) -> Iterator[str]:
    """Yield a table; where all columns are too many for a line, it goes on below."""
    yield paint.style(block.title, "heading")
    widths = [
        max(map(len, column))
        for column in zip(block.header, *(cells for _, cells in block.rows), strict=True)
    ]
    names = max((width_of(name) for name, _ in block.rows), default=0)
    names = min(names, max(paint.look.width - 2 - 2 - max(widths, default=0), _LEAST_NAME), 48)
    for start, end in _spans(widths, paint.look.width - 2 - names):
        if start:
            yield ""
        for name, cells in (("", block.header), *block.rows):
            shown = cut_middle(name, names)
            figures = "".join(
                f"  {cell:>{width}}" for cell, width in zip(cells[start:end], widths[start:end], strict=True)
            )
            line = paint.text(shown) + " " * (names - width_of(shown)) + paint.text(figures)
            yield f"  {line}".rstrip()


def _spans(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    start, used = 0, 0
    for column, width in enumerate(widths):
        if used + width + 2 > room and column > start:
            yield start, column
            start, used = column, 0
        used += width + 2
    yield start, len(widths)
