"""A few lines over time: each has a color, a pattern of dashes and its name at its end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPen

from inspector.gui.charts.drawing import Drawing, Tick, index_ticks, value_ticks
from inspector.gui.theme.theme import Tokens
from inspector.overriding import override
from inspector.session.comparing.series import FIELDS, SeriesScreen

if TYPE_CHECKING:
    from inspector.gui.charts.plot import Plot

_NAMES, _LEAD, _SAMPLE, _LINE = 250, 16, 22, 17
_TICK_WIDTH, _TICK_HEIGHT = 28, 56
_ROOM = 0.06
_STYLE = Qt.PenStyle
_DASHES = (_STYLE.SolidLine, _STYLE.DashLine, _STYLE.DotLine, _STYLE.DashDotLine)


class Lines(Drawing):
    """The lines of a `SeriesScreen`."""

    name, zooms, margins, reach = "Chart of the series", "xy", (0, _LINE / 2, _NAMES, 0), 6.0

    def __init__(self, screen: SeriesScreen) -> None:
        self._lines = [screen.lines[number] for number in screen.drawn]
        self._files, self._title = screen.files, FIELDS[screen.field]
        self.description = screen.summary
        self._points = [
            (number, file, value)
            for number, line in enumerate(self._lines)
            for file, value in enumerate(line.values)
            if value is not None
        ]
        self.count = len(self._points)

    @override
    def draw(self, plot: Plot, tokens: Tokens) -> None:
        if not self.count:
            return
        low, high = value_range([value for _, _, value in self._points])
        widest = max((text for _, text in value_ticks(low, high, 8)), key=len)
        plot.set_axis("left", self._value_ticks, self._title, widest + "00", grid=True)
        plot.set_axis("bottom", self._file_ticks, "Checkpoint")
        last, room = max(len(self._files) - 1, 1), (high - low) * _ROOM
        plot.set_range((-last * _ROOM / 2, last * (1 + _ROOM / 2)), (low - room / 2, high + room))
        for number, line in enumerate(self._lines):
            values = [math.nan if value is None else value for value in line.values]
            if not all(map(math.isnan, values)):
                plot.add_line(values, tokens.device(number), _DASHES[number % len(_DASHES)])

    @override
    def annotate(self, plot: Plot, tokens: Tokens) -> None:
        """Write each name beside the end of its line, and lead to it where it had to make room for others."""
        last = {number: QPointF(file, value) for number, file, value in self._points}
        ends = sorted((plot.point_of(end).y(), number) for number, end in last.items())
        top, bottom, left = plot.room.top(), plot.room.bottom(), plot.room.right() + 8
        seen = [(y, number) for y, number in ends if top - 1 <= y <= bottom + 1]
        places = spread([y for y, _ in seen], _LINE, top, bottom)
        for (end, number), y in zip(seen, places, strict=True):
            sample = left + _LEAD, y, left + _LEAD + _SAMPLE, y
            plot.stroke(QLineF(left, end, sample[0] - 2, y), QPen(tokens.color("border_strong"), 1))
            dashes = _DASHES[number % len(_DASHES)]
            plot.stroke(QLineF(*sample), QPen(tokens.device(number), 2.0, dashes))
            room = QRectF(sample[2] + 6, y - _LINE / 2, _NAMES - _LEAD - _SAMPLE - 16, _LINE)
            plot.write(room, self._lines[number].label, tokens.color("text"))

    @override
    def area(self, part: int) -> QRectF:
        _, file, value = self._points[part]
        return QRectF(file, value, 0, 0)

    @override
    def words(self, part: int) -> str:
        number, file, value = self._points[part]
        return f"{self._lines[number].name}, {file + 1}: {self._files[file]}: {value:.6g}"

    @override
    def step(self, part: int | None, across: int, down: int) -> int:
        if part is None or across:
            return super().step(part, across, down)
        _, file, _ = self._points[part]
        column = [at for at, point in enumerate(self._points) if point[1] == file]
        column.sort(key=lambda at: -self._points[at][2])
        return column[min(max(column.index(part) + down, 0), len(column) - 1)]

    def _value_ticks(self, low: float, high: float, pixels: float) -> list[Tick]:
        shares = value_ticks(low, high, pixels / _TICK_HEIGHT)
        return [(low + (high - low) * share, text) for share, text in shares]

    def _file_ticks(self, low: float, high: float, pixels: float) -> list[Tick]:
        files = index_ticks(max(low, 0.0), min(high, len(self._files) - 1), pixels / _TICK_WIDTH)
        return [(file, str(file + 1)) for file in files]


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
