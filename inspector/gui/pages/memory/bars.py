"""Stacked bars of bytes, drawn with pyqtgraph.

Importing pyqtgraph and numpy takes longer than painting the whole window, so nothing imports this module
before the first paint, see `memory.panel`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QWheelEvent
from PySide6.QtWidgets import QGraphicsSceneHoverEvent

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.session.screen import Bar, Chart, Segment
from inspector.units import format_nbytes

_BAR_PIXELS, _GAP_PIXELS, _AXIS_PIXELS = 26, 30, 30
_STEPS = (1, 2, 5, 10)
_RADIUS = 5.0


def byte_step(total: int, ticks: int) -> float:
    """Return the distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most `ticks`."""
    step = 1.0
    while total / (step * 10) > ticks:
        step *= 10
    return next(step * factor for factor in _STEPS if total / (step * factor) <= ticks or factor == 10)


class ByteAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """An axis that counts bytes in round decimal steps."""

    @override
    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """Return the positions of the ticks, at most one for each 90 pixels."""
        step = byte_step(int(maxVal), max(2, int(size // 90)))
        return [(step, [step * number for number in range(int(maxVal // step) + 1)])]

    @override
    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Return the labels of the ticks: `0`, `500 MB`, `1 GB`."""
        return ["0" if value == 0 else format_nbytes(round(value)).replace(".0 ", " ") for value in values]


class BarItem(pg.GraphicsObject):  # type: ignore[misc]  # pyqtgraph has no types
    """One stacked bar; segments are labeled inside where there is room, and always in a tooltip."""

    def __init__(self, bar: Bar, palette: Callable[[Segment], QColor], font: QFont) -> None:
        super().__init__()
        self._parts = [part for part in bar.segments if part.nbytes > 0]
        self._palette, self._font = palette, font
        self._area = QRectF(0, 0, sum(part.nbytes for part in self._parts), 1)
        self.setAcceptHoverEvents(True)

    def place(self, line: float, height: float) -> None:
        """Set the position and height of the bar, in lines."""
        self.prepareGeometryChange()
        self._area = QRectF(0, line, self._area.width(), height)

    @override
    def boundingRect(self) -> QRectF:
        return self._area

    @override
    def paint(self, painter: QPainter, *_: object) -> None:
        painter.save()
        box = painter.transform().mapRect(self._area)  # in pixels: text must not be stretched
        painter.resetTransform()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outline = QPainterPath()
        outline.addRoundedRect(box, _RADIUS, _RADIUS)
        painter.setClipPath(outline)
        painter.setFont(self._font)
        for part, left, width in self._places(box):
            self._paint_part(painter, part, QRectF(left, box.top(), width, box.height()))
        painter.restore()

    @override
    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        start = 0.0
        for part in self._parts:
            if start <= event.pos().x() <= start + part.nbytes:
                share = part.nbytes / max(self._area.width(), 1)
                text = f"{part.label}: {format_nbytes(part.nbytes)}, {share:.1%} ({part.nbytes:,} bytes)"
                self.setToolTip(plain_tooltip(text))
            start += part.nbytes

    def _places(self, box: QRectF) -> Iterator[tuple[Segment, float, float]]:
        """Yield each segment with its left edge and width; the smallest gets two pixels."""
        total = max(self._area.width(), 1)
        widths = [max(2.0, box.width() * part.nbytes / total) for part in self._parts]
        left = box.left()
        for part, width in zip(self._parts, widths, strict=True):
            shown = width * box.width() / sum(widths)
            yield part, left, shown
            left += shown

    def _paint_part(self, painter: QPainter, part: Segment, area: QRectF) -> None:
        color = self._palette(part)
        painter.fillRect(area, color)
        if QFontMetricsF(self._font).horizontalAdvance(part.label) + 16 < area.width():
            painter.setPen(ink_on(color))
            painter.drawText(area.adjusted(8, 0, -4, 0), Qt.AlignmentFlag.AlignVCenter, part.label)


def ink_on(color: QColor) -> QColor:
    """Return black or white, whichever is easier to read on a color."""
    channels = [value / 255 for value in (color.red(), color.green(), color.blue())]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return QColor("#ffffff" if luminance < 0.33 else "#10131a")


class ChartView(pg.GraphicsView):  # type: ignore[misc]  # pyqtgraph has no types
    """One `Chart`: bars on a common scale of bytes.

    A bare view box and an axis: a `PlotItem` would bring menus, buttons and a form of 50 widgets along.
    """

    def __init__(self, theme: Theme, chart: Chart, color_of: Callable[[Segment], QColor]) -> None:
        super().__init__(background=None)
        self._theme = theme
        self._color_of = color_of
        self.setAcceptDrops(False)
        self.viewport().setAcceptDrops(False)
        self.viewport().setAutoFillBackground(False)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        layout = pg.GraphicsLayout()
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        self.setCentralItem(layout)
        self._box = layout.addViewBox(row=0, col=0, enableMenu=False, enableMouse=False, invertY=True)
        self._axis = ByteAxis("bottom", linkView=self._box)
        layout.addItem(self._axis, row=1, col=0)
        self._small = QFont(self.font())
        self._small.setPointSizeF(self._small.pointSizeF() * 0.9)
        self.show_chart(chart)

    def show_chart(self, chart: Chart) -> None:
        """Draw a chart in place of the last one, in the current theme."""
        self.setAccessibleName(chart.title)
        self.setAccessibleDescription(describe(chart))
        self.setFixedHeight(len(chart.bars) * (_BAR_PIXELS + _GAP_PIXELS) + _AXIS_PIXELS)
        self._box.clear()
        longest = max((sum(part.nbytes for part in bar.segments) for bar in chart.bars), default=0) or 1
        self._box.setRange(xRange=(-0.008 * longest, longest), yRange=(0, max(len(chart.bars), 1)), padding=0)
        for line, bar in enumerate(chart.bars):
            self._draw_bar(line, bar, longest)
        self._style_axis(self._axis)

    @override
    def wheelEvent(self, ev: QWheelEvent) -> None:
        ev.ignore()  # the page scrolls, the chart does not

    def _draw_bar(self, line: int, bar: Bar, longest: int) -> None:
        share = _GAP_PIXELS / (_BAR_PIXELS + _GAP_PIXELS)
        caption = pg.TextItem(anchor=(0, 1), color=self._theme.tokens.color("muted"))
        caption.setPlainText(bar.label)
        caption.setPos(-0.008 * longest, line + share)
        figure = pg.TextItem(anchor=(1, 1), color=self._theme.tokens.color("text"))
        figure.setPlainText(bar.text)
        figure.setPos(longest, line + share)
        for label in (caption, figure):
            label.setFont(self.font())
            self._box.addItem(label, ignoreBounds=True)
        item = BarItem(bar, self._color_of, self._small)
        item.place(line + share, 1 - share)
        self._box.addItem(item, ignoreBounds=True)

    def _style_axis(self, axis: Any) -> None:  # noqa: ANN401  # pyqtgraph has no types
        tokens = self._theme.tokens
        axis.setPen(pg.mkPen(tokens.color("border"), width=1))
        axis.setTextPen(pg.mkPen(tokens.color("faint")))
        axis.setTickPen(pg.mkPen(tokens.color("grid"), width=1))
        axis.setTickFont(self._small)
        axis.setStyle(tickLength=0, tickTextOffset=8, hideOverlappingLabels=False)
        axis.setHeight(_AXIS_PIXELS)
        axis.setGrid(255)
        axis.setZValue(self._box.zValue() - 1)  # its grid lies behind the bars


def describe(chart: Chart) -> str:
    """Describe a chart in words, for screen readers."""
    bars = []
    for bar in chart.bars:
        parts = ", ".join(f"{part.label} {format_nbytes(part.nbytes)}" for part in bar.segments)
        bars.append(f"{bar.label}: {parts or 'nothing'}")
    return "; ".join(bars)
