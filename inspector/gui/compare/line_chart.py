"""A few lines over time, drawn by Qt alone: each has a color, a pattern of dashes and its name at its end."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import cut_path
from inspector.overriding import override
from inspector.session.comparing.series import SeriesLine, SeriesScreen

_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 250, 12, 28
_LEAD, _SAMPLE = 16, 22
_TICKS = 4
_DASHES = (
    Qt.PenStyle.SolidLine,
    Qt.PenStyle.DashLine,
    Qt.PenStyle.DotLine,
    Qt.PenStyle.DashDotLine,
)
_WIDTH = 2.0
_DOT = 3.0
_LABEL_HEIGHT = 16


class LineChart(QWidget):
    """Draws the lines of a `SeriesScreen`."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._lines: tuple[SeriesLine, ...] = ()
        self._count = 0
        self.setAccessibleName("Chart of the series")
        self.setMinimumHeight(160)

    def show_screen(self, screen: SeriesScreen) -> None:
        """Draw the lines of a screen."""
        self._lines = tuple(screen.lines[number] for number in screen.drawn)
        self._count = len(screen.files)
        self.setAccessibleDescription(screen.summary)
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(600, 280)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(_LEFT, _TOP, -_RIGHT, -_BOTTOM)
        values = [value for line in self._lines for value in line.values if value is not None]
        if values and area.width() > 0:
            low, high = _range(values)
            self._draw_axes(painter, area, low, high)
            ends = []
            for number in range(len(self._lines)):
                end = self._draw_line(painter, area, number, (low, high))
                if end is not None:
                    ends.append((end, number))
            ends.sort()
            places = spread(
                [end for end, _ in ends], _LABEL_HEIGHT, _LABEL_HEIGHT / 2, self.height() - _LABEL_HEIGHT / 2
            )
            for (end, number), y in zip(ends, places, strict=True):
                self._draw_name(painter, area, number, (end, y))
        painter.end()

    def _draw_axes(self, painter: QPainter, area: QRectF, low: float, high: float) -> None:
        color = self._theme.tokens.color
        for tick in range(_TICKS + 1):
            y = area.bottom() - area.height() * tick / _TICKS
            painter.setPen(QPen(color("grid"), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(color("muted"))
            text = f"{low + (high - low) * tick / _TICKS:.3g}"
            place = QRectF(0, y - _LABEL_HEIGHT / 2, area.left() - 8, _LABEL_HEIGHT)
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
        step = max(1, math.ceil(self._count * 28 / max(area.width(), 1)))
        for number in range(0, self._count, step):
            x = _x(area, number, self._count)
            place = QRectF(x - 20, area.bottom() + 6, 40, _LABEL_HEIGHT)
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, str(number + 1))

    def _draw_line(
        self, painter: QPainter, area: QRectF, number: int, bounds: tuple[float, float]
    ) -> float | None:
        """Draw a line in pieces, broken where a file has no figure; return where it ends."""
        low, high = bounds
        line = self._lines[number]
        color = self._theme.tokens.device(number)
        piece, last = QPolygonF(), None
        for place, value in enumerate((*line.values, None)):
            if value is not None:
                last = QPointF(
                    _x(area, place, self._count), area.bottom() - area.height() * (value - low) / (high - low)
                )
                piece.append(last)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(color)
                painter.drawEllipse(last, _DOT, _DOT)
            elif piece.size():
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(color, _WIDTH, _DASHES[number % len(_DASHES)]))
                painter.drawPolyline(piece)
                piece = QPolygonF()
        return None if last is None else last.y()

    def _draw_name(self, painter: QPainter, area: QRectF, number: int, place: tuple[float, float]) -> None:
        """Write a name beside the end of its line, and lead to it where it had to make room for others."""
        end, y = place
        color = self._theme.tokens.device(number)
        painter.setPen(QPen(color, _WIDTH, _DASHES[number % len(_DASHES)]))
        left = area.right() + 8
        painter.drawLine(QPointF(left + _LEAD, y), QPointF(left + _LEAD + _SAMPLE, y))
        painter.setPen(QPen(self._theme.tokens.color("border_strong"), 1))
        painter.drawLine(QPointF(left, end), QPointF(left + _LEAD - 2, y))
        painter.setPen(self._theme.tokens.color("text"))
        start = left + _LEAD + _SAMPLE + 6
        room = QRectF(start, y - _LABEL_HEIGHT / 2, self.width() - start - 2, _LABEL_HEIGHT)
        name = self._lines[number].label
        text = cut_path(name, painter.fontMetrics(), room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)


def spread(wanted: list[float], apart: float, low: float, high: float) -> list[float]:
    """Return places in the order of those wanted, and near them, so far apart and within these ends."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, low, places[-1] + apart if places else low))
    latest = high
    for number in reversed(range(len(places))):
        places[number] = min(places[number], latest)
        latest = places[number] - apart
    return places


def _range(values: list[float]) -> tuple[float, float]:
    """Return the ends of the axis: from 0 on where that is not far, and never of no length."""
    low, high = min(values), max(values)
    if low <= (high - low):
        low = 0.0
    return (low, high) if high > low else (low - 0.5 * abs(low or 1.0), high + 0.5 * abs(high or 1.0))


def _x(area: QRectF, place: int, count: int) -> float:
    return area.center().x() if count < 2 else area.left() + area.width() * place / (count - 1)
