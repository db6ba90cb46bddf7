"""Bars of bytes as a widget: a click on a segment searches for it, and what is selected is outlined.

Drawn with Qt alone: the page needs neither numpy nor pyqtgraph.
"""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from inspector.gui.pages.memory.bars_paint import BarsPainter, Place
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.session.screen import Bar, Chart
from inspector.units import format_nbytes

_NOTHING = Chart(title="", bars=())


class BarsView(QWidget):
    """Shows the bars of a `Chart`."""

    query_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._chart = _NOTHING
        self._devices: frozenset[str] = frozenset()
        self._marks: Collection[str] = ()
        self._focused: int | None = None
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_chart(self, chart: Chart, devices: frozenset[str]) -> None:
        """Show another chart."""
        self._chart, self._devices, self._focused = chart, devices, None
        self.setAccessibleName(chart.title)
        self.setAccessibleDescription(describe(chart))
        can_filter = any(part.query for bar in chart.bars for part in bar.segments)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if can_filter else Qt.FocusPolicy.NoFocus)
        self.setFixedHeight(round(self.painted().height))
        self.update()

    def show_marks(self, marks: Collection[str]) -> None:
        """Outline the segments that what is selected belongs to, by their searches."""
        if marks != self._marks:
            self._marks = marks
            self.update()

    def painted(self) -> BarsPainter:
        """Return what draws the chart at the present width."""
        return BarsPainter(self._chart, self.width(), self._theme.tokens, self.font(), self._devices)

    @override
    def sizeHint(self) -> QSize:
        return QSize(320, round(self.painted().height))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.painted().paint(painter, self._marks, self._focused if self.hasFocus() else None)
        painter.end()

    # What the user does.

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        is_link = place is not None and bool(place.part.query)
        self.setCursor(Qt.CursorShape.PointingHandCursor if is_link else Qt.CursorShape.ArrowCursor)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        if place is not None and event.button() == Qt.MouseButton.LeftButton:
            self._choose(place)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        places, key = self.painted().places, event.key()
        steps = {Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1}
        chosen = {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}
        if places and key in steps:
            start = -1 if self._focused is None and steps[Qt.Key(key)] > 0 else self._focused or 0
            self._focused = min(max(start + steps[Qt.Key(key)], 0), len(places) - 1)
            self.setAccessibleDescription(self._words(places[self._focused]))
            self.update()
        elif self._focused is not None and key in chosen:
            self._choose(places[self._focused])
        else:
            super().keyPressEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self._focused is None and self._chart.bars:
            self._focused = 0
            self.update()

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            place = self._place_at(QPointF(event.pos()))
            if place is not None:
                words = plain_tooltip(self._words(place))
                QToolTip.showText(event.globalPos(), words, self, place.area.toAlignedRect())
            return True
        return super().event(event)

    def _place_at(self, point: QPointF) -> Place | None:
        return next((place for place in self.painted().places if place.area.contains(point)), None)

    def _choose(self, place: Place) -> None:
        if place.part.query:
            self.query_wanted.emit(place.part.query)

    def _words(self, place: Place) -> str:
        """Return what a segment is, its share of the bar, and that a click finds it."""
        bar, part = self._chart.bars[place.bar], place.part
        share = part.nbytes / bar.nbytes
        said = f"{part.label}: {format_nbytes(part.nbytes)}, {share:.1%} ({part.nbytes:,} bytes)"
        found = f"\nClick to search for {part.query}" if part.query else ""
        return f"{said}{_limit_words(bar)}{found}"


def describe(chart: Chart) -> str:
    """Describe a chart in words, for screen readers."""
    bars = []
    for bar in chart.bars:
        parts = ", ".join(f"{part.label} {format_nbytes(part.nbytes)}" for part in bar.segments)
        bars.append(f"{bar.label}: {parts or 'nothing'}{_limit_words(bar)}")
    return "; ".join(bars)


def _limit_words(bar: Bar) -> str:
    if bar.capacity_nbytes is None:
        return ""
    room = f", room for {format_nbytes(bar.capacity_nbytes)}"
    return f"{room}: {format_nbytes(bar.excess_nbytes)} too much" if bar.excess_nbytes else room
