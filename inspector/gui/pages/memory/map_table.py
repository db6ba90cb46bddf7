"""The map of modules as a table, for keyboards and screen readers, and for all who want figures."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeView

from inspector.overriding import override
from inspector.report.charts.modules import ModuleMap
from inspector.report.charts.tables import TITLES, MapLine, table_of

_FIGURES = (1, 2, 3)
_KINDS_WIDTH = 130
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class MapTable(QTreeView):
    """A line for each row of the map; Return shows what is in it, Backspace goes back."""

    node_chosen = Signal(int)
    root_wanted = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._page: ModuleMap | None = None
        self._lines: tuple[MapLine, ...] = ()
        self._is_showing = False
        self._model = QStandardItemModel(0, len(TITLES), self)
        self._model.setHorizontalHeaderLabels(TITLES)
        self.setObjectName("mapTable")
        self.setModel(self._model)
        self.setAccessibleName("Map of modules as a table")
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(len(TITLES) - 1, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(len(TITLES) - 1, _KINDS_WIDTH)
        self.selectionModel().currentChanged.connect(self._on_current)
        self.doubleClicked.connect(lambda index: self._go_into(index.row()))

    def show_map(self, page: ModuleMap, selected: int | None) -> None:
        """Show the rows of a map, and which of them is selected in the tree."""
        self._is_showing = True
        if page != self._page:
            self._fill(page)
        shown = (at for at, line in enumerate(self._lines) if line.node == selected and line.is_row)
        place = next(shown, None)
        if place is not None and place != self.currentIndex().row():
            self.setCurrentIndex(self._model.index(place, 0))
        self._is_showing = False

    def _fill(self, page: ModuleMap) -> None:
        self._page, self._lines = page, table_of(page)
        self._model.removeRows(0, self._model.rowCount())
        self._model.setHorizontalHeaderLabels([*TITLES[:-1], page.coloring.by.capitalize()])
        for line in self._lines:
            items = [QStandardItem(text) for text in line.texts]
            for column in _FIGURES:
                items[column].setTextAlignment(_RIGHT)
            for item, title in zip(items, TITLES, strict=True):
                item.setToolTip(item.text())
                item.setAccessibleText(f"{title}: {item.text() or 'none'}")
            self._model.appendRow(items)
        for column in _FIGURES:
            self._model.horizontalHeaderItem(column).setTextAlignment(_RIGHT)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._is_showing = True  # Qt makes a row current that the user has not chosen
        super().focusInEvent(event)
        self._is_showing = False

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Backspace:
            if self._page is not None and self._page.root:
                self.root_wanted.emit(self._page.areas.tree.nodes[self._page.root].parent)
        elif event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._go_into(self.currentIndex().row())
        else:
            super().keyPressEvent(event)

    def _on_current(self, current: QModelIndex, _: QModelIndex) -> None:
        line = self._line(current.row())
        if line is not None and line.is_row and not self._is_showing:
            self.node_chosen.emit(line.node)

    def _go_into(self, place: int) -> None:
        line = self._line(place)
        if line is not None and line.can_enter:
            self.root_wanted.emit(line.node)

    def _line(self, place: int) -> MapLine | None:
        return self._lines[place] if 0 <= place < len(self._lines) else None
