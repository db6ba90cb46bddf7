"""The rows of a file with their boxes for Qt: as a tree, or those that a search found as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.report.tree import Node
from inspector.session.export.page import NO_CHOICE, OUT, PARTLY, WRITTEN, Boxes
from inspector.units import cut_text, format_count, format_nbytes

AnyIndex = QModelIndex | QPersistentModelIndex
MOST_LISTED = 5000
_MOST_VALUE = 40
_NO_INDEX = QModelIndex()
_TITLES = ("Name", "Size")
_CHECKS = {
    OUT: Qt.CheckState.Unchecked,
    PARTLY: Qt.CheckState.PartiallyChecked,
    WRITTEN: Qt.CheckState.Checked,
    NO_CHOICE: Qt.CheckState.Unchecked,
}
_SPOKEN = {OUT: "left out", PARTLY: "written in part", WRITTEN: "written", NO_CHOICE: "not in this export"}
_BOUND = "An item of a tuple cannot be left out alone: leave out the whole tuple."
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)


def check_of(state: int) -> Qt.CheckState:
    """Return how a box looks."""
    return _CHECKS[state]


class BoxModel(QAbstractItemModel):
    """A view of `Boxes`; a click asks for another plan, and the boxes follow when it is there."""

    chosen = Signal(object, bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._boxes: Boxes | None = None
        self._found: tuple[int, ...] | None = None

    @property
    def found(self) -> tuple[int, ...] | None:
        """The rows that are listed; None while the tree is shown."""
        return self._found

    def show_boxes(self, boxes: Boxes | None, found: tuple[int, ...] | None) -> None:
        """Show boxes; rows stay unfolded as long as they are those of the same file."""
        listed = None if found is None else found[:MOST_LISTED]
        tree = None if self._boxes is None else self._boxes.tree
        if (None if boxes is None else boxes.tree) is not tree or listed != self._found:
            self.beginResetModel()
            self._boxes, self._found = boxes, listed
            self.endResetModel()
            return
        self._boxes = boxes
        rows = self.rowCount()
        if rows:
            self.dataChanged.emit(self.index(0, 0), self.index(rows - 1, 1), [Qt.ItemDataRole.CheckStateRole])

    # `QAbstractItemModel`.

    @override
    def index(self, row: int, column: int, parent: AnyIndex = _NO_INDEX) -> QModelIndex:
        below = self._below(parent)
        if 0 <= row < len(below) and 0 <= column < len(_TITLES):
            return self.createIndex(row, column, below[row])
        return _NO_INDEX

    @override
    def parent(self, child: AnyIndex) -> QModelIndex:  # type: ignore[override]  # also without an argument
        if self._boxes is None or self._found is not None or not child.isValid():
            return _NO_INDEX
        nodes = self._boxes.tree.nodes
        above = nodes[child.internalId()].parent
        return self.createIndex(nodes[above].row, 0, above) if above > 0 else _NO_INDEX

    @override
    def rowCount(self, parent: AnyIndex = _NO_INDEX) -> int:
        return len(self._below(parent))

    @override
    def columnCount(self, parent: AnyIndex = _NO_INDEX) -> int:
        return len(_TITLES)

    @override
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        return _TITLES[section] if role == Qt.ItemDataRole.DisplayRole else None

    @override
    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag(0)
        if self._state(index) == NO_CHOICE or self._is_bound(index):
            return Qt.ItemFlag.ItemIsSelectable
        checkable = Qt.ItemFlag.ItemIsUserCheckable if index.column() == 0 else Qt.ItemFlag(0)
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | checkable

    @override
    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self._boxes is None or not index.isValid():
            return None
        column, id_ = index.column(), index.internalId()
        if role == Qt.ItemDataRole.ToolTipRole:
            why = f"\n{_BOUND}" if self._is_bound(index) else ""
            return plain_tooltip(f"{self._path(id_)}\n{_SPOKEN[self._state(index)]}{why}")
        return self._name_data(index, role) if column == 0 else self._size_data(id_, role)

    def _name_data(self, index: AnyIndex, role: int) -> object:
        id_, state = index.internalId(), self._state(index)
        if role == Qt.ItemDataRole.DisplayRole:
            return self._name(id_)
        if role == Qt.ItemDataRole.CheckStateRole:
            return check_of(state)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            why = f", {_BOUND}" if self._is_bound(index) else ""
            return f"{self._name(id_)}, {_SPOKEN[state]}, {self._amount(id_)}{why}"
        return None

    def _size_data(self, id_: int, role: int) -> object:
        if role == Qt.ItemDataRole.DisplayRole:
            return self._amount(id_)
        return _RIGHT if role == Qt.ItemDataRole.TextAlignmentRole else None

    @override
    def setData(self, index: AnyIndex, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role == Qt.ItemDataRole.CheckStateRole and index.isValid():
            self.chosen.emit((index.internalId(),), self._state(index) != WRITTEN)
        return False  # it changes when the plan has

    # The rows.

    @property
    def _nodes(self) -> Sequence[Node]:
        return () if self._boxes is None else self._boxes.tree.nodes

    def _below(self, parent: AnyIndex) -> tuple[int, ...] | list[int]:
        if self._boxes is None or parent.column() > 0:
            return ()
        if self._found is not None:
            return () if parent.isValid() else self._found
        return self._boxes.tree.nodes[parent.internalId() if parent.isValid() else 0].children

    def _state(self, index: AnyIndex) -> int:
        return NO_CHOICE if self._boxes is None else self._boxes.states[index.internalId()]

    def _is_bound(self, index: AnyIndex) -> bool:
        return self._boxes is not None and index.internalId() in self._boxes.bound

    def _name(self, node: int) -> str:
        return self._nodes[node].name if self._found is None else self._path(node)

    def _amount(self, id_: int) -> str:
        node = self._nodes[id_]
        if node.kind == "value":
            return cut_text(node.text, _MOST_VALUE)
        if not node.tensors:
            return ""
        size = format_nbytes(node.nbytes)
        return size if node.kind == "tensor" else f"{format_count(node.tensors, 'tensor')}, {size}"

    def _path(self, node: int) -> str:
        steps = []
        nodes = self._nodes
        while node > 0:
            if nodes[node].kind != "bucket":
                steps.append(nodes[node].name)
            node = nodes[node].parent
        return " / ".join(reversed(steps))
