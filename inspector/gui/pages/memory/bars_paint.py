"""Draws bars of bytes with Qt alone, on a screen or on any other device: a window, a picture, an SVG."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen

from inspector.gui.pages.memory.ink import ink_on
from inspector.gui.theme.theme import Tokens
from inspector.session.screen import Bar, Chart, Segment
from inspector.tuples import NamedTuple
from inspector.units import format_nbytes

CAPTION, BAR, GAP, AXIS = 20.0, 26.0, 10.0, 24.0
_RADIUS = 5.0
_LEAST = 2.0
_PAD = 8.0
_TICK_PIXELS = 90
_STEPS = (1, 2, 5, 10)


class Place(NamedTuple):
    """Where a segment is drawn."""

    bar: int
    part: Segment
    area: QRectF


def byte_step(total: int, ticks: int) -> float:
    """Return the distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most `ticks`."""
    step = 1.0
    while total / (step * 10) > ticks:
        step *= 10
    return next(step * factor for factor in _STEPS if total / (step * factor) <= ticks or factor == 10)


def color_of(tokens: Tokens, chart: Chart, devices: Collection[str], part: Segment) -> QColor:
    """Return the color of a segment; what is no device gets one that no device has."""
    by_device = all(each.label in devices for bar in chart.bars for each in bar.segments)
    return tokens.device(part.color) if by_device else tokens.shade(part.color)


class BarsPainter:
    """The bars of one chart at one width.

    Bars without a capacity stand on one scale, with its axis below. One with a capacity stands in a track of
    its own: the whole width is its capacity, or its length if that is more.
    """

    def __init__(
        self, chart: Chart, width: float, tokens: Tokens, font: QFont, devices: Collection[str] = ()
    ) -> None:
        self.chart, self.width = chart, max(width, 40.0)
        self._tokens, self._font, self._devices = tokens, font, devices
        self._small = QFont(font)
        self._small.setPointSizeF(font.pointSizeF() * 0.9)
        self._longest = max((bar.nbytes for bar in chart.bars if bar.capacity_nbytes is None), default=0)

    @property
    def height(self) -> float:
        """How high the chart is."""
        return len(self.chart.bars) * (CAPTION + BAR + GAP) + (AXIS if self._longest else 0.0)

    @property
    def places(self) -> tuple[Place, ...]:
        """Where each segment is drawn."""
        return tuple(place for number in range(len(self.chart.bars)) for place in self._parts(number))

    def paint(self, painter: QPainter, marks: Collection[str] = (), focused: int | None = None) -> None:
        """Paint the chart; segments whose search is among the marks are outlined, and the focused one."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._longest:
            self._paint_axis(painter)
        for number, bar in enumerate(self.chart.bars):
            self._paint_words(painter, number, bar)
            self._paint_bar(painter, number, bar)
        for index, place in enumerate(self.places):
            if index == focused or (place.part.query and place.part.query in marks):
                self._paint_mark(painter, place.area, is_focus=index == focused)

    # Where things are.

    def _line(self, number: int) -> QRectF:
        return QRectF(0.5, number * (CAPTION + BAR + GAP) + CAPTION, self.width - 1, BAR)

    def _full(self, bar: Bar) -> int:
        """Return the bytes that the whole width stands for."""
        return max(bar.capacity_nbytes, bar.nbytes, 1) if bar.capacity_nbytes is not None else self._longest

    def _parts(self, number: int) -> Iterator[Place]:
        """Yield each segment with its place; the smallest gets two pixels."""
        bar, line = self.chart.bars[number], self._line(number)
        parts = [part for part in bar.segments if part.nbytes > 0]
        length = line.width() * bar.nbytes / max(self._full(bar), 1)
        widths = [max(_LEAST, length * part.nbytes / bar.nbytes) for part in parts]
        total, left = sum(widths), line.left()
        for part, wanted in zip(parts, widths, strict=True):
            shown = wanted * max(length, _LEAST) / total
            yield Place(number, part, QRectF(left, line.top(), shown, line.height()))
            left += shown

    # Drawing.

    def _paint_words(self, painter: QPainter, number: int, bar: Bar) -> None:
        """Write a bar's caption at the left and its figure at the right; the caption is cut if need be."""
        line = self._line(number)
        room = QRectF(0, line.top() - CAPTION, self.width, CAPTION - 3)
        metrics = QFontMetricsF(self._font)
        painter.setFont(self._font)
        painter.setPen(self._tokens.color("bad" if bar.excess_nbytes else "text"))
        figure = metrics.horizontalAdvance(bar.text)
        painter.fillRect(room.adjusted(self.width - figure - 2, 0, 0, 0), self._tokens.color("surface"))
        painter.drawText(room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom, bar.text)
        left = max(self.width - figure - 2 * _PAD, 24.0)
        caption = metrics.elidedText(bar.label, Qt.TextElideMode.ElideRight, left)
        said = metrics.horizontalAdvance(caption)  # the lines of the scale do not cross the words
        painter.fillRect(QRectF(0, room.top(), said + 2, room.height()), self._tokens.color("surface"))
        painter.setPen(self._tokens.color("muted"))
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom, caption)

    def _paint_bar(self, painter: QPainter, number: int, bar: Bar) -> None:
        line = self._line(number)
        places = list(self._parts(number))
        drawn = line if bar.capacity_nbytes is not None else _around(places, line)
        outline = QPainterPath()
        outline.addRoundedRect(drawn, _RADIUS, _RADIUS)
        if bar.capacity_nbytes is not None:
            painter.setPen(QPen(self._tokens.color("border_strong"), 1))
            painter.setBrush(self._tokens.color("neutral_soft"))
            painter.drawPath(outline)
        painter.save()
        painter.setClipPath(outline, Qt.ClipOperation.IntersectClip)
        limit = self._limit(bar, line)
        for place in places:
            self._paint_part(painter, place, limit)
        if bar.excess_nbytes:
            self._paint_excess(painter, QRectF(limit, line.top(), line.right() - limit, line.height()))
        painter.restore()
        if bar.excess_nbytes:
            self._paint_limit(painter, limit, line)

    def _limit(self, bar: Bar, line: QRectF) -> float:
        """Return where a bar's room ends."""
        if bar.capacity_nbytes is None:
            return line.right()
        return line.left() + line.width() * bar.capacity_nbytes / self._full(bar)

    def _paint_part(self, painter: QPainter, place: Place, limit: float) -> None:
        color = color_of(self._tokens, self.chart, self._devices, place.part)
        painter.fillRect(place.area, color)
        room = QRectF(place.area)
        room.setRight(min(room.right(), limit))
        room.adjust(_PAD, 0, -_PAD, 0)
        painter.setFont(self._small)
        if QFontMetricsF(self._small).horizontalAdvance(place.part.label) <= room.width():
            painter.setPen(ink_on(color))
            painter.drawText(
                room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, place.part.label
            )

    def _paint_excess(self, painter: QPainter, area: QRectF) -> None:
        """Draw what there is no room for in red and hatched: the color alone would not do."""
        color = self._tokens.color("bad_fill")
        painter.fillRect(area, color)
        hatch = QColor(ink_on(color))
        hatch.setAlpha(150)
        painter.fillRect(area, QBrush(hatch, Qt.BrushStyle.BDiagPattern))

    def _paint_limit(self, painter: QPainter, x: float, line: QRectF) -> None:
        painter.setPen(QPen(self._tokens.color("text"), 2))
        painter.drawLine(QPointF(x, line.top() - 3), QPointF(x, line.bottom() + 3))

    def _paint_axis(self, painter: QPainter) -> None:
        """Draw the scale of the bars without a capacity, behind them."""
        lines = [number for number, bar in enumerate(self.chart.bars) if bar.capacity_nbytes is None]
        top, bottom = self._line(lines[0]).top() - 2, self.height - AXIS
        step = byte_step(self._longest, max(2, int(self.width // _TICK_PIXELS)))
        painter.setFont(self._small)
        metrics = QFontMetricsF(self._small)
        for number in range(int(self._longest // step) + 1):
            x = 0.5 + (self.width - 1) * number * step / self._longest
            painter.setPen(QPen(self._tokens.color("grid"), 1))
            painter.drawLine(QPointF(x, top), QPointF(x, bottom))
            text = format_nbytes(round(number * step)).replace(".0 ", " ") if number else "0"
            half = metrics.horizontalAdvance(text) / 2
            left = min(max(x - half, 0.0), self.width - 2 * half)
            painter.setPen(self._tokens.color("faint"))
            painter.drawText(QPointF(left, bottom + metrics.ascent() + 4), text)

    def _paint_mark(self, painter: QPainter, area: QRectF, *, is_focus: bool) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        style = Qt.PenStyle.DotLine if is_focus else Qt.PenStyle.SolidLine
        painter.setPen(QPen(self._tokens.color("text"), 2, style))
        painter.drawRect(area.adjusted(1, -1, -1, 1))


def _around(places: list[Place], line: QRectF) -> QRectF:
    """Return the area of all segments of a bar."""
    right = places[-1].area.right() if places else line.left()
    return QRectF(line.left(), line.top(), right - line.left(), line.height())
