"""The map of modules as a widget: the pointer and the keys move over its cells, and choose rows."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QColor,
    QFont,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from inspector.gui.charts.saving import Picture
from inspector.gui.pages.memory.treemap_paint import TreemapPainter, snapped
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.report.charts.areas import Property
from inspector.report.charts.modules import ModuleMap, facts_of, labels_of, parents_of
from inspector.report.charts.treemap import Cell, Direction, lay_out
from inspector.report.charts.treemap import Picture as Treemap

_NOTHING = Treemap(0, (), ())
_STEPS: dict[int, Direction] = {
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Down: "down",
}
_NAME = "Map of modules"


class TreemapView(QWidget):
    """Shows a `ModuleMap`."""

    node_chosen = Signal(int)
    root_wanted = Signal(int)
    pointed = Signal(str)
    narrowed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._page: ModuleMap | None = None
        self._matches: Sequence[int] | None = None
        self._selected: int | None = None
        self._picture = _NOTHING
        self._rests: list[Cell] = []
        self._drawn: QPixmap | None = None
        self._cursor: int | None = None
        self._hovered: int | None = None
        self.setAccessibleName(_NAME)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.draw_anew)

    @property
    def picture(self) -> Treemap:
        return self._picture

    @property
    def cursor_cell(self) -> Cell | None:
        return None if self._cursor is None else self._picture.cells[self._cursor]

    def show_map(self, page: ModuleMap, selected: int | None, matches: Sequence[int] | None) -> None:
        is_other = self._page is None or (page.areas, page.root) != (self._page.areas, self._page.root)
        is_drawn = not is_other and self._page == page and self._matches is matches
        self._page, self._selected, self._matches = page, selected, matches
        if is_other:
            self._rests = []
            self._lay_out()
        if not is_drawn:
            self.draw_anew()
        self.update()

    @property
    def rests(self) -> tuple[str, ...]:
        """What of the root is shown, from cell of smaller rows to cell; nothing where all of it is."""
        page = self._page
        return () if page is None else tuple(labels_of(page, rest)[0] for rest in self._rests)

    def leave_rests(self, count: int = 0) -> None:
        """Show all of the root again, or what the first of these cells stand for."""
        if len(self._rests) > count:
            self._narrow(self._rests[:count])

    def _narrow(self, rests: list[Cell]) -> None:
        self._rests = rests
        self._lay_out()
        self.draw_anew()
        self.narrowed.emit()

    def draw_anew(self) -> None:
        self._drawn = None
        self.update()

    def color_of(self, color: int, by: Property) -> QColor:
        """Return the color of a kind; what is no device has none that devices have."""
        tokens = self._theme.tokens
        return tokens.device(color) if by == "device" else tokens.shade(color)

    @override
    def sizeHint(self) -> QSize:
        return QSize(420, 360)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(160, 120)

    # What is drawn.

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._page is None:
            return
        if self._drawn is None:
            self._drawn = self._draw(self._page)
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._drawn)
        self._paint_marks(painter, self._page)
        painter.end()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()
        self.draw_anew()

    def small_font(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.9)
        return font

    def _lay_out(self) -> None:
        if self._page is not None:
            beyond = self._rests[-1].shown if self._rests else ()
            size = self.width(), self.height()
            self._picture = lay_out(self._page.areas, self._page.root, *size, beyond)
            self._cursor = self._hovered = None

    def _draw(self, page: ModuleMap) -> QPixmap:
        ratio = self.devicePixelRatioF()
        drawn = QPixmap(round(self.width() * ratio), round(self.height() * ratio))
        drawn.setDevicePixelRatio(ratio)
        drawn.fill(self._theme.tokens.color("surface"))
        painter = QPainter(drawn)
        self._brush(page).paint(painter, self._picture, self._matches)
        painter.end()
        return drawn

    def as_picture(self) -> Picture:
        page, treemap, matches = self._page, self._picture, self._matches

        def paint(painter: QPainter) -> None:
            if page is not None:
                self._brush(page).paint(painter, treemap, matches)

        return Picture(self.height(), paint)

    def _brush(self, page: ModuleMap) -> TreemapPainter:
        colors = [self.color_of(kind.color, page.coloring.by) for kind in page.coloring.kinds]
        return TreemapPainter(page, self._theme.tokens, colors, self.small_font())

    def _paint_marks(self, painter: QPainter, page: ModuleMap) -> None:
        if self._hovered is not None:
            self._outline(painter, snapped(self._picture.cells[self._hovered].box), 1)
        place = self._selected_place(page)
        if place is not None:
            self._outline(painter, place, 3)
        if self._cursor is not None and self.hasFocus():
            area = snapped(self._picture.cells[self._cursor].box).adjusted(4, 4, -5, -5)
            painter.setPen(QPen(self._theme.tokens.color("text"), 1, Qt.PenStyle.DotLine))
            painter.drawRect(area)

    def _selected_place(self, page: ModuleMap) -> QRect | None:
        node = self._selected
        if node is None or not 0 < node < len(page.areas.tree.nodes) or not page.areas.nbytes(node):
            return None
        box = self._picture.box_of(node, parents_of(page.areas.tree, node))
        return None if box is None else snapped(box)

    def _outline(self, painter: QPainter, area: QRect, pixels: int) -> None:
        """Draw a line that is seen on every color: dark within light, or light within dark."""
        tokens = self._theme.tokens
        painter.setBrush(Qt.BrushStyle.NoBrush)
        inset = pixels // 2
        painter.setPen(QPen(tokens.color("text"), pixels, j=Qt.PenJoinStyle.MiterJoin))
        painter.drawRect(area.adjusted(inset, inset, -inset - 1, -inset - 1))
        inset += (pixels + 1) // 2
        painter.setPen(QPen(tokens.color("surface"), 1, j=Qt.PenJoinStyle.MiterJoin))
        painter.drawRect(area.adjusted(inset, inset, -inset - 1, -inset - 1))

    # What the user does.

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(self._cell_at(event.position()))

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(None)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self._cell_at(event.position())
        if event.button() == Qt.MouseButton.BackButton:
            self._go_out()
        elif index is not None:
            self._move_to(index)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        index = self._cell_at(event.position())
        if index is not None and event.button() == Qt.MouseButton.LeftButton:
            self._go_into(self._picture.cells[index])

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        cells, key = self._picture.cells, event.key()
        if key == Qt.Key.Key_Backspace:
            self._go_out()
        elif not cells:
            super().keyPressEvent(event)
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self._cursor is not None:
            self._go_into(cells[self._cursor])
        elif key in _STEPS:
            self._step(_STEPS[key])
        elif key in {Qt.Key.Key_Home, Qt.Key.Key_End}:
            sizes = [cell.nbytes for cell in cells]
            self._move_to(sizes.index(max(sizes) if key == Qt.Key.Key_Home else min(sizes)))
        else:
            super().keyPressEvent(event)

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            index = self._cell_at(QPointF(event.pos()))
            if index is not None and self._page is not None:
                cell = self._picture.cells[index]
                lines = "\n".join(facts_of(self._page, cell))
                QToolTip.showText(event.globalPos(), plain_tooltip(lines), self, snapped(cell.box))
            return True
        return super().event(event)

    def _cell_at(self, place: QPointF) -> int | None:
        return self._picture.cell_at(place.x(), place.y())

    def _hover(self, index: int | None) -> None:
        if index != self._hovered:
            self._hovered = index
            self._tell(self._cursor if index is None else index)
            self.update()

    def _tell(self, index: int | None) -> None:
        if index is None or self._page is None:
            self.pointed.emit("")
            return
        self.pointed.emit(" \u00b7 ".join(facts_of(self._page, self._picture.cells[index])))

    def _step(self, direction: Direction) -> None:
        """Move on; the first time, to the row that is selected, or else to the largest."""
        if self._cursor is not None:
            self._move_to(self._picture.step(self._cursor, direction))
            return
        cells = self._picture.cells
        largest = max(range(len(cells)), key=lambda index: cells[index].nbytes)
        at = (index for index, cell in enumerate(cells) if cell.node == self._selected and cell.what == "row")
        self._move_to(next(at, largest))

    def _move_to(self, index: int) -> None:
        self._cursor = index
        cell = self._picture.cells[index]
        if self._page is not None:
            self.setAccessibleDescription(", ".join(facts_of(self._page, cell)))
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.DescriptionChanged))
        self._tell(index)
        self.update()
        if cell.node > 0 and cell.what != "loose":
            self.node_chosen.emit(cell.node)

    def _go_into(self, cell: Cell) -> None:
        """Show more of a group; of a tensor, the group that it is in; of the smaller rows, those alone."""
        if self._page is None:
            return
        if cell.what == "rest" and cell.node == self._page.root:
            if len(self._picture.cells) > 1:  # else they are what is shown
                self._narrow([*self._rests, cell])
            return
        nodes = self._page.areas.tree.nodes
        node = cell.node if nodes[cell.node].children else nodes[cell.node].parent
        if node != self._page.root and cell.what != "loose":
            self.root_wanted.emit(node)

    def _go_out(self) -> None:
        if self._rests:
            self.leave_rests(len(self._rests) - 1)
        elif self._page is not None and self._page.root:
            self.root_wanted.emit(self._page.areas.tree.nodes[self._page.root].parent)
