"""The rows of a `Tree` for Qt, made on demand: a million rows cost nothing until they are seen.

Indexes carry the integer id of their node, since `createIndex` keeps no Python object alive. Two things are
added to the plain tree: a sort order (by a column, else as in the file) and a filter (only the matches of a
search, their ancestors, and what is below them). Both are lists of children made when a row is first needed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.report.outline.chosen import last_below
from inspector.report.outline.flat import Column, Order, rank_by
from inspector.report.tree import Node, Tree
from inspector.units import format_count, format_exact, format_nbytes

__all__ = ["NODE_ROLE", "Column", "TreeModel", "cell_text"]
AnyIndex = QModelIndex | QPersistentModelIndex
NODE_ROLE = Qt.ItemDataRole.UserRole + 1
_NO_INDEX = QModelIndex()


_EMPTY = Tree(
    nodes=(
        Node(
            parent=-1,
            row=0,
            kind="group",
            name="",
            children=[],
            index=-1,
            devices=(),
            device_text="",
            shape_text="",
            type_text="",
            nbytes=0,
            tensors=0,
            text="",
        ),
    ),
    tensor_nodes=(),
    value_nodes=(),
    colors={},
)
_FETCHED = 1000
_TITLES = ("Name", "Device", "Shape", "Type", "Size", "Value")
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)


def _alignment(column: int) -> int:
    return _RIGHT if column == Column.SIZE else _LEFT


def cell_text(node: Node, column: int) -> str:
    """Return the text of a cell."""
    if column == Column.NAME:
        return node.name
    if column == Column.DEVICE:
        return node.device_text
    if column == Column.SHAPE:
        return node.shape_text
    if column == Column.TYPE:
        return node.type_text
    if column == Column.VALUE:
        return node.text
    return format_nbytes(node.nbytes) if node.tensors else ""


def _counts(node: Node) -> str:
    """Return how much is in a row, exactly; nothing for a value."""
    if not node.tensors:
        return ""
    counts = [format_count(node.tensors, "tensor")] if node.kind != "tensor" else []
    counts += [f"{format_exact(node.parameters)} parameters"] if node.parameters else []
    counts += [f"{format_exact(node.nbytes)} bytes"]
    packed = format_count(node.integers, "matrix", "matrices")
    left = f"\n{packed} of integers, maybe packed weights, not counted" if node.integers else ""
    return ", ".join(counts) + left


class TreeModel(QAbstractItemModel):
    """A read-only view of one `Tree`, sorted and filtered, or of its rows as one list."""

    sort_wanted = Signal(int, bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tree = _EMPTY
        self._matches: tuple[int, ...] = ()
        self._is_filtered = False
        self._flat: tuple[int, ...] | None = None
        self._listed: tuple[int, ...] = ()
        self._title = _TITLES[Column.NAME]
        self._order: tuple[int, Qt.SortOrder] = (-1, Qt.SortOrder.AscendingOrder)
        self._children: dict[int, Sequence[int]] = {}
        self._rows: dict[int, int] = {}
        self._readers: dict[int, Callable[[int, int], object]] = {
            NODE_ROLE: lambda node_id, _column: node_id,
            Qt.ItemDataRole.DisplayRole: self.text,
            Qt.ItemDataRole.TextAlignmentRole: lambda _node_id, column: _alignment(column),
            Qt.ItemDataRole.ToolTipRole: self._tooltip,
            Qt.ItemDataRole.AccessibleTextRole: self._accessible,
        }

    @property
    def tree(self) -> Tree:
        """The tree that is shown."""
        return self._tree

    @property
    def is_filtered(self) -> bool:
        """Whether only the matches of a search are shown."""
        return self._is_filtered

    def set_tree(self, tree: Tree | None) -> None:
        """Show another tree, without a filter."""
        self.beginResetModel()
        self._tree = tree or _EMPTY
        self._matches, self._is_filtered, self._flat = (), False, None
        self._title = _TITLES[Column.NAME]
        self._forget()
        self.endResetModel()

    def set_filter(self, matches: Iterable[int] | None) -> None:
        """Show only these nodes, their ancestors, and all below an innermost match; None shows all.

        Nothing is looked at before it is seen: ids are numbered from top to bottom, so that two searches in
        the sorted matches tell whether there is one in a branch.
        """
        self.beginResetModel()
        self.set_matches(matches)
        self._is_filtered = matches is not None
        self._forget()
        self.endResetModel()

    def set_matches(self, matches: Iterable[int] | None) -> None:
        """Take the nodes that a search found; a tuple is in order already."""
        self._matches = matches if isinstance(matches, tuple) else tuple(sorted(matches or ()))

    @property
    def order(self) -> Order:
        """How the rows are sorted."""
        column, order = self._order
        return Order(column, order == Qt.SortOrder.DescendingOrder)

    @property
    def is_flat(self) -> bool:
        """Whether the rows are one list instead of a tree."""
        return self._flat is not None

    def set_flat(self, nodes: tuple[int, ...] | None, total: int = 0) -> None:
        """Show rows as one list, in this order, the first of so many; None shows the tree again."""
        self.beginResetModel()
        self._title = _TITLES[Column.NAME]
        if nodes is not None:
            self._title = "Path" if len(nodes) >= total else f"Path (first {len(nodes):,} of {total:,})"
        self._flat = nodes
        self._listed = (nodes or ())[:_FETCHED]
        self._forget()
        self.endResetModel()

    def is_match(self, node_id: int) -> bool:
        """Return whether a search found a node."""
        return self._has_match(node_id, node_id)

    def node(self, node_id: int) -> Node:
        """Return a node by its id."""
        return self._tree.nodes[node_id]

    def node_id(self, index: AnyIndex) -> int:
        """Return the id of the node at an index; 0, the root, for an invalid index."""
        return int(index.internalId())  # 0 for an invalid one

    def index_of(self, node_id: int, column: int = 0) -> QModelIndex:
        """Return the index of a node; an invalid one for the root and for nodes that the filter hides."""
        if not 0 < node_id < len(self._tree.nodes) or not self._is_shown(node_id):
            return QModelIndex()
        return self.createIndex(self._row(node_id), column, node_id)

    def level(self, node_id: int) -> int:
        """Return how many rows a node is below."""
        if self._flat is not None:
            return 0
        level, node_id = 0, self.node(node_id).parent
        while node_id > 0:
            level, node_id = level + 1, self.node(node_id).parent
        return level

    def in_order(self, node_ids: Iterable[int]) -> list[int]:
        """Return nodes from top to bottom, as they are sorted at present."""
        if self._flat is not None:
            return sorted(node_ids, key=self._row)
        if self._order[0] < 0:
            return sorted(node_ids)  # ids are numbered so
        places: dict[int, tuple[int, ...]] = {0: ()}
        return sorted(node_ids, key=lambda node_id: self._place(node_id, places))

    def _place(self, node_id: int, known: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
        """Return the rows on the way to a node; `known` remembers those of parents."""
        above = self.node(node_id).parent
        if above not in known:
            known[above] = self._place(above, known)
        return (*known[above], self._row(node_id))

    def below(self, node_id: int) -> Sequence[int]:
        """Return the ids below a node, sorted and filtered."""
        if self._flat is not None:
            return () if node_id else self._listed
        if not self._is_filtered and self._order[0] < 0:
            return self._tree.nodes[node_id].children
        known = self._children.get(node_id)
        return self._arrange(node_id) if known is None else known

    @override
    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort the rows by a column; -1 restores the order of the file. Selection and expansion are kept."""
        if self._order == (column, order):
            return
        if self._flat is not None:
            self._order = column, order  # the list comes sorted
            self.sort_wanted.emit(column, order == Qt.SortOrder.DescendingOrder)
            return
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        self._order = (column, order)
        self._forget()
        after = [self.index_of(self.node_id(index), index.column()) for index in before]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    # QAbstractItemModel.

    @override
    def index(self, row: int, column: int, parent: AnyIndex = _NO_INDEX) -> QModelIndex:
        if not 0 <= column < len(_TITLES) or parent.column() > 0:
            return _NO_INDEX
        ids = self.below(parent.internalId())
        return self.createIndex(row, column, ids[row]) if 0 <= row < len(ids) else _NO_INDEX

    @override
    def parent(self, index: AnyIndex = _NO_INDEX) -> QModelIndex:  # type: ignore[override]  # one name, two uses in Qt
        """Return the index of the parent row."""
        if self._flat is not None:
            return _NO_INDEX
        above = self._tree.nodes[index.internalId()].parent  # that of an invalid index is -1, as the root's
        return self.createIndex(self._row(above), 0, above) if above > 0 else _NO_INDEX

    @override
    def rowCount(self, parent: AnyIndex = _NO_INDEX) -> int:
        return 0 if parent.column() > 0 else len(self.below(parent.internalId()))

    @override
    def hasChildren(self, parent: AnyIndex = _NO_INDEX) -> bool:
        return self.rowCount(parent) > 0

    @override
    def canFetchMore(self, parent: AnyIndex) -> bool:
        return self._flat is not None and not parent.isValid() and len(self._listed) < len(self._flat)

    @override
    def fetchMore(self, parent: AnyIndex) -> None:
        self._fetch(len(self._listed) + _FETCHED)

    def reach(self, node_id: int) -> None:
        """Fetch the rows of a list up to one."""
        if self._flat is not None and self._row(node_id) >= len(self._listed):
            self._fetch(self._row(node_id) + 1)

    def _fetch(self, count: int) -> None:
        """Show that many rows of the list: Qt lays out all that it is told of."""
        more = (self._flat or ())[:count]
        if len(more) > len(self._listed):
            self.beginInsertRows(_NO_INDEX, len(self._listed), len(more) - 1)
            self._listed = more
            self.endInsertRows()

    @override
    def columnCount(self, parent: AnyIndex = _NO_INDEX) -> int:  # all rows have the same
        return len(_TITLES)

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(_TITLES):
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return self._title if section == Column.NAME else _TITLES[section]

    @override
    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        read = self._readers.get(role)
        return None if read is None else read(int(index.internalId()), index.column())

    def text(self, node_id: int, column: int) -> str:
        """Return the text of a cell; in a list the name is the whole path."""
        node = self._tree.nodes[node_id]
        if self._flat is not None and column == Column.NAME:
            return node.path or node.name
        return cell_text(node, column)

    def _tooltip(self, node_id: int, column: int) -> str:
        return plain_tooltip(self._remark(self.node(node_id), column))

    def _remark(self, node: Node, column: int) -> str:
        if column == Column.NAME:
            return f"{node.path.rstrip('/.') or node.name}\n{_counts(node)}".rstrip()
        if column == Column.DEVICE:
            return "\n".join(f"{device}: {format_nbytes(nbytes)}" for device, nbytes in node.devices)
        if column == Column.SIZE:
            return _counts(node)
        return cell_text(node, column)

    def _accessible(self, node_id: int, column: int) -> str:
        text = self.text(node_id, column)
        return f"{_TITLES[column]}: {text}" if text else f"{_TITLES[column]}: none"

    def _is_shown(self, node_id: int) -> bool:
        if self._flat is not None:
            return 0 <= self._row(node_id) < len(self._listed)
        if not self._is_filtered:
            return True
        return self._has_match(node_id, last_below(self._tree.nodes, node_id)) or self._is_within(node_id)

    def _has_match(self, first: int, last: int) -> bool:
        """Return whether a match is among these ids."""
        place = bisect_left(self._matches, first)
        return place < len(self._matches) and self._matches[place] <= last

    def _matching(self, ids: Sequence[int], last: int) -> list[int]:
        """Return which of the rows below one have a match in them, from match to match and not row by row."""
        found: list[int] = []
        place = bisect_left(self._matches, ids[0]) if ids else len(self._matches)
        while place < len(self._matches) and self._matches[place] <= last:
            row = bisect_right(ids, self._matches[place])
            found.append(ids[row - 1])
            place = bisect_left(self._matches, ids[row], place) if row < len(ids) else len(self._matches)
        return found

    def _is_within(self, node_id: int) -> bool:
        """Return whether a node is, or is below, a match without further matches below it."""
        place = bisect_right(self._matches, node_id) - 1
        if place < 0:
            return False
        match = self._matches[place]
        last = last_below(self._tree.nodes, match)
        return node_id <= last and not self._has_match(match + 1, last)

    def _row(self, node_id: int) -> int:
        if self._flat is not None:
            self._rows = self._rows or {child: row for row, child in enumerate(self._flat)}
            return self._rows.get(node_id, -1)
        if not self._is_filtered and self._order[0] < 0:
            return self._tree.nodes[node_id].row
        if node_id not in self._rows:
            self._arrange(self.node(node_id).parent)
        return self._rows[node_id]

    def _arrange(self, node_id: int) -> Sequence[int]:
        ids: Sequence[int] = self.node(node_id).children
        if self._is_filtered and not self._is_within(node_id):
            ids = self._matching(ids, last_below(self._tree.nodes, node_id))
        column, order = self._order
        if column >= 0:
            rank = rank_by(column)
            descending = order == Qt.SortOrder.DescendingOrder
            ids = sorted(ids, key=lambda child: rank(self.node(child)), reverse=descending)
        self._children[node_id] = ids
        self._rows.update((child, row) for row, child in enumerate(ids))
        return ids

    def _forget(self) -> None:
        self._children = {}
        self._rows = {}
