"""A few lines over time: each has a color, a pattern of dashes and its name at its end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QPen

from inspector.gui.charts.drawing import Drawing, Tick, value_ticks
from inspector.gui.theme.theme import Tokens
from inspector.overriding import override
from inspector.report.words.values import format_number
from inspector.session.comparing.series import FIELDS, SeriesScreen

if TYPE_CHECKING:
    from inspector.gui.charts.plot import Plot

_NAMES, _LEAD, _SAMPLE, _LINE = 250, 16, 22, 17
_TICK_WIDTH, _DIGIT, _TICK_HEIGHT = 14, 8, 56
_LEAST_DECADES = 1.5
"""Within fewer, round numbers tell more than powers of ten."""
_ROOM = 0.06
_STYLE = Qt.PenStyle
_DASHES = (_STYLE.SolidLine, _STYLE.DashLine, _STYLE.DotLine, _STYLE.DashDotLine)


class Lines(Drawing):
    """The lines of a `SeriesScreen`."""

    name, zooms, margins, reach = "Chart of the series", "xy", (0, _LINE / 2, _NAMES, 0), 6.0

    def __init__(self, screen: SeriesScreen) -> None:
        self._lines = [screen.lines[number] for number in screen.drawn]
        self._files, self._axis, self._is_log = screen.files, screen.axis, screen.is_log
        self._title = f"{FIELDS[screen.field]}{', log scale' if screen.is_log else ''}"
        self._numbers = [math.nan if number is None else number for number in screen.numbers]
        self.description = screen.summary
        self._points = [
            (number, file, value)
            for number, line in enumerate(self._lines)
            for file, value in enumerate(line.values)
            if value is not None and (value > 0 or not screen.is_log)
        ]
        self.count = len(self._points)

    @override
    def draw(self, plot: Plot, tokens: Tokens) -> None:
        if not self.count:
            return
        low, high = self._ends()
        widest = max((text for _, text in self._value_ticks(low, high, 8 * _TICK_HEIGHT)), key=len)
        plot.set_axis("left", self._value_ticks, self._title, widest + "00", grid=True)
        plot.set_axis("bottom", self._file_ticks, self._axis)
        known = [number for number in self._numbers if not math.isnan(number)]
        first, last = min(known), max(known)
        wide, room = (last - first or 1.0) * _ROOM, (high - low) * _ROOM
        plot.set_range((first - wide / 2, last + wide), (low - room / 2, high + room))
        for number, line in enumerate(self._lines):
            values = [self._height(value) for value in line.values]
            if not all(map(math.isnan, values)):
                style = _DASHES[number % len(_DASHES)]
                plot.add_line(self._numbers, values, tokens.device(number), style)

    def _height(self, value: float | None) -> float:
        """Return how high a figure is drawn; NaN for none."""
        if value is None or (self._is_log and value <= 0):
            return math.nan
        return math.log10(value) if self._is_log else value

    def _ends(self) -> tuple[float, float]:
        heights = [self._height(value) for _, _, value in self._points]
        if not self._is_log:
            return value_range(heights)
        low, high = min(heights), max(heights)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    @override
    def annotate(self, plot: Plot, tokens: Tokens) -> None:
        """Write each name beside the end of its line, and lead to it where it had to make room for others."""
        last = {number: self.area(part).topLeft() for part, (number, _, _) in enumerate(self._points)}
        top, bottom, left = plot.room.top(), plot.room.bottom(), plot.room.right() + 8
        ends = sorted((plot.point_of(end).y(), number) for number, end in last.items())
        places = spread([min(max(y, top), bottom) for y, _ in ends], _LINE, top, bottom)
        for (end, number), y in zip(ends, places, strict=True):
            sample = left + _LEAD, y, left + _LEAD + _SAMPLE, y
            if top - 1 <= end <= bottom + 1:  # the others end where nobody looks now
                plot.stroke(QLineF(left, end, sample[0] - 2, y), QPen(tokens.color("border_strong"), 1))
            dashes = _DASHES[number % len(_DASHES)]
            plot.stroke(QLineF(*sample), QPen(tokens.device(number), 2.0, dashes))
            room = QRectF(sample[2] + 6, y - _LINE / 2, _NAMES - _LEAD - _SAMPLE - 16, _LINE)
            plot.write(room, self._lines[number].label, tokens.color("text"))

    @override
    def area(self, part: int) -> QRectF:
        _, file, value = self._points[part]
        return QRectF(self._numbers[file], self._height(value), 0, 0)

    @override
    def words(self, part: int) -> str:
        number, file, value = self._points[part]
        place = f"{self._axis.lower()} {self._numbers[file]:.10g}"
        return f"{self._lines[number].name}, {place}, {self._files[file]}: {value:.6g}"

    @override
    def step(self, part: int | None, across: int, down: int) -> int:
        if part is None or across:
            return super().step(part, across, down)
        _, file, _ = self._points[part]
        column = [at for at, point in enumerate(self._points) if point[1] == file]
        column.sort(key=lambda at: -self._points[at][2])
        return column[min(max(column.index(part) + down, 0), len(column) - 1)]

    def _value_ticks(self, low: float, high: float, pixels: float) -> list[Tick]:
        most = pixels / _TICK_HEIGHT
        if self._is_log and high - low > _LEAST_DECADES:
            step = max(1, math.ceil((high - low) / max(most, 1.0)))
            powers = range(math.ceil(low), math.floor(high) + 1, step)
            return [(float(power), format_number(10.0**power)) for power in powers]
        if self._is_log:
            low_value, high_value = 10.0**low, 10.0**high
            shares = value_ticks(low_value, high_value, most)
            values = [(low_value + (high_value - low_value) * share, text) for share, text in shares]
            return [(math.log10(value), text) for value, text in values if value > 0]
        return [(low + (high - low) * share, text) for share, text in value_ticks(low, high, most)]

    def _file_ticks(self, low: float, high: float, pixels: float) -> list[Tick]:
        """Return the numbers of files, as many of them as there is room for."""
        inside = [number for number in self._numbers if low <= number <= high]
        texts = [f"{number:.10g}" for number in inside]
        room = (high - low) / max(pixels, 1.0) * (_TICK_WIDTH + _DIGIT * max(map(len, texts), default=0))
        found: list[Tick] = []
        for number, text in zip(inside, texts, strict=True):
            if not found or number - found[-1][0] >= room:
                found.append((number, text))
        return found


def spread(wanted: list[float], apart: float, low: float, high: float) -> list[float]:
    places: list[float] = []
    for place in wanted:
        places.append(max(place, low, places[-1] + apart if places else low))
    latest = high
    for number in reversed(range(len(places))):
        places[number] = min(places[number], latest)
        latest = places[number] - apart
    return places


def value_range(values: list[float]) -> tuple[float, float]:
    """Return the ends of the axis: from 0 on where that is not far, and never of no length."""
    low, high = min(values), max(values)
    if low <= (high - low):
        low = min(low, 0.0)
    return (low, high) if high > low else (low - 0.5 * abs(low or 1.0), high + 0.5 * abs(high or 1.0))
