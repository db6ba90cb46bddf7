"""Captions, figures, histograms and differences on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
_MOST_ALIGNED = 48
"""Columns of a path behind which others are aligned."""


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


class _Pair(NamedTuple):
    """A path, and what is said of it."""

    mark: str
    indent: int
    path: str
    text: str
    style: str = ""


def lay_changes(blocks: Sequence[Change], paint: Paint) -> Iterator[str]:
    """Yield differences: each mark in its color, the path whole, and what differs beside or below it."""
    marks = {block.mark: f"  {paint.style(block.mark, block.mark)} " for block in blocks}
    return _pairs([_Pair(marks[block.mark], 4, block.path, block.detail) for block in blocks], paint)


def lay_pointed(blocks: Sequence[Pointed], paint: Paint) -> Iterator[str]:
    """Yield tensors or files, and what is said of each beside or below it."""
    pairs = [
        _Pair(
            paint.text(block.indent),
            len(block.indent),
            block.path,
            block.text,
            "file" if block.is_title else "",
        )
        for block in blocks
    ]
    return _pairs(pairs, paint)


def _pairs(pairs: Sequence[_Pair], paint: Paint) -> Iterator[str]:
    """Yield pairs, their texts below each other where short paths leave room for that."""
    fit = (width_of(one.path) for one in pairs if one.text and _is_beside(one, width_of(one.path), paint))
    aligned = max((width for width in fit if width <= _MOST_ALIGNED), default=0)
    for one in pairs:
        own = width_of(one.path)
        names = aligned if own <= aligned and _is_beside(one, aligned, paint) else own
        yield from _pair(one, names, paint)


def _is_beside(one: _Pair, names: int, paint: Paint) -> bool:
    return one.indent + names + 3 + width_of(one.text) <= paint.look.width


def _pair(one: _Pair, names: int, paint: Paint) -> Iterator[str]:
    room = paint.look.width - one.indent
    if one.text and _is_beside(one, names, paint):
        blank = " " * (names - width_of(one.path) + 3)
        yield f"{one.mark}{paint.style(one.path, one.style)}{blank}{paint.text(one.text)}"
        return
    yield one.mark + paint.style(cut_middle(one.path, room), one.style)
    below = " " * (one.indent + _BEFORE_TEXT)
    yield from (below + paint.text(line) for line in wrap(one.text, columns_for(paint, len(below))))


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
    columns = list(zip(block.header, *(cells for _, cells in block.rows), strict=True))
    rows = list(zip(*map(_below_each_other, columns), strict=True)) or [() for _ in (0, *block.rows)]
    widths = [max(map(len, _below_each_other(column))) for column in columns]
    names = max((width_of(name) for name, _ in block.rows), default=0)
    names = min(names, max(paint.look.width - 2 - 2 - max(widths, default=0), _LEAST_NAME), 48)
    for start, end in _spans(widths, paint.look.width - 2 - names):
        if start:
            yield ""
        for name, cells in zip(("", *(name for name, _ in block.rows)), rows, strict=True):
            shown = cut_middle(name, names)
            figures = "".join(
                f"  {cell:>{width}}" for cell, width in zip(cells[start:end], widths[start:end], strict=True)
            )
            line = paint.text(shown) + " " * (names - width_of(shown)) + paint.text(figures)
            yield f"  {line}".rstrip()


def _below_each_other(cells: Sequence[str]) -> list[str]:
    """Return the cells of a column with their last digits below each other, also where some have a mark."""
    is_marked = any(cell.endswith("*") for cell in cells)
    return [cell if cell.endswith("*") or not is_marked else f"{cell} " for cell in cells]


def _spans(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    start, used = 0, 0
    for column, width in enumerate(widths):
        if used + width + 2 > room and column > start:
            yield start, column
            start, used = column, 0
        used += width + 2
    yield start, len(widths)
