"""The rows of a `Tree` as one list: all tensors, or what a search found, as they come sorted.

Qt asks for each row when it lays a list out, and a hundred thousand calls of Python would hold up the window
for half a second. So Qt itself keeps how many rows there are; only what is seen is asked of Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from PySide6.QtCore import QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QStandardItemModel

from inspector.gui.tree.model import TITLES, AnyIndex, Column, TreeModel, readers_of
from inspector.overriding import override
from inspector.report.tree import Node
from inspector.units import unescaped_path

_SAMPLE = 60


class ListModel(QStandardItemModel):
    """Shows some nodes of a `TreeModel`, which keeps the tree, the matches and the order."""

    sort_wanted = Signal(int, bool)

    def __init__(self, tree: TreeModel, parent: QObject | None = None) -> None:
        super().__init__(0, len(TITLES), parent)
        self._tree = tree
        self._nodes: tuple[int, ...] = ()
        self._rows: dict[int, int] = {}
        self._title = ""
        self._readers = readers_of(self.text, tree)

    def set_rows(self, nodes: tuple[int, ...], total: int) -> None:
        self._title = "Path" if len(nodes) >= total else f"Path (first {len(nodes):,} of {total:,})"
        self.setRowCount(0)
        self._nodes, self._rows = nodes, {}
        self.setRowCount(len(nodes))

    def sample(self) -> tuple[int, ...]:
        """Return some nodes that tell how long the texts are: the first, and others from all over."""
        return (*self._nodes[:_SAMPLE], *self._nodes[_SAMPLE :: max(1, len(self._nodes) // _SAMPLE)])

    # As those of a `TreeModel`.

    def node(self, node_id: int) -> Node:
        return self._tree.node(node_id)

    def node_id(self, index: AnyIndex) -> int:
        """Return the id of the node at an index; 0, the root, for an invalid index."""
        return self._nodes[index.row()] if index.isValid() else 0

    def index_of(self, node_id: int, column: int = 0) -> QModelIndex:
        """Return the index of a node; an invalid one for nodes that are not listed."""
        try:
            return self.index(self._nodes.index(node_id), column)
        except ValueError:
            return QModelIndex()

    def level(self, _node_id: int) -> int:
        """Return how many rows a node is below: none."""
        return 0

    def in_order(self, node_ids: Iterable[int]) -> list[int]:
        self._rows = self._rows or {node_id: row for row, node_id in enumerate(self._nodes)}
        return sorted(node_ids, key=self._rows.__getitem__)

    def below(self, node_id: int) -> Sequence[int]:
        """Return the ids of all rows; there is nothing below one of them."""
        return () if node_id else self._nodes

    def first_below(self, node_id: int, most: int) -> list[int]:
        return list(islice(self.below(node_id), most))

    @staticmethod
    def name_of(node: Node) -> str:
        """Return what a row is called here: its whole path."""
        return unescaped_path(node.path) or node.name

    def text(self, node_id: int, column: int) -> str:
        """Return the text of a cell; the name is the whole path."""
        is_name = column == Column.NAME
        return self.name_of(self.node(node_id)) if is_name else self._tree.text(node_id, column)

    @override
    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        descending = order == Qt.SortOrder.DescendingOrder
        if self._tree.order != (column, descending):
            self._tree.sort(column, order)
            self.sort_wanted.emit(column, descending)

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        is_title = role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal
        if is_title and section == Column.NAME:
            return self._title
        return self._tree.headerData(section, orientation, role)

    @override
    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        read = self._readers.get(role)
        if read is None or not 0 <= index.row() < len(self._nodes):
            return None
        return read(self._nodes[index.row()], index.column())
