"""Stacked bars of bytes, drawn with pyqtgraph.

Importing pyqtgraph and numpy takes longer than painting the whole window, so nothing imports this module before
the first paint, see `memory_panel`.
"""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QWheelEvent

from inspector.gui.overriding import override
from inspector.gui.theme import Theme
from inspector.session.screen import Bar, Chart
from inspector.units import format_nbytes

_BAR_PIXELS, _GAP_PIXELS, _AXIS_PIXELS = 26, 30, 30
_STEPS = (1, 2, 5, 10)
_RADIUS = 5.0


def byte_step(total: int, ticks: int) -> float:
    """Give the distance of ticks: 1, 2 or 5 times a power of ten, so that at most `ticks` fit."""
    step = 1.0
    while total / (step * 10) > ticks:
        step *= 10
    return next(step * factor for factor in _STEPS if total / (step * factor) <= ticks or factor == 10)


class ByteAxis(pg.AxisItem):
    """An axis that counts bytes in round decimal steps."""

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:  # noqa: N803
        """Give the places of the ticks, one for each 90 pixels at most."""
        step = byte_step(int(maxVal), max(2, int(size // 90)))
        return [(step, [step * number for number in range(int(maxVal // step) + 1)])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Name the ticks: `0`, `500 MB`, `1 GB`."""
        return ["0" if value == 0 else format_nbytes(round(value)).replace(".0 ", " ") for value in values]


class SegmentItem(pg.GraphicsObject):
    """One piece of a bar, with its label inside when there is room."""

    def __init__(self, label: str, nbytes: int, colour: QColor, ink: QColor, font: QFont) -> None:
        super().__init__()
        self.label, self._colour, self._ink, self._font = label, colour, ink, font
        self._area = QRectF()
        self.rounded = (False, False)
        self.setToolTip(f"{label}: {format_nbytes(nbytes)} ({nbytes:,} bytes)")

    def place(self, area: QRectF) -> None:
        """Set the area in bytes and lines."""
        self.prepareGeometryChange()
        self._area = area

    @override
    def boundingRect(self) -> QRectF:
        return self._area

    @override
    def paint(self, painter: QPainter, *_: object) -> None:
        painter.save()
        transform = painter.transform()
        box = transform.mapRect(self._area)
        painter.resetTransform()
        ratio = painter.device().devicePixelRatioF()
        painter.scale(ratio, ratio)
        box = QRectF(box.x() / ratio, box.y() / ratio, max(box.width() / ratio, 2.0), box.height() / ratio)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillPath(_rounded(box.adjusted(0, 0, -1 if box.width() > 4 else 0, 0), self.rounded), self._colour)
        if QFontMetricsF(self._font).horizontalAdvance(self.label) + 14 < box.width():
            painter.setFont(self._font)
            painter.setPen(self._ink)
            painter.drawText(box.adjusted(8, 0, -4, 0), Qt.AlignmentFlag.AlignVCenter, self.label)
        painter.restore()


def _rounded(box: QRectF, ends: tuple[bool, bool]) -> QPainterPath:
    path = QPainterPath()
    radius = min(_RADIUS, box.width() / 2) if any(ends) else 0.0
    path.addRoundedRect(box, radius, radius)
    square = box.adjusted(0 if not ends[0] else radius, 0, 0 if not ends[1] else -radius, 0)
    if not all(ends) and square.width() > 0:
        straight = QPainterPath()
        straight.addRect(square)
        path = path.united(straight)
    return path


def ink_on(colour: QColor) -> QColor:
    """Give black or white, whichever is easier to read on a colour."""
    channels = [value / 255 for value in (colour.red(), colour.green(), colour.blue())]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return QColor("#ffffff" if luminance < 0.33 else "#10131a")


class ChartView(pg.PlotWidget):
    """One `Chart`: bars on a common scale of bytes."""

    def __init__(self, theme: Theme, chart: Chart) -> None:
        super().__init__(background=None, axisItems={"bottom": ByteAxis("bottom")})
        self._theme, self._chart = theme, chart
        self.setAccessibleName(chart.title)
        self.setAccessibleDescription(describe(chart))
        self.setAcceptDrops(False)
        self.viewport().setAcceptDrops(False)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        plot = self.getPlotItem()
        plot.hideButtons()
        plot.setMenuEnabled(False)
        plot.hideAxis("left")
        plot.setMouseEnabled(x=False, y=False)
        plot.setContentsMargins(0, 0, 0, 0)
        self.setFixedHeight(len(chart.bars) * (_BAR_PIXELS + _GAP_PIXELS) + _AXIS_PIXELS)
        self._draw(plot)
        self._set_axis(plot.getAxis("bottom"))

    @override
    def wheelEvent(self, ev: QWheelEvent) -> None:
        ev.ignore()  # the page scrolls, the chart stands still

    def _draw(self, plot: Any) -> None:  # noqa: ANN401  # pyqtgraph has no types
        longest = max((sum(part.nbytes for part in bar.segments) for bar in self._chart.bars), default=0)
        plot.setXRange(0, max(longest, 1) * 1.02, padding=0)
        plot.setYRange(0, max(len(self._chart.bars), 1), padding=0)
        plot.invertY(True)
        for line, bar in enumerate(self._chart.bars):
            self._draw_bar(plot, line, bar)

    def _draw_bar(self, plot: Any, line: int, bar: Bar) -> None:  # noqa: ANN401  # pyqtgraph has no types
        share = _GAP_PIXELS / (_BAR_PIXELS + _GAP_PIXELS)
        self._write(plot, bar.label, 0, line + share, 0.0, "muted")
        longest = max((sum(part.nbytes for part in each.segments) for each in self._chart.bars), default=0)
        self._write(plot, bar.text, max(longest, 1) * 1.02, line + share, 1.0, "text")
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.9)
        shown = [part for part in bar.segments if part.nbytes > 0]
        start = 0
        for place, part in enumerate(shown):
            colour = self._theme.tokens.device(part.colour)
            item = SegmentItem(part.label, part.nbytes, colour, ink_on(colour), font)
            item.rounded = (place == 0, place == len(shown) - 1)
            item.place(QRectF(start, line + share, part.nbytes, 1 - share))
            plot.addItem(item, ignoreBounds=True)
            start += part.nbytes

    def _write(self, plot: Any, text: str, x: float, y: float, anchor: float, ink: str) -> None:  # noqa: ANN401, PLR0913, PLR0917  # pyqtgraph has no types; a place, a text and its look
        label = pg.TextItem(anchor=(anchor, 1.0), color=self._theme.tokens.colour(ink))
        label.setPlainText(text)
        label.setFont(self.font())
        label.setPos(x, y)
        plot.addItem(label, ignoreBounds=True)

    def _set_axis(self, axis: Any) -> None:  # noqa: ANN401  # pyqtgraph has no types
        tokens = self._theme.tokens
        axis.setPen(pg.mkPen(tokens.colour("border"), width=1))
        axis.setTextPen(pg.mkPen(tokens.colour("faint")))
        axis.setTickPen(pg.mkPen(tokens.colour("grid"), width=1))
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.9)
        axis.setTickFont(font)
        axis.setStyle(tickLength=0, tickTextOffset=8)
        axis.setHeight(_AXIS_PIXELS)
        axis.setGrid(255)


def describe(chart: Chart) -> str:
    """Say a chart in words, for a screen reader."""
    bars = []
    for bar in chart.bars:
        parts = ", ".join(f"{part.label} {format_nbytes(part.nbytes)}" for part in bar.segments)
        bars.append(f"{bar.label}: {parts or 'nothing'}")
    return "; ".join(bars)
