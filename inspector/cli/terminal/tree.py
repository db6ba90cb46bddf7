"""The tree on a terminal: dots in the colors of devices, columns that fit its width, sums at the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inspector.cli.terminal.paint import Paint
from inspector.model.roles.devices import device_order
from inspector.report.colors import NEUTRAL, device_name, more_colors
from inspector.report.outline.node import Node
from inspector.report.page import (
    HEADER,
    NOTHING_FOUND,
    Cells,
    TreeRows,
    cut_end,
    cut_middle,
    facts_of,
    width_of,
)
from inspector.report.tree import OTHERS
from inspector.units import format_count, format_quantity

_GAP = 2
_NAME, _DEVICE, _SHAPE, _TYPE, _SIZE = range(5)
_MOST = (64, 28, 44, 24, 12)
_EASY = (27, 15, 14, 8, 8)
"""Columns down to which the widest column gives way first."""
_LEAST = (22, 13, 9, 7, 8)
"""Columns below which a column is left out rather than made smaller."""
_LEFT_OUT = (_TYPE, _SHAPE, _SIZE)
_MOST_DOTS = 3
_MOST_MEASURED = 2000
"""Rows whose texts decide how wide the columns are."""
_STEP = 2
"""Columns of one level of the tree, if there is room."""
_LEAST_NAME = 14
"""Columns of a name behind its indent."""


class _Grid(NamedTuple):
    """How the rows are laid out.

    Attributes:
        deepest: The level from which on its number stands for the indent.
    """

    widths: list[int]
    step: int
    deepest: int
    dots: int
    colors: dict[str, int]
    paint: Paint


def lay_tree(block: TreeRows, paint: Paint) -> Iterator[str]:
    if not block.rows:
        yield from [NOTHING_FOUND] * block.sought
        return
    sample = _sample(block)
    dots = min(max(len(node.devices) for node, _ in sample), _MOST_DOTS)
    natural = _natural(sample, dots, paint)
    sums = (_texts(node, paint)[_SHAPE] for node, _ in sample if _is_sum(node))
    counts = max((width_of(_shortest(text)) for text in sums), default=0)
    most = [min(width, most) for width, most in zip(natural, _MOST, strict=True)]
    widths = fitted(most, paint.look.width, counts)
    step, deepest = _STEP, max(level for _, level in block.rows)
    if widths[_NAME] < natural[_NAME]:
        room = max(widths[_NAME] - _LEAST_NAME, 1)
        step = _STEP if _STEP * deepest <= room else 1
        deepest = min(deepest, room)
    colors = more_colors(block.tree.colors, {device for node, _ in sample for device, _ in node.devices})
    grid = _Grid(widths, step, deepest, dots, colors, paint)
    yield _header(grid)
    for id_, level in block.rows:
        yield _row(block.node(id_), level, grid)


def _sample(block: TreeRows) -> list[tuple[Node, int]]:
    """Return the first rows, and some of all others: a million rows need not be looked at to show a page."""
    rows = block.rows
    chosen = [*rows[:_MOST_MEASURED], *rows[_MOST_MEASURED :: len(rows) // _MOST_MEASURED + 1]]
    return [(block.node(id_), level) for id_, level in chosen]


def _natural(sample: list[tuple[Node, int]], dots: int, paint: Paint) -> list[int]:
    widths = list(map(width_of, HEADER))
    spread = 0
    for node, level in sample:
        name, device, shape, type_text, size = _texts(node, paint)
        if _is_sum(node):
            spread, shape = max(spread, width_of(shape)), ""
        row = (name, device, shape, type_text, size)
        more = (_STEP * level, dots + 1 if device else 0, 0, 0, 0)
        widths = [
            max(width, width_of(text) + add) for width, text, add in zip(widths, row, more, strict=True)
        ]
    widths[_SHAPE] = max(widths[_SHAPE], spread - _GAP - widths[_TYPE])
    return widths


def _texts(node: Node, paint: Paint) -> Cells:
    device, shape, type_text, size = map(paint.text, facts_of(node))
    return paint.text(node.name), device, shape, type_text, size


def _is_sum(node: Node) -> bool:
    return node.kind not in {"tensor", "value"}


def fitted(natural: Sequence[int], room: int, counts: int = 0) -> list[int]:
    """Return the width of each column, 0 for one that there is no room for.

    Args:
        counts: What the shortest texts of sums take, which are cut nowhere.
    """
    widths = list(natural)
    least = [min(width, floor) for width, floor in zip(natural, _LEAST, strict=True)]
    for column in _LEFT_OUT:
        if _total(least) <= room:
            break
        least[column] = widths[column] = 0
    for floors in (_EASY, _LEAST):
        lowest = [min(width, floor) for width, floor in zip(widths, floors, strict=True)]
        if widths[_SHAPE] and not widths[_TYPE]:
            lowest[_SHAPE] = max(lowest[_SHAPE], counts)
        _shrink(widths, lowest, room)
    widths[_NAME] = max(widths[_NAME] - max(_total(widths) - room, 0), 1)
    return widths


def _shrink(widths: list[int], floors: Sequence[int], room: int) -> None:
    while _total(widths) > room:
        spare = [column for column, width in enumerate(widths) if width > floors[column]]
        if not spare:
            return
        widths[max(spare, key=lambda column: widths[column] - floors[column])] -= 1


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (sum(width > 0 for width in widths) - 1)


def _header(grid: _Grid) -> str:
    cells = []
    for column, (title, width) in enumerate(zip(HEADER, grid.widths, strict=True)):
        if width:
            text = title if width_of(title) <= width else cut_end(title.partition(" ")[0], width)
            cells.append(f"{text:>{width}}" if column == _SIZE else f"{text:<{width}}")
    return grid.paint.style((" " * _GAP).join(cells).rstrip(), "heading")


def _row(node: Node, level: int, grid: _Grid) -> str:
    name, device, shape, type_text, size = _texts(node, grid.paint)
    widths = grid.widths
    cells = [_named(name, level, grid, "bold" if _is_sum(node) else ""), _device(node, device, grid)]
    if _is_sum(node):
        spread = widths[_SHAPE] + widths[_TYPE] + (_GAP if widths[_SHAPE] and widths[_TYPE] else 0)
        middle = [(cut_end(_short(shape, spread), spread), spread, True)] if spread else []
    else:
        middle = [
            (cut_end(text, width), width, False)
            for text, width in ((shape, widths[_SHAPE]), (type_text, widths[_TYPE]))
            if width
        ]
    if widths[_SIZE]:
        middle.append((size, widths[_SIZE], True))
    cells += (_cell(*cell, grid.paint) for cell in middle)
    return (" " * _GAP).join(cells).rstrip()


def _short(text: str, width: int) -> str:
    tensors = text.partition(", ")[0]
    return next((one for one in (text, tensors) if width_of(one) <= width), _shortest(text))


def _shortest(text: str) -> str:
    first = text.partition(", ")[0]
    count, _, rest = first.partition(" ")
    digits = count.replace(",", "")
    return f"{format_quantity(int(digits))} {rest}" if digits.isdecimal() else first


def _cell(text: str, width: int, is_right: bool, paint: Paint) -> str:  # noqa: FBT001 - a field of a cell
    blank = " " * (width - width_of(text))
    return blank + paint.text(text) if is_right else paint.text(text) + blank


def _device(node: Node, text: str, grid: _Grid) -> str:
    width = grid.widths[_DEVICE]
    if not text:
        return " " * width
    devices = sorted((device for device, _ in node.devices if device != OTHERS), key=device_order)
    shown = devices[: grid.dots]
    dots = "".join(grid.paint.dot(grid.colors.get(device, NEUTRAL)) for device in shown)
    room = width - grid.dots - 1
    if width_of(text) > room and len(devices) == len(node.devices) > 1:
        first = grid.paint.text(f"{device_name(devices[0])} +{len(devices) - 1}")
        text = first if width_of(first) <= room else format_count(len(devices), "device")
    name = cut_end(text, room)
    return f"{dots}{' ' * (grid.dots - len(shown) + 1)}{grid.paint.text(name)}{' ' * (room - width_of(name))}"


def _named(name: str, level: int, grid: _Grid, style: str) -> str:
    width = grid.widths[_NAME]
    indent = " " * (grid.step * level)
    if level > grid.deepest:
        indent = f"{' ' * max(grid.deepest - 3, 0)}{level}: "
    name = cut_middle(name, max(width - len(indent), 1))
    blank = " " * (width - width_of(name) - len(indent))
    return indent + grid.paint.style(name, style) + blank
