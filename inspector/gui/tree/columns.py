"""The columns of the tree: how wide they are, which are shown, and the menu that hides and shows them."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QObject, QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHeaderView, QMenu, QTreeView
from shiboken6 import isValid

from inspector.gui.tree.model import Column

WIDTHS = {
    Column.NAME: 220,
    Column.DEVICE: 156,
    Column.SHAPE: 120,
    Column.TYPE: 96,
    Column.SIZE: 80,
    Column.VALUE: 76,
}
_LEAST_NAME = 180
_OWN_WIDTH = b"name:"
"""What stands before the state of a header whose name has a width that the user gave it."""


def build_column_menu(view: QTreeView) -> QMenu:
    """Build the menu that hides and shows columns; the name stays. It goes when it is closed."""
    menu = QMenu(view)
    for column in list(Column)[1:]:
        action = menu.addAction(str(view.model().headerData(column, Qt.Orientation.Horizontal)))
        action.setCheckable(True)
        action.setChecked(not view.isColumnHidden(column))
        action.setData(int(column))
    menu.aboutToHide.connect(menu.deleteLater)
    return menu


class TreeColumns(QObject):
    """Sizes and hides the columns of a tree: the name takes the room that the others leave.

    Until the user gives the name a width, which it keeps; a double click on its handle ends that.
    """

    def __init__(self, view: QTreeView) -> None:
        super().__init__(view)
        self._view = view
        self._header = header = view.header()
        self._is_name_fitted, self._is_fitting = True, False
        self._fitted = {Column.DEVICE, Column.VALUE}
        _set_behavior(header)
        view.setSortingEnabled(True)
        for column, width in WIDTHS.items():
            header.resizeSection(column, width)
        header.sectionResized.connect(self._on_section_resized)
        header.sectionHandleDoubleClicked.connect(self._on_handle_double_clicked)
        header.customContextMenuRequested.connect(self._on_menu_wanted)

    def hide_empty(self, empty: dict[Column, bool]) -> None:
        """Hide the columns that have nothing to say of a file, until the user chooses them."""
        for column in self._fitted:
            self._view.setColumnHidden(column, empty[column])
        self.fit_name()

    def fit_name(self) -> None:
        """Stretch the name over the room that the others leave, if it has no width of its own."""
        if self._is_name_fitted and isValid(self._header):  # not while Python takes the view apart
            others = sum(self._view.columnWidth(column) for column in list(Column)[1:])
            self._is_fitting = True
            room = self._view.viewport().width() - others
            self._header.resizeSection(Column.NAME, max(_LEAST_NAME, room))
            self._is_fitting = False

    def state(self) -> QByteArray:
        """Return how the columns stand, to be remembered."""
        own = QByteArray() if self._is_name_fitted else QByteArray(_OWN_WIDTH)
        return own + self._header.saveState()

    def restore(self, state: QByteArray) -> None:
        """Put the columns where they were."""
        is_own = state.startsWith(_OWN_WIDTH)
        self._is_fitting = True
        self._header.restoreState(state.mid(len(_OWN_WIDTH)) if is_own else state)
        self._is_fitting = False
        self._is_name_fitted = not is_own
        self.fit_name()

    def build_menu(self) -> QMenu:
        """Build the menu that hides and shows columns."""
        menu = build_column_menu(self._view)
        menu.triggered.connect(self._on_toggled)
        return menu

    def _on_menu_wanted(self, place: QPoint) -> None:
        self.build_menu().popup(self._header.mapToGlobal(place))

    def _on_section_resized(self, column: int, _old: int, _new: int) -> None:
        if column != Column.NAME:
            self.fit_name()
        elif not self._is_fitting:
            self._is_name_fitted = False

    def _on_handle_double_clicked(self, column: int) -> None:
        if column == Column.NAME:
            self._is_name_fitted = True
            self.fit_name()

    def _on_toggled(self, action: QAction) -> None:
        self._fitted.discard(action.data())
        self._view.setColumnHidden(int(action.data()), not action.isChecked())


def _set_behavior(header: QHeaderView) -> None:
    header.setStretchLastSection(False)
    header.setSectionsMovable(True)
    header.setMinimumSectionSize(48)
    header.setHighlightSections(False)
    header.setSortIndicatorShown(True)
    header.setSortIndicatorClearable(True)
    header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
