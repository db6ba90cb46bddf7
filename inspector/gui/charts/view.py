"""The widget of every chart: it shows a `Drawing`, moves over its parts, and is read aloud.

pyqtgraph takes a third of a second to import, more than all else that the window does before it stands.
So nothing imports it before the first chart is in sight, which is after the tree was painted. Then a thread
imports it (`_Loading`), which holds the interpreter in short pieces alone, and each chart is made on the
main thread in a turn of the event loop of its own. What the thread would make of PySide is made before, in
turns too. Until then a chart is an empty frame of the size that it
will have, with its name and its description.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from PySide6 import QtCore, QtGui, QtWidgets
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from shiboken6 import isValid

from inspector.gui.charts.drawing import Drawing
from inspector.gui.charts.saving import Picture, Saved, as_bytes
from inspector.gui.tasks import ThreadRunner, Turns
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from inspector.gui.charts.plot import Plot

RING = 2
"""Room for the ring of the focus around a chart."""
_PLOT = "inspector.gui.charts.plot"
_CLASSES_A_TURN = 16
"""They take some two milliseconds."""
_STEPS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}
_ZOOMS = {Qt.Key.Key_Plus: 0.8, Qt.Key.Key_Equal: 0.8, Qt.Key.Key_Minus: 1.25}
_CHOICES = {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}
_HINT = "Ctrl and the wheel zoom, dragging moves, a double click shows all; by key: +, \u2212, and 0."


class _Loading(QObject):
    """Imports pyqtgraph once, in a thread; then makes one of the charts that wait in each turn."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[ChartView] = []
        self._runner = ThreadRunner()
        self._turns: Turns | None = None
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._make_one)
        self._is_done = False

    def add(self, view: ChartView) -> None:
        if view not in self._waiting:
            self._waiting.append(view)
        if self._turns is None:
            self._turns = Turns(self)
            self._turns.begin(self._import())
        elif self._is_done:
            self._timer.start()

    def _import(self) -> Iterator[None]:
        """Have PySide make its classes, then import: it makes each when it is first asked for.

        pyqtgraph asks for all of them, and two threads that make classes at one time end the program.
        """
        for module in (QtCore, QtGui, QtWidgets):
            for place, name in enumerate(dir(module)):
                getattr(module, name)
                if place % _CLASSES_A_TURN == 0:
                    yield
        self._runner.run(lambda _: import_module(_PLOT), Progress(), self._on_done)

    def _on_done(self, _: object) -> None:
        self._is_done = True
        self._timer.start()

    def _make_one(self) -> None:
        view = self._waiting.pop(0)
        if not self._waiting:
            self._timer.stop()
        if isValid(view):
            view.plot()


_LOADING = _Loading()


class ChartView(QWidget):
    """Shows a `Drawing`, whatever it draws.

    The pointer and the arrow keys go from part to part and read it; Return and a click search for it.
    """

    query_wanted = Signal(str)
    part_chosen = Signal(int)

    def __init__(self, theme: Theme, drawing: Drawing | None = None) -> None:
        super().__init__()
        self.theme = theme
        self.drawing = drawing or Drawing()
        self._marks: Sequence[int] = ()
        self._plot: Plot | None = None
        self._current: int | None = None
        self._pressed: QPointF | None = None
        self._is_stale = True
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.draw_anew)

    def show_drawing(self, drawing: Drawing) -> None:
        self.drawing, self._current, self._marks = drawing, None, ()
        if drawing.height:
            self.setFixedHeight(drawing.height + 2 * RING)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if drawing.count else Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(drawing.name)
        self.setAccessibleDescription(
            f"{drawing.description} {_HINT}" if drawing.zooms else drawing.description
        )
        self.draw_anew()

    def show_marks(self, queries: Collection[str]) -> None:
        found = [self.drawing.query(part) for part in range(self.drawing.count)]
        self._marks = [part for part, query in enumerate(found) if query and query in queries]
        self._outline()

    @property
    def is_drawn(self) -> bool:
        return self._plot is not None or not self.drawing.count

    def plot(self) -> Plot:
        """Return what draws, with the present chart in it; made now if it is not there yet."""
        if self._plot is None:
            from inspector.gui.charts.plot import Plot

            self._plot = Plot(self)
            self._plot.widget.show()
        if self._is_stale:
            self._is_stale = False
            self._plot.widget.setGeometry(self.rect().adjusted(RING, RING, -RING, -RING))
            self._plot.show(self.drawing, self.theme.tokens, self.font())
            self._outline()
        return self._plot

    def draw_anew(self) -> None:
        self._is_stale = True
        self.update()
        if self._plot is None and self.drawing.count and self.isVisible():
            _LOADING.add(self)

    def center_of(self, part: int) -> QPoint:
        return (self.plot().point_of(self.drawing.area(part).center()) + QPointF(RING, RING)).toPoint()

    def _outline(self) -> None:
        if self._plot is not None and not self._is_stale:
            self._plot.outline(self._current, self._marks)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.draw_anew()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._plot is not None:
            self._plot.widget.setGeometry(self.rect().adjusted(RING, RING, -RING, -RING))
        self.draw_anew()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._plot is not None:
            self.plot()
        if self.hasFocus():
            painter = QPainter(self)
            painter.setPen(QPen(self.theme.tokens.color("accent"), 1))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
            painter.end()

    # What the user does.

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place, zooms = event.position(), self.drawing.zooms
        if self._pressed is not None and zooms:
            self.plot().move(place - self._pressed)
            self._pressed = place
            return
        part = self._part_at(place)
        is_link = part is not None and bool(self.drawing.query(part))
        self.setCursor(Qt.CursorShape.PointingHandCursor if is_link else Qt.CursorShape.ArrowCursor)
        self._read(part, event.globalPosition().toPoint())

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = event.position()
            self._read(self._part_at(self._pressed), event.globalPosition().toPoint())
            self._choose(self._current)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._pressed = None

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.plot().show_all()

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        if not (self.drawing.zooms and event.modifiers() & Qt.KeyboardModifier.ControlModifier):
            event.ignore()  # the page around it scrolls
            return
        self.plot().zoom(0.999 ** event.angleDelta().y(), event.position() - QPointF(RING, RING))

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        if not self.hasFocus():
            self._read(None, QPoint())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, drawing = Qt.Key(event.key()), self.drawing
        if key in _STEPS and drawing.count:
            part = drawing.step(self._current, *_STEPS[key])
            self._read(part, self.mapToGlobal(self.center_of(part)))
        elif key in _CHOICES and self._current is not None:
            self._choose(self._current)
        elif drawing.zooms and key in _ZOOMS:
            middle = self.rect().center() if self._current is None else self.center_of(self._current)
            self.plot().zoom(_ZOOMS[key], QPointF(middle) - QPointF(RING, RING))
        elif drawing.zooms and key == Qt.Key.Key_0:
            self.plot().show_all()
        else:
            super().keyPressEvent(event)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._read(None, QPoint())

    def _part_at(self, point: QPointF) -> int | None:
        return None if self._plot is None else self.plot().part_at(point - QPointF(RING, RING))

    def _read(self, part: int | None, at: QPoint) -> None:
        """Show what a part is, where it can be seen and to screen readers."""
        if part == self._current:
            return
        self._current = part
        words = "" if part is None else self.drawing.words(part)
        self.setAccessibleName(f"{self.drawing.name}. {words}" if words else self.drawing.name)
        self._outline()
        QToolTip.showText(at, plain_tooltip(words), self)

    def _choose(self, part: int | None) -> None:
        if part is None:
            return
        self.part_chosen.emit(part)
        query = self.drawing.query(part)
        if query:
            self.query_wanted.emit(query)


def saved_charts(
    views: Sequence[ChartView], title: str, source: str, csv: Callable[[], str] | None = None
) -> Saved:

    def make(kind: str) -> bytes:
        if csv is not None and kind == "csv":
            return csv().encode()
        width, plots = max(view.width() for view in views), [view.plot() for view in views]
        titles = [title] if len(views) == 1 else [view.drawing.name for view in views]
        pictures = [Picture(plot.widget.height(), plot.paint) for plot in plots]
        parts = list(zip(titles, pictures, strict=True))
        return as_bytes(parts, width, views[0].theme.tokens, views[0].font(), title=title, kind=kind)

    return Saved(title=title, source=source, make=make)
