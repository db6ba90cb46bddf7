"""The values of a tensor: a histogram, and a slice as a picture."""

from __future__ import annotations

import math
import struct
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QBrush, QColor, QLinearGradient

from inspector.gui.charts.drawing import Drawing, Tick, index_ticks, value_ticks
from inspector.gui.theme.theme import Tokens, mixed
from inspector.overriding import override
from inspector.report.words.values import format_number
from inspector.session.values.page import Picture, SliceChoice
from inspector.values.statistics import Statistics

if TYPE_CHECKING:
    from inspector.gui.charts.plot import Plot

_HIGH_BARS, _BAR_TICK, _COUNT_TICK = 220, 76, 36
_FOOT, _LEAST_BAR = 8.0, 2.0
_ABOVE = 1.05
_LOG_FOOT = 0.3
"""How high a bar of one value is where the next power of ten is 1 higher."""
_LEFT, _TOP, _AXIS, _LARGEST_CELL, _LEAST_SIDE = 60, 8, 44, 24, 24
_SCALE, _SCALE_GAP, _SCALE_WIDTH, _SCALE_PAD, _SCALE_TEXT = 108, 12, 12, 6, 16
"""The room of the color bar at the right, and in it: a gap, the bar, a gap, the height of a number."""
_ZERO_LEVEL, _NAN_LEVEL = 127, 255
_COLUMN_TICK, _ROW_TICK = 56, 28
_LOW, _HIGH, _NAN = "#2f6fc4", "#c8402e", "#e3c800"
_ZERO = {False: "#f6f7f9", True: "#20242c"}


class Histogram(Drawing):
    """Counts between edges: of values, or of magnitudes by powers of two."""

    name, height, zooms, margins = "Histogram", _HIGH_BARS, "x", (0, 0, 12, 0)

    def __init__(
        self, found: Statistics, summary: str, *, octaves: bool = False, logarithmic: bool = False
    ) -> None:
        self._edges = found.edges
        self._counts = found.octaves if octaves else found.counts
        self._exponent = found.exponent if octaves else None
        self._is_log = logarithmic
        self.description, self.count = summary, len(self._counts)
        self._most = self._height(max(self._counts, default=1)) * _ABOVE

    def _height(self, count: int) -> float:
        return math.log10(count) + _LOG_FOOT if self._is_log and count else float(count)

    @override
    def draw(self, plot: Plot, tokens: Tokens) -> None:
        if not self.count:
            return
        plot.set_axis("left", self._heights, "Count", f"{max(self._counts):,}", grid=True)
        plot.set_axis("bottom", self._places, "Value" if self._exponent is None else "Magnitude")
        pixel = self._most / plot.room.height()
        plot.set_range((0, self.count), (-_FOOT * pixel, self._most))
        heights = [max(self._height(count), _LEAST_BAR * pixel) if count else 0 for count in self._counts]
        areas = [QRectF(place + 0.06, 0, 0.88, height) for place, height in enumerate(heights)]
        plot.add_bars(areas, [tokens.shade(0)] * self.count)

    @override
    def area(self, part: int) -> QRectF:
        return QRectF(part, 0, 1, self._most)  # a low bar is read above it too

    @override
    def words(self, part: int) -> str:
        return f"{self._label(part)} to below {self._label(part + 1)}: {self._counts[part]:,}"

    def _label(self, edge: int) -> str:
        return format_number(self._edges[edge]) if self._exponent is None else f"2^{self._exponent + edge}"

    def _heights(self, low: float, high: float, pixels: float) -> list[Tick]:
        if self._is_log:
            powers = [number for number in range(20) if number + _LOG_FOOT <= high]
            return [(number + _LOG_FOOT, f"{10**number:,}") for number in powers]
        return [(count, f"{count:,}") for count in index_ticks(low, high, pixels / _COUNT_TICK)]

    def _places(self, low: float, high: float, pixels: float) -> list[Tick]:
        most = pixels / _BAR_TICK
        if self._exponent is not None:
            return [(edge, self._label(edge)) for edge in index_ticks(low, high, most)]
        first, last = self._at(low), self._at(high)
        return [(low + (high - low) * share, text) for share, text in value_ticks(first, last, most)]

    def _at(self, place: float) -> float:
        """Return the value at a place of the axis; the ends of doubles are too far apart to be subtracted."""
        first, last = float(self._edges[0]), float(self._edges[-1])
        share = place / self.count
        return first * (1 - share) + last * share


class HeatMap(Drawing):
    """A `Picture` with the indices of its rows and columns, and what its colors stand for.

    Cells are square, unless a strip of them would not be seen.
    """

    name, zooms, is_down = "Heat map", "xy", True

    def __init__(self, picture: Picture, choice: SliceChoice, note: str, room: tuple[float, float]) -> None:
        self._picture, self._choice = picture, choice
        self.count = picture.rows * picture.columns
        rows, columns = max(picture.rows, 1), max(picture.columns, 1)
        side = min(max(room[0] - _SCALE - _LEFT, 1.0) / columns, room[1] / rows, _LARGEST_CELL)
        self.height = round(max(side * rows, _LEAST_SIDE)) + _TOP + _AXIS
        ends = f"{picture.shape[0]:,} rows, {picture.shape[1]:,} columns; "
        self.description = f"{ends}colors from {' to '.join(text for _, text in self._scale()[::-1])}. {note}"

    def _scale(self) -> list[tuple[int, str]]:
        """Return the levels of the color bar that have a number, from the top on: its ends, and zero."""
        levels, limit = set(self._picture.levels) - {_NAN_LEVEL}, self._picture.limit
        ends = [(254, limit)] if max(levels, default=_ZERO_LEVEL) > _ZERO_LEVEL else []
        ends += [(_ZERO_LEVEL, 0.0)]
        ends += [(0, -limit)] if min(levels, default=_ZERO_LEVEL) < _ZERO_LEVEL else []
        return [(level, format_number(value)) for level, value in ends]

    @override
    def draw(self, plot: Plot, tokens: Tokens) -> None:
        picture = self._picture
        rows, columns = picture.rows, picture.columns
        if not self.count:
            return
        plot.set_margins(0, _TOP, _SCALE, 0)
        plot.set_axis("left", partial(self._ticks, 0, _ROW_TICK), self._axis("row"), f"{picture.shape[0]:,}")
        plot.set_axis("bottom", partial(self._ticks, 1, _COLUMN_TICK), self._axis("column"))
        width, height = plot.room.width(), plot.room.height()
        side = min(width / columns, height / rows, _LARGEST_CELL)
        across, down = max(side * columns, _LEAST_SIDE), max(side * rows, _LEAST_SIDE)
        if min(side * columns, side * rows) < _LEAST_SIDE:
            across, down = (width, down) if columns > rows else (across, height)
        plot.set_margins(0, _TOP, _SCALE + width - min(across, width), height - min(down, height))
        plot.set_range((0, columns), (0, rows))
        plot.add_picture(picture.levels, rows, columns, color_table(is_dark=tokens.dark))

    def _axis(self, which: str) -> str:
        """Return the title of an axis: in a tensor of many dimensions, which one it is."""
        axis = self._choice.row if which == "row" else self._choice.column
        return which.capitalize() if len(self._choice.index) < 3 else f"dim {axis}"

    @override
    def annotate(self, plot: Plot, tokens: Tokens) -> None:
        if not self.count:
            return
        room, colors, scale = plot.room, color_table(is_dark=tokens.dark), self._scale()
        bar = QRectF(room.right() + _SCALE_GAP, room.top(), _SCALE_WIDTH, room.height())
        (high, _), (low, _) = scale[0], scale[-1]
        gradient = QLinearGradient(bar.topLeft(), bar.bottomLeft())
        places = [((high - level) / (high - low or 1), level, text) for level, text in scale]
        for place, level, _ in places:
            gradient.setColorAt(place, colors[level])
        plot.fill(bar, QBrush(gradient), 2.0)
        is_low = bar.height() < _SCALE_TEXT * len(scale)
        left = bar.right() + _SCALE_PAD
        for place, _, text in places[:: max(len(places) - 1, 1) if is_low else 1]:
            top = bar.top() + place * bar.height() - _SCALE_TEXT / 2
            line = QRectF(left, top, _SCALE - (left - room.right()), _SCALE_TEXT)
            plot.write(line, text, tokens.color("muted"), small=True)

    @override
    def area(self, part: int) -> QRectF:
        row, column = divmod(part, self._picture.columns)
        return QRectF(column, row, 1, 1)

    @override
    def part_at(self, x: float, y: float) -> int | None:
        rows, columns = self._picture.rows, self._picture.columns
        return int(y) * columns + int(x) if 0 <= x < columns and 0 <= y < rows else None

    @override
    def step(self, part: int | None, across: int, down: int) -> int:
        if part is None:
            return 0
        row, column = divmod(part, self._picture.columns)
        row = min(max(row + down, 0), self._picture.rows - 1)
        return row * self._picture.columns + min(max(column + across, 0), self._picture.columns - 1)

    @override
    def words(self, part: int) -> str:
        """Return the index of a cell in the whole tensor, and its value."""
        picture, choice = self._picture, self._choice
        (value,) = struct.unpack_from("<f", picture.cells, 4 * part)
        index: list[object] = list(choice.index)
        axes = choice.row, choice.column
        for axis, number, step, size in zip(
            axes, divmod(part, picture.columns), picture.steps, picture.shape, strict=True
        ):
            if axis is not None:
                index[axis] = _span(number * step, step, size)
        at = f"[{', '.join(map(str, index))}]"
        farthest = "" if picture.steps == (1, 1) else ", the farthest from zero there"
        return f"{at} = {format_number(value)}{farthest}"

    def _ticks(self, axis: int, apart: int, low: float, high: float, pixels: float) -> list[Tick]:
        step, last = self._picture.steps[axis], (self._picture.rows, self._picture.columns)[axis] - 0.5
        cells = index_ticks(max(low - 0.5, 0.0), min(high, last), pixels / apart)
        return [(cell + 0.5, f"{cell * step:,}") for cell in cells]


def _span(start: int, step: int, size: int) -> str:
    end = min(start + step, size)
    return f"{start}" if end == start + 1 else f"{start}:{end}"


def color_table(*, is_dark: bool) -> list[QColor]:
    low, high, zero = QColor(_LOW), QColor(_HIGH), QColor(_ZERO[is_dark])
    colors = [mixed(low, zero, level / 127) for level in range(127)]
    colors += [mixed(zero, high, level / 127) for level in range(128)]
    return [*colors, QColor(_NAN)]
