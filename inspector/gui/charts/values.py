"""The values of a tensor: a histogram, and a slice as a picture."""

from __future__ import annotations

import math
import struct
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor

from inspector.gui.charts.drawing import Drawing, Tick, index_ticks, value_ticks
from inspector.gui.theme.theme import Tokens, mixed
from inspector.overriding import override
from inspector.report.words.values import format_number
from inspector.session.values.page import Picture
from inspector.values.statistics import Statistics

if TYPE_CHECKING:
    from inspector.gui.charts.plot import Plot

_HIGH_BARS, _BAR_TICK, _COUNT_TICK = 220, 76, 36
_FOOT, _LEAST_BAR = 8.0, 2.0
_ABOVE = 1.05
_LOG_FOOT = 0.3
"""How high a bar of one value is where the next power of ten is 1 higher."""
_PICTURE, _TOP, _AXIS, _LARGEST_CELL, _LEAST_SIDE = 260, 6, 44, 24, 24
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
    """A `Picture` with the indices of its rows and columns."""

    name, zooms, margins, is_down = "Heat map", "xy", (0, _TOP, 0, 0), True

    def __init__(self, picture: Picture, legend: str) -> None:
        self._picture = picture
        self.description = legend
        self.count = picture.rows * picture.columns
        self.height = round(min(_PICTURE, max(_LEAST_SIDE, picture.rows * _LARGEST_CELL))) + _TOP + _AXIS

    @override
    def draw(self, plot: Plot, tokens: Tokens) -> None:
        picture = self._picture
        rows, columns = picture.rows, picture.columns
        if not self.count:
            return
        plot.set_axis("left", partial(self._ticks, 0, _ROW_TICK), "Row", f"{picture.shape[0]:,}")
        plot.set_axis("bottom", partial(self._ticks, 1, _COLUMN_TICK), "Column")
        width, height = plot.room.width(), plot.room.height()
        side = min(width / columns, height / rows, _LARGEST_CELL)
        across, down = side, side  # cells are square, unless a strip of them would not be seen
        if min(side * columns, side * rows) < _LEAST_SIDE:
            across = width / columns if columns > rows else _LEAST_SIDE / columns
            down = height / rows if rows > columns else _LEAST_SIDE / rows
        plot.set_range((0, width / across), (0, height / down))
        plot.add_picture(picture.levels, rows, columns, color_table(is_dark=tokens.dark))

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
        picture = self._picture
        (value,) = struct.unpack_from("<f", picture.cells, 4 * part)
        cell = divmod(part, picture.columns)
        places = [
            _span(number * step, step, size)
            for number, step, size in zip(cell, picture.steps, picture.shape, strict=True)
        ]
        return f"row {places[0]}, column {places[1]}: {format_number(value)}"

    def _ticks(self, axis: int, apart: int, low: float, high: float, pixels: float) -> list[Tick]:
        step, last = self._picture.steps[axis], (self._picture.rows, self._picture.columns)[axis] - 0.5
        cells = index_ticks(max(low - 0.5, 0.0), min(high, last), pixels / apart)
        return [(cell + 0.5, f"{cell * step:,}") for cell in cells]


def _span(start: int, step: int, size: int) -> str:
    last = min(start + step, size) - 1
    return f"{start:,}" if last == start else f"{start:,} to {last:,}"


def color_table(*, is_dark: bool) -> list[QColor]:
    low, high, zero = QColor(_LOW), QColor(_HIGH), QColor(_ZERO[is_dark])
    colors = [mixed(low, zero, level / 127) for level in range(127)]
    colors += [mixed(zero, high, level / 127) for level in range(128)]
    return [*colors, QColor(_NAN)]
