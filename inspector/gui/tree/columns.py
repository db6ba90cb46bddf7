"""The columns of the tree: as wide as their texts need, and the menu that hides and shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from PySide6.QtCore import QByteArray, QObject, QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHeaderView, QMenu, QTreeView
from shiboken6 import isValid

from inspector.gui.tree.model import Column

WIDTHS = {
    Column.DEVICE: 156,
    Column.SHAPE: 120,
    Column.TYPE: 96,
    Column.SIZE: 80,
    Column.VALUE: 76,
}
"""What a column has before there is a file, and may always have if its texts need it."""
_MOST = {
    Column.DEVICE: 240,
    Column.SHAPE: 240,
    Column.TYPE: 150,
    Column.SIZE: 110,
    Column.VALUE: 260,
}
_FIRST_SERVED = (Column.TYPE, Column.SIZE, Column.SHAPE, Column.DEVICE, Column.VALUE)
_UNCUT = frozenset({Column.TYPE, Column.SIZE})
"""What is counted has its room before others have what they like."""
_GIVES = {Column.VALUE: 48, Column.TYPE: 76, Column.SHAPE: 88, Column.DEVICE: 110}
"""What gives room to names that have too little, in this order, and what is left to it."""
_ROWS, _LONGEST = 60, 12
_SHORT_NAME, _LEAST_NAME, _FIRST_NAME = 120, 180, 220
"""What names have where all are short, where there is little room, and before others get what they like."""
_OWN = "own:"
"""What stands before the state of a header: the columns whose width the user gave follow, and a semicolon."""


def rows_to_measure(total: int, below: Callable[[int, int], list[int]], unfolded: Iterable[int]) -> list[int]:
    """Return some rows that tell how long the texts of a tree are: those in sight, and others from all over.

    So few that a million rows take no longer than a page.

    Args:
        below: Returns the rows below one, as many as are asked for.
    """
    found = dict.fromkeys(range(1, total, max(1, total // _ROWS)))
    for above in (0, *unfolded):
        found.update(dict.fromkeys(below(above, _ROWS)))
        if len(found) > 2 * _ROWS:
            break
    return list(found)


def widest(texts: Iterable[str], measure: Callable[[str], int]) -> int:
    """Return the width of the widest text; the longest ones alone are measured."""
    longest = sorted(set(texts), key=len)[-_LONGEST:]
    return max(map(measure, longest), default=0)


def share(needs: Mapping[Column, int], room: int) -> dict[Column, int]:
    """Return the widths of columns.

    Args:
        needs: How much each would like to have.
        room: What is there for all of them, beside the names.
    """
    wanted = {column: min(need, _MOST[column]) for column, need in needs.items()}
    given = {
        column: want if column in _UNCUT else min(want, WIDTHS[column]) for column, want in wanted.items()
    }
    spare = room - sum(given.values())
    for column in _FIRST_SERVED:
        more = min(wanted.get(column, 0) - given.get(column, 0), spare)
        if more > 0:
            given[column] += more
            spare -= more
    return given


def squeezed(widths: Mapping[Column, int], lack: int) -> dict[Column, int]:
    """Return the widths after some gave what names lack: shapes and devices only if that suffices."""
    found = dict(widths)
    spare = {column: max(found.get(column, 0) - kept, 0) for column, kept in _GIVES.items()}
    giving = _GIVES if sum(spare.values()) >= lack else (Column.VALUE, Column.TYPE)
    for column in giving:
        less = min(spare[column], max(lack, 0))
        if less:
            found[column] -= less
            lack -= less
    return found


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
    """Sizes and hides the columns of a tree: each as its texts need, and the name takes what is left.

    Until the user gives a column a width, which it keeps; a double click on its handle ends that.
    """

    def __init__(self, view: QTreeView) -> None:
        super().__init__(view)
        self._view = view
        self._header = header = view.header()
        self.least = 0  # that names have for their indents
        self._own: set[int] = set()
        self._needs: dict[Column, int] = {}
        self._is_fitting = False
        self._fitted = {Column.DEVICE, Column.VALUE}
        _set_behavior(header)
        view.setSortingEnabled(True)
        for column, width in WIDTHS.items():
            header.resizeSection(column, width)
        header.resizeSection(Column.NAME, _FIRST_NAME)
        header.sectionResized.connect(self._on_section_resized)
        header.sectionHandleDoubleClicked.connect(self._on_handle_double_clicked)
        header.customContextMenuRequested.connect(self._on_menu_wanted)

    def show_needs(self, empty: Mapping[Column, bool], needs: Mapping[Column, int]) -> None:
        """Fit the columns to a file.

        Args:
            empty: Which columns have nothing to say of it: they are hidden, until the user chooses them.
            needs: How wide the texts of each are, with what stands beside them.
        """
        self._needs = dict(needs)
        for column in self._fitted:
            self._view.setColumnHidden(column, empty[column])
        self.fit()

    def fit(self) -> None:
        if not isValid(self._header):  # Python takes the view apart
            return
        shown = [column for column in WIDTHS if self._view.columnWidth(column)]
        wanted = {
            column: max(need, self._header.sectionSizeHint(column))
            for column, need in self._needs.items()
            if column in shown and column not in self._own
        }
        kept = sum(self._view.columnWidth(column) for column in shown if column not in wanted)
        room = self._view.viewport().width()
        liked = min(max(self._needs.get(Column.NAME, _FIRST_NAME), _SHORT_NAME), _FIRST_NAME)
        least = max(min(liked, _LEAST_NAME), self.least)
        widths = share(wanted, room - kept - max(liked, least))
        self._is_fitting = True
        for column, width in squeezed(widths, kept + sum(widths.values()) + least - room).items():
            self._header.resizeSection(column, width)
        if Column.NAME not in self._own:
            others = sum(map(self._view.columnWidth, shown))
            self._header.resizeSection(Column.NAME, max(least, room - others))
        self._is_fitting = False

    def state(self) -> QByteArray:
        own = "".join(map(str, sorted(self._own)))
        return QByteArray(f"{_OWN}{own};".encode()) + self._header.saveState()

    def restore(self, state: QByteArray) -> None:
        self._own, rest = _split_state(state)
        self._is_fitting = True
        self._header.restoreState(rest)
        self._is_fitting = False
        self.fit()

    def build_menu(self) -> QMenu:
        menu = build_column_menu(self._view)
        menu.triggered.connect(self._on_toggled)
        return menu

    def _on_menu_wanted(self, place: QPoint) -> None:
        self.build_menu().popup(self._header.mapToGlobal(place))

    def _on_section_resized(self, column: int, old: int, new: int) -> None:
        if not self._is_fitting:
            if old and new:  # what is hidden has no width
                self._own.add(column)
            self.fit()

    def _on_handle_double_clicked(self, column: int) -> None:
        self._own.discard(column)
        self.fit()

    def _on_toggled(self, action: QAction) -> None:
        self._fitted.discard(action.data())
        self._view.setColumnHidden(int(action.data()), not action.isChecked())


def _split_state(state: QByteArray) -> tuple[set[int], QByteArray]:
    if not state.startsWith(_OWN.encode()):
        return set(), state
    end = state.indexOf(b";")
    return {int(letter) for letter in bytes(state.data())[len(_OWN) : end].decode()}, state.mid(end + 1)


def _set_behavior(header: QHeaderView) -> None:
    header.setStretchLastSection(False)
    header.setSectionsMovable(True)
    header.setMinimumSectionSize(48)
    header.setHighlightSections(False)
    header.setSortIndicatorShown(True)
    header.setSortIndicatorClearable(True)
    header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
