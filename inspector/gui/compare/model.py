"""The rows of a comparison for a tree view: groups, and the two files side by side."""

from __future__ import annotations

from enum import IntEnum

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QColor

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.report.comparing.rows import DiffRow
from inspector.session.comparing.compose import leaf_name
from inspector.session.comparing.screen import CompareScreen, RowGroup
from inspector.units import cut_text

_Index = QModelIndex | QPersistentModelIndex
_ROLE = Qt.ItemDataRole
_MOST_CHARS = 300
_NOWHERE = QModelIndex()
MARKS = {"+": "Added", "-": "Removed", "~": "Changed", ">": "Renamed", "=": "Equal", "!": "Code"}
"""What each mark is called: nothing is told by a color or a sign alone."""
_REORDERED = "~ Reordered"
_INKS = {"+": "good", "-": "bad", "~": "warning", ">": "accent", "=": "muted", "!": "bad"}


class Column(IntEnum):
    """The columns of the list."""

    NAME = 0
    WHAT = 1
    A = 2
    B = 3
    DETAIL = 4


class CompareModel(QAbstractItemModel):
    """Shows groups of rows; a group has the id 0, and its rows the number of the group plus 1."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[DiffRow, ...] = ()
        self._groups: tuple[RowGroup, ...] = ()
        self._names = ("A", "B")

    def show_screen(self, screen: CompareScreen) -> None:
        """Show the groups of a screen."""
        self.beginResetModel()
        self._rows, self._groups = screen.rows, screen.groups
        self._names = screen.a.name, screen.b.name
        self.endResetModel()

    def row_of(self, index: _Index) -> int | None:
        """Return the number of the row at an index; None for a group."""
        if not index.isValid() or not index.internalId():
            return None
        return self._groups[index.internalId() - 1].rows[index.row()]

    def index_of(self, row: int) -> QModelIndex:
        """Return the index of a row; an invalid one where it is not listed."""
        for number, group in enumerate(self._groups):
            if row in group.rows:
                return self.createIndex(group.rows.index(row), 0, number + 1)
        return QModelIndex()

    @override
    def index(self, row: int, column: int, parent: _Index = _NOWHERE) -> QModelIndex:
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    @override
    def parent(self, index: _Index) -> QModelIndex:  # type: ignore[override]  # QObject has another parent()
        if not index.isValid() or not index.internalId():
            return QModelIndex()
        return self.createIndex(index.internalId() - 1, 0, 0)

    @override
    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        if not parent.isValid():
            return len(self._groups)
        return len(self._groups[parent.row()].rows) if not parent.internalId() and not parent.column() else 0

    @override
    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        return len(Column)

    @override
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal or role not in {_ROLE.DisplayRole, _ROLE.ToolTipRole}:
            return None
        a, b = self._names
        text = ("Name", "Change", f"A: {a}", f"B: {b}", "Difference")[section]
        return text if role == _ROLE.DisplayRole else plain_tooltip(text)

    @override
    def data(self, index: _Index, role: int = _ROLE.DisplayRole) -> object:
        number = self.row_of(index)
        if number is None:
            return self._group_data(self._groups[index.row()], index.column(), role)
        row, column = self._rows[number], index.column()
        if role == _ROLE.DisplayRole:
            return cut_text(_text(row, column), _MOST_CHARS)
        if role == _ROLE.ToolTipRole:
            path = row.a_path or row.b_path or "(root)"
            text = path if column == Column.NAME else _text(row, column)
            return plain_tooltip(cut_text(text, 4 * _MOST_CHARS))
        if role == _ROLE.ForegroundRole and column == Column.WHAT:
            return self._color(_INKS[row.mark])
        return self._described(row) if role == _ROLE.AccessibleTextRole and column == Column.NAME else None

    def _group_data(self, group: RowGroup, column: int, role: int) -> object:
        if role == _ROLE.DisplayRole and column == Column.NAME:
            return f"{group.title}   ({group.detail})"
        if role == _ROLE.ToolTipRole and column == Column.NAME:
            return plain_tooltip(group.title)
        return self._color("muted") if role == _ROLE.ForegroundRole else None

    def _color(self, ink: str) -> QColor:
        return self._theme.tokens.color(ink)

    @staticmethod
    def _described(row: DiffRow) -> str:
        return f"{row.a_path or row.b_path or 'the root'}, {MARKS[row.mark].lower()}: {row.detail}"


def _text(row: DiffRow, column: int) -> str:
    change = _REORDERED if row.what == ("order",) else f"{row.mark} {MARKS[row.mark]}"
    return (leaf_name(row), change, row.a_text, row.b_text, row.detail)[column]
