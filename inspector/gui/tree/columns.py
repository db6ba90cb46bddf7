"""The columns of the tree: as wide as their texts need, and the menu that hides and shows them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from PySide6.QtCore import QByteArray, QObject, QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHeaderView, QMenu, QTreeView
from shiboken6 import isValid

from inspector.gui.tree.model import Column

WIDTHS = {
    Column.DEVICE: 172,
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
_MARKED = _UNCUT | {Column.VALUE}
"""So has what is wrong with a row."""
_GIVES = {Column.VALUE: 48, Column.TYPE: 76, Column.SHAPE: 88, Column.DEVICE: 110}
"""What gives room to names that have too little, in this order, and what is left to it."""
_LEAVES = ((), (Column.VALUE,), (Column.VALUE, Column.TYPE))
"""What leaves where there is no room for all, before shapes and devices are cut."""
_ROWS, _LONGEST = 60, 12
_SHORT_NAME, _LEAST_NAME, _FIRST_NAME = 120, 180, 220
"""What names have where all are short, where there is little room, and before others get what they like."""
_OWN = "own:"
"""What stands before the state of a header: the columns that the user sized, and those shown or hidden."""


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


def share(needs: Mapping[Column, int], room: int, uncut: Collection[Column] = _UNCUT) -> dict[Column, int]:
    """Return the widths of columns.

    Args:
        needs: How much each would like to have.
        room: What is there for all of them, beside the names.
        uncut: What has its room before others have what they like.
    """
    wanted = {column: min(need, _MOST[column]) for column, need in needs.items()}
    given = {
        column: want if column in uncut else min(want, WIDTHS[column]) for column, want in wanted.items()
    }
    spare = room - sum(given.values())
    for column in _FIRST_SERVED:
        more = min(wanted.get(column, 0) - given.get(column, 0), spare)
        if more > 0:
            given[column] += more
            spare -= more
    return given


def squeezed(
    widths: Mapping[Column, int], lack: int, giving: Iterable[Column] = tuple(_GIVES)
) -> dict[Column, int]:
    """Return the widths after some gave what names lack: shapes and devices only if that suffices."""
    found = dict(widths)
    spare = {column: max(found.get(column, 0) - _GIVES[column], 0) for column in giving}
    if sum(spare.values()) < lack:
        spare = {column: room for column, room in spare.items() if column in _LEAVES[-1]}
    for column, room in spare.items():
        less = min(room, max(lack, 0))
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
        self._empty: Mapping[Column, bool] = {}
        self._has_marks = False
        self._is_fitting = False
        self._fitted = {Column.DEVICE, Column.VALUE, Column.TYPE}
        _set_behavior(header)
        view.setSortingEnabled(True)
        for column, width in WIDTHS.items():
            header.resizeSection(column, width)
        header.resizeSection(Column.NAME, _FIRST_NAME)
        header.sectionResized.connect(self._on_section_resized)
        header.sectionHandleDoubleClicked.connect(self._on_handle_double_clicked)
        header.customContextMenuRequested.connect(self._on_menu_wanted)

    def show_needs(
        self, empty: Mapping[Column, bool], needs: Mapping[Column, int], *, has_marks: bool = False
    ) -> None:
        """Fit the columns to a file.

        Args:
            empty: Which columns have nothing to say of it: they are hidden, until the user chooses them.
            needs: How wide the texts of each are, with what stands beside them.
            has_marks: Whether something is wrong with rows, which stands in the column of values.
        """
        self._needs, self._empty, self._has_marks = dict(needs), empty, has_marks
        self.fit()

    def fit(self) -> None:
        """Share the room out; what has none leaves, until there is more."""
        if not isValid(self._header):  # Python takes the view apart
            return
        fitted = self._fitted - self._own
        shown, widths, name = list[Column](), dict[Column, int](), 0
        for leaving in _LEAVES:
            hidden = {column for column, is_empty in self._empty.items() if is_empty}.union(leaving)
            hidden -= {Column.VALUE} if self._has_marks else set()
            shown = [
                column
                for column in WIDTHS
                if (column not in hidden if column in fitted else self._view.columnWidth(column))
            ]
            widths, name, fits = self._plan(shown, is_last=leaving is _LEAVES[-1])
            if fits:
                break
        self._is_fitting = True
        for column in fitted:
            if self._view.isColumnHidden(column) is (column in shown):
                self._view.setColumnHidden(column, column not in shown)
        for column, width in widths.items():
            self._header.resizeSection(column, width)
        if Column.NAME not in self._own:
            self._header.resizeSection(Column.NAME, name)
        self._is_fitting = False

    def _plan(self, shown: list[Column], *, is_last: bool) -> tuple[dict[Column, int], int, bool]:
        """Return the widths of columns and that of names, and whether all of them have room."""
        wanted = {
            column: max(need, self._header.sectionSizeHint(column))
            for column, need in self._needs.items()
            if column in shown and column not in self._own
        }
        kept = sum(self._view.columnWidth(column) for column in shown if column not in wanted)
        room = self._view.viewport().width()
        liked = min(max(self._needs.get(Column.NAME, _FIRST_NAME), _SHORT_NAME), _FIRST_NAME)
        least = max(min(liked, _LEAST_NAME), self.least)
        widths = share(wanted, room - kept - max(liked, least), _MARKED if self._has_marks else _UNCUT)
        giving = set(_GIVES if is_last else _LEAVES[-1]) - ({Column.VALUE} if self._has_marks else set())
        lack = kept + sum(widths.values()) + least - room
        widths = squeezed(widths, lack, [column for column in _GIVES if column in giving])
        others = kept + sum(widths.values())
        return widths, max(least, room - others), others + least <= room

    def state(self) -> QByteArray:
        own = ",".join(
            "".join(f"{column:d}" for column in sorted(some)) for some in (self._own, self._chosen)
        )
        return QByteArray(f"{_OWN}{own};".encode()) + self._header.saveState()

    def restore(self, state: QByteArray) -> None:
        self._own, chosen, rest = _split_state(state)
        self._fitted -= chosen
        self._is_fitting = True
        self._header.restoreState(rest)
        self._is_fitting = False
        self.fit()

    @property
    def _chosen(self) -> set[Column]:
        """Which columns the user has hidden or shown."""
        return {*_LEAVES[-1], Column.DEVICE} - self._fitted

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


def _split_state(state: QByteArray) -> tuple[set[int], set[Column], QByteArray]:
    if not state.startsWith(_OWN.encode()):
        return set(), set(), state
    end = state.indexOf(b";")
    own, _, chosen = bytes(state.data())[len(_OWN) : end].decode().partition(",")
    return {*map(int, own)}, {Column(int(letter)) for letter in chosen}, state.mid(end + 1)


def _set_behavior(header: QHeaderView) -> None:
    header.setStretchLastSection(False)
    header.setSectionsMovable(True)
    header.setMinimumSectionSize(48)
    header.setHighlightSections(False)
    header.setSortIndicatorShown(True)
    header.setSortIndicatorClearable(True)
    header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
