"""Draws charts with pyqtgraph: axes, bars, pictures and lines in a view box, and words on the paper around.

The only module that imports pyqtgraph, and numpy with it; `view.py` has it imported in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import (
    QGraphicsGridLayout,
    QGraphicsLineItem,
    QGraphicsPathItem,
    QGraphicsRectItem,
    QGraphicsSimpleTextItem,
    QGraphicsWidget,
    QWidget,
)

from inspector.gui.charts.drawing import Drawing, Tick
from inspector.gui.theme.theme import Tokens
from inspector.gui.widgets.labels import cut_path

Ticks = Callable[[float, float, float], Sequence[Tick]]
"""Given the ends of what is shown and its pixels, where numbers stand on an axis, and their texts."""
_COLUMNS = {"left": (0, 0), "bottom": (1, 1)}
_TICK, _OFFSET = 4, 3
_ON_TOP, _CLOSEST = 100.0, 0.02
_BEYOND = 40
"""So far may numbers at the ends of an axis reach beyond it."""


class Plot:
    """The pyqtgraph part of a chart; a `Drawing` asks it for what it wants to have drawn."""

    def __init__(self, parent: QWidget) -> None:
        self.widget = pg.GraphicsView(parent, background=None)
        self.widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.widget.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)  # they are for the chart
        self.widget.setAcceptDrops(False)  # the window takes what is dropped
        self.widget.setStyleSheet("background: transparent")
        self.widget.setAntialiasing(True)
        self._paper = QGraphicsWidget()
        self._grid = QGraphicsGridLayout(self._paper)
        self._grid.setSpacing(0)
        self._box = pg.ViewBox(enableMenu=False, enableMouse=False)
        self._box.disableAutoRange()
        self._grid.addItem(self._box, 0, 1)
        self._axes = {side: pg.AxisItem(side, linkView=self._box) for side in _COLUMNS}
        for side, place in _COLUMNS.items():
            self._grid.addItem(self._axes[side], *place)
            self._axes[side].enableAutoSIPrefix(False)  # the texts of its ticks are ours
            self._axes[side].setPen(QPen(Qt.PenStyle.NoPen))
            self._axes[side].setZValue(-200)  # below the view box, which is at -100: so the grid is
        self.widget.setCentralItem(self._paper)
        self._drawing = Drawing()
        self._ticks: dict[str, Ticks] = {}
        self._whole: dict[str, tuple[float, float]] = {}
        self._notes: list[pg.QtWidgets.QGraphicsItem] = []
        self._outlines: list[QGraphicsRectItem] = []
        self._box.sigRangeChanged.connect(self._on_range)

    def show(self, drawing: Drawing, tokens: Tokens, font: QFont) -> None:
        self._drawing, self._tokens, self._font = Drawing(), tokens, font  # nothing, while the range changes
        self._small = QFont(font)
        self._small.setPointSizeF(font.pointSizeF() * 0.9)
        self.widget.resizeEvent(None)  # which Qt puts off while the widget is hidden
        self._ticks.clear()
        self._forget_notes()
        self._outlines.clear()
        self._box.clear()
        for side, axis in self._axes.items():
            axis.setTicks([])
            axis.setLabel()
            (axis.setWidth if side == "left" else axis.setHeight)(0)
        self.set_margins(*drawing.margins)
        self._box.invertY(drawing.is_down)
        drawing.draw(self, tokens)
        self._drawing = drawing
        self._on_range()

    # What drawings ask for.

    @property
    def room(self) -> QRectF:
        """What the axes enclose, in pixels of the widget; one at least."""
        self._grid.activate()
        area = QRectF(self._box.geometry())
        return area.united(QRectF(area.topLeft(), QSizeF(1, 1)))

    def set_margins(self, left: float, top: float, right: float, bottom: float) -> None:
        """Leave room around the axes."""
        self._grid.setContentsMargins(left, top, right, bottom)

    def advance(self, text: str, *, small: bool = False) -> float:
        return QFontMetricsF(self._small if small else self._font).horizontalAdvance(text)

    def set_axis(
        self, side: str, ticks: Ticks, title: str = "", widest: str = "", *, grid: bool = False
    ) -> None:
        """Show an axis; the left one is as wide as its widest text."""
        axis, color = self._axes[side], self._tokens.color
        axis.setTextPen(QPen(color("muted")))
        axis.setTickPen(QPen(color("grid" if grid else "border_strong"), 1))
        axis.setGrid(255 if grid else False)
        axis.setStyle(
            tickFont=self._small,
            tickLength=0 if grid else _TICK,
            tickTextOffset=_TICK + _OFFSET if grid else _OFFSET,
            tickAlpha=255,
            hideOverlappingLabels=_BEYOND,
            autoExpandTextSpace=False,
        )
        height = QFontMetricsF(self._small).height()
        axis.label.setFont(self._small)
        axis.setLabel(title or None)
        room = (height + 4 if title else 0) + _TICK + 2 * _OFFSET
        if side == "left":
            axis.setWidth(room + self.advance(widest, small=True))
        else:
            axis.setHeight(room + height)
        self._ticks[side] = ticks

    def set_range(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._whole = {"xRange": x, "yRange": y}
        least = [(high - low) * _CLOSEST for low, high in (x, y)]
        self._box.setLimits(
            xMin=x[0], xMax=x[1], yMin=y[0], yMax=y[1], minXRange=least[0], minYRange=least[1]
        )
        self.show_all()

    def add_bars(self, areas: Sequence[QRectF], brushes: Sequence[QColor | QBrush]) -> None:
        if areas:
            x0, y0, width, height = zip(*(area.getRect() for area in areas), strict=True)
            shown = [QBrush(brush) for brush in brushes]
            self._box.addItem(
                pg.BarGraphItem(x0=x0, y0=y0, width=width, height=height, pen=None, brushes=shown)
            )

    def add_picture(self, levels: bytes, rows: int, columns: int, colors: Sequence[QColor]) -> None:
        """Draw a picture, a unit of the axes for each of its cells."""
        table = np.array([(color.red(), color.green(), color.blue()) for color in colors], dtype=np.uint8)
        cells = np.frombuffer(levels, dtype=np.uint8).reshape(rows, columns)
        self._box.addItem(
            pg.ImageItem(cells, axisOrder="row-major", autoLevels=False, levels=(0, 255), lut=table)
        )

    def add_line(
        self, places: Sequence[float], values: Sequence[float], color: QColor, style: Qt.PenStyle
    ) -> None:
        """Draw a line, broken where a value is NaN, with a dot at each other one."""
        pen = self._pen(color, style)
        dots = {"symbol": "o", "symbolSize": 6, "symbolPen": None, "symbolBrush": color}
        self._box.addItem(
            pg.PlotDataItem(
                np.array(places), np.array(values), pen=pen, connect="finite", antialias=True, **dots
            )
        )

    def outline(self, part: int | None, marks: Sequence[int] = ()) -> None:
        for item in self._outlines:
            self._box.removeItem(item)
        self._outlines = []
        solid, dots = Qt.PenStyle.SolidLine, Qt.PenStyle.DotLine
        shown = [(mark, solid) for mark in marks if mark != part]
        shown += [] if part is None else [(part, dots if part in marks else solid)]
        for place, style in shown:
            item = QGraphicsRectItem(self._reached(self._drawing.area(place)))
            item.setPen(self._pen(self._tokens.color("text"), style))
            item.setZValue(_ON_TOP)
            self._box.addItem(item, ignoreBounds=True)
            self._outlines.append(item)

    def _pen(self, color: QColor, style: Qt.PenStyle) -> QPen:
        """Return a pen that is as wide at any zoom; such a pen counts the pixels of the screen."""
        width = 2.0 * self.widget.devicePixelRatioF()
        pen = QPen(color, width, style, j=Qt.PenJoinStyle.MiterJoin)
        pen.setCosmetic(True)
        return pen

    def _reached(self, area: QRectF) -> QRectF:
        reach = self._drawing.reach or -1.0  # the line of an area lies within it
        width, height = (reach * size for size in self._box.viewPixelSize())
        return area.adjusted(-width, -height, width, height)

    # Words and signs, in pixels of the widget.

    def write(
        self, room: QRectF, text: str, color: QColor, *, right: bool = False, small: bool = False
    ) -> None:
        font = self._small if small else self._font
        item = QGraphicsSimpleTextItem(cut_path(text, QFontMetricsF(font), room.width() + 1))
        item.setFont(font)
        item.setBrush(color)
        size = item.boundingRect()
        left = room.right() - size.width() if right else room.left()
        item.setPos(left, room.center().y() - size.height() / 2)
        self._note(item)

    def stroke(self, line: QLineF, pen: QPen) -> None:
        item = QGraphicsLineItem(line)
        item.setPen(pen)
        self._note(item)

    def fill(self, area: QRectF, color: QColor | QBrush, radius: float, *, corners: bool = False) -> None:
        path = QPainterPath()
        path.addRoundedRect(area, radius, radius)
        if corners:
            path.addRect(area)  # what lies in both is left free
        item = QGraphicsPathItem(path)
        item.setPen(QPen(Qt.PenStyle.NoPen))
        item.setBrush(color)
        self._note(item)

    def _note(self, item: pg.QtWidgets.QGraphicsItem) -> None:
        item.setParentItem(self._paper)
        item.setZValue(1)
        self._notes.append(item)

    def _forget_notes(self) -> None:
        for note in self._notes:
            self.widget.scene().removeItem(note)
        self._notes.clear()

    # Where things are, and how near.

    def point_of(self, place: QPointF) -> QPointF:
        return QPointF(self._box.mapViewToScene(place))

    def part_at(self, point: QPointF) -> int | None:
        place, drawing = self._box.mapSceneToView(point), self._drawing
        if not self._box.sceneBoundingRect().contains(point):
            return None
        if not drawing.reach:
            return drawing.part_at(place.x(), place.y())
        near = self._reached(QRectF(place, place))
        return next(
            (part for part in range(drawing.count) if near.contains(drawing.area(part).center())), None
        )

    def zoom(self, factor: float, point: QPointF) -> None:
        self._box.scaleBy(
            center=self._box.mapSceneToView(point), **dict.fromkeys(self._drawing.zooms, factor)
        )

    def move(self, by: QPointF) -> None:
        width, height = self._box.viewPixelSize()
        ways = {"x": -by.x() * width, "y": by.y() * height * (-1 if self._drawing.is_down else 1)}
        self._box.translateBy(**{axis: ways[axis] for axis in self._drawing.zooms})

    def show_all(self) -> None:
        self._box.setRange(**self._whole, padding=0)

    def _on_range(self, *_: object) -> None:
        """Write the numbers that stand at the axes now, and all other words."""
        ((left, right), (low, high)), room = self._box.viewRange(), self.room
        for side, ticks in self._ticks.items():
            ends = (low, high, room.height()) if side == "left" else (left, right, room.width())
            self._axes[side].setTicks([list(ticks(*ends))])
        self._forget_notes()
        self._drawing.annotate(self, self._tokens)

    def paint(self, painter: QPainter) -> None:
        scene = self.widget.scene()
        for item in self._outlines:
            item.setVisible(False)
        scene.prepareForPaint()
        area = QRectF(self.widget.rect())
        scene.render(painter, area, area)
        for item in self._outlines:
            item.setVisible(True)
