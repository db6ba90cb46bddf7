"""The rows of a `Tree` for Qt, made on demand: a million rows cost nothing until they are seen.

Indexes carry the integer id of their node, since `createIndex` keeps no Python object alive. Two things are
added to the plain tree: a sort order (by a column, else as in the file) and a filter (only the matches of a
search, their ancestors, and what is below them). Both are lists of children made when a row is first needed.
`list_model` has the same rows as one list.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.report.damage import NO_MARKS
from inspector.report.outline.flat import Column, Order, rank_by
from inspector.report.outline.node import Node
from inspector.report.outline.nodes import Nodes
from inspector.report.tree import Tree
from inspector.units import format_count, format_exact, format_nbytes, short_value, unescaped_path

if TYPE_CHECKING:
    from inspector.session.device_map import Landing


class Shape:
    """Which row is below which; ids are numbered from top to bottom."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._ends: Sequence[int]
        if isinstance(nodes, Nodes):
            self.parents: Sequence[int] = nodes.places.parents
            self.rows: Sequence[int] = nodes.places.rows
            self._ends = nodes.places.ends
        else:
            self.parents = [node.parent for node in nodes]
            self.rows = [node.row for node in nodes]
            self._ends = _ends_of(self.parents)

    def has_below(self, node_id: int) -> bool:
        return self._ends[node_id] > node_id + 1

    def last_below(self, node_id: int) -> int:
        return self._ends[node_id] - 1

    def below(self, node_id: int) -> Iterator[int]:
        child, ends = node_id + 1, self._ends
        while child < ends[node_id]:
            yield child
            child = ends[child]


def _ends_of(parents: Sequence[int]) -> list[int]:
    ends = list(range(1, len(parents) + 1))
    for node_id in range(len(parents) - 1, 0, -1):
        ends[parents[node_id]] = max(ends[parents[node_id]], ends[node_id])
    return ends


__all__ = [
    "NODE_ROLE",
    "TITLES",
    "Column",
    "TreeModel",
    "alignment",
    "cell_text",
    "readers_of",
    "remark",
    "spoken",
]
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
TITLES = ("Name", "Device", "Shape", "Type", "Size", "Value")
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)


def alignment(column: int) -> int:
    return _RIGHT if column == Column.SIZE else _LEFT


def cell_text(node: Node, column: int) -> str:
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
    if not node.tensors:
        return ""
    counts = [format_count(node.tensors, "tensor")] if node.kind != "tensor" else []
    counts += [f"{format_exact(node.parameters)} parameters"] if node.parameters else []
    counts += [f"{format_exact(node.nbytes)} bytes"]
    packed = format_count(node.integers, "matrix", "matrices")
    left = f"\n{packed} of integers, maybe packed weights, not counted" if node.integers else ""
    return ", ".join(counts) + left


def remark(node: Node, column: int, mark: str = "") -> str:
    if column == Column.NAME:
        lines = (unescaped_path(node.path.rstrip("/.")) or node.name, _counts(node), mark)
        return plain_tooltip("\n".join(filter(None, lines)))
    if column == Column.DEVICE:
        return plain_tooltip("\n".join(f"{name}: {format_nbytes(nbytes)}" for name, nbytes in node.devices))
    return plain_tooltip(_counts(node) if column == Column.SIZE else cell_text(node, column))


def spoken(column: int, text: str) -> str:
    return f"{TITLES[column]}: {text or 'none'}"


def readers_of(text: Callable[[int, int], str], tree: TreeModel) -> dict[int, Callable[[int, int], object]]:
    """Return what a cell says in each role, by the id of its row and its column."""

    def speak(node_id: int, column: int) -> str:
        mark = tree.mark(node_id) if column == Column.NAME else ""
        return spoken(column, ", ".join(filter(None, (text(node_id, column), mark))))

    return {
        NODE_ROLE: lambda node_id, _column: node_id,
        Qt.ItemDataRole.DisplayRole: text,
        Qt.ItemDataRole.TextAlignmentRole: lambda _node_id, column: alignment(column),
        Qt.ItemDataRole.ToolTipRole: lambda id_, column: remark(tree.node(id_), column, tree.mark(id_)),
        Qt.ItemDataRole.AccessibleTextRole: speak,
    }


class TreeModel(QAbstractItemModel):
    """A read-only view of one `Tree`, sorted and filtered."""

    sort_begun = Signal()
    sort_ended = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tree = _EMPTY
        self.scalars: Mapping[int, str] = {}
        self.marks = NO_MARKS
        self.landing: Landing | None = None
        self.shape = Shape(_EMPTY.nodes)
        self._matches: tuple[int, ...] = ()
        self._is_filtered = False
        self._order: tuple[int, Qt.SortOrder] = (-1, Qt.SortOrder.AscendingOrder)
        self._children: dict[int, Sequence[int]] = {}
        self._rows: dict[int, int] = {}
        self._readers = readers_of(self.text, self)

    @property
    def tree(self) -> Tree:
        return self._tree

    @property
    def is_filtered(self) -> bool:
        return self._is_filtered

    @property
    def first_match(self) -> int | None:
        return self._matches[0] if self._matches else None

    def set_tree(self, tree: Tree | None) -> None:
        self.beginResetModel()
        self._tree, self.scalars, self.marks, self.landing = tree or _EMPTY, {}, NO_MARKS, None
        self.shape = Shape(self._tree.nodes)
        self._matches, self._is_filtered = (), False
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
        column, order = self._order
        return Order(column, order == Qt.SortOrder.DescendingOrder)

    def is_match(self, node_id: int) -> bool:
        return self._has_match(node_id, node_id)

    def node(self, node_id: int) -> Node:
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
        level, parents = 0, self.shape.parents
        while (node_id := parents[node_id]) > 0:
            level += 1
        return level

    def in_order(self, node_ids: Iterable[int]) -> list[int]:
        if self._order[0] < 0:
            return sorted(node_ids)  # ids are numbered so
        places: dict[int, tuple[int, ...]] = {0: ()}
        return sorted(node_ids, key=lambda node_id: self._place(node_id, places))

    def _place(self, node_id: int, known: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
        """Return the rows on the way to a node; `known` remembers those of parents."""
        above = self.shape.parents[node_id]
        if above not in known:
            known[above] = self._place(above, known)
        return (*known[above], self._row(node_id))

    def below(self, node_id: int) -> Sequence[int]:
        known = self._children.get(node_id)
        return self._arrange(node_id) if known is None else known

    @override
    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort the rows by a column; -1 restores the order of the file. Selection and expansion are kept."""
        if self._order == (column, order):
            return
        self.sort_begun.emit()  # while it still stands as it was
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        self._order = (column, order)
        self._forget()
        after = [self.index_of(self.node_id(index), index.column()) for index in before]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()
        self.sort_ended.emit()

    # QAbstractItemModel.

    @override
    def index(self, row: int, column: int, parent: AnyIndex = _NO_INDEX) -> QModelIndex:
        if not 0 <= column < len(TITLES) or parent.column() > 0:
            return _NO_INDEX
        ids = self.below(parent.internalId())
        return self.createIndex(row, column, ids[row]) if 0 <= row < len(ids) else _NO_INDEX

    @override
    def parent(self, index: AnyIndex = _NO_INDEX) -> QModelIndex:  # type: ignore[override]  # one name, two uses in Qt
        above = self.shape.parents[index.internalId()]  # that of an invalid index is -1, as the root's
        return self.createIndex(self._row(above), 0, above) if above > 0 else _NO_INDEX

    @override
    def rowCount(self, parent: AnyIndex = _NO_INDEX) -> int:
        return 0 if parent.column() > 0 else len(self.below(parent.internalId()))

    @override
    def hasChildren(self, parent: AnyIndex = _NO_INDEX) -> bool:
        # Asked of every row that Qt lays out. A row that a filter shows has something of its branch below it.
        if parent.column() > 0:
            return False
        node_id = parent.internalId()
        return self.shape.has_below(node_id) and (node_id > 0 or bool(self.below(0)))

    @override
    def columnCount(self, parent: AnyIndex = _NO_INDEX) -> int:  # all rows have the same
        return len(TITLES)

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(TITLES):
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(section)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return TITLES[section]

    @override
    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        read = self._readers.get(role)
        return None if read is None else read(int(index.internalId()), index.column())

    @staticmethod
    def name_of(node: Node) -> str:
        return node.name

    def text(self, node_id: int, column: int) -> str:
        node = self._tree.nodes[node_id]
        if column == Column.DEVICE and self.landing is not None and node.devices:
            return self.landing.text(node)
        if column == Column.VALUE and node.kind == "tensor":
            return self.mark(node_id) or short_value("float", self.scalars.get(node.index, ""))
        return (self.mark(node_id) if column == Column.VALUE else "") or cell_text(node, column)

    def mark(self, node_id: int) -> str:
        """Return what is wrong with a row, or how often below it; empty for nearly all."""
        return self.marks.of(node_id, self.shape.last_below(node_id)) if self.marks else ""

    def _is_shown(self, node_id: int) -> bool:
        if not self._is_filtered:
            return True
        return self._has_match(node_id, self.shape.last_below(node_id)) or self._is_within(node_id)

    def _has_match(self, first: int, last: int) -> bool:
        place = bisect_left(self._matches, first)
        return place < len(self._matches) and self._matches[place] <= last

    def _matching(self, node_id: int, most: int | None = None) -> list[int]:
        """Return which of the rows below one have a match in them, from match to match."""
        found: list[int] = []
        matches, parents, last = self._matches, self.shape.parents, self.shape.last_below(node_id)
        place = bisect_right(matches, node_id)
        while place < len(matches) and matches[place] <= last and len(found) != most:
            child = matches[place]
            while parents[child] != node_id:
                child = parents[child]
            found.append(child)
            place = bisect_right(matches, self.shape.last_below(child), place)
        return found

    def _is_within(self, node_id: int) -> bool:
        """Return whether a node is, or is below, a match without further matches below it."""
        place = bisect_right(self._matches, node_id) - 1
        if place < 0:
            return False
        match = self._matches[place]
        last = self.shape.last_below(match)
        return node_id <= last and not self._has_match(match + 1, last)

    def _row(self, node_id: int) -> int:
        if not self._is_filtered and self._order[0] < 0:
            return self.shape.rows[node_id]
        if node_id not in self._rows:
            self._arrange(self.shape.parents[node_id])
        return self._rows[node_id]

    def _arrange(self, node_id: int) -> Sequence[int]:
        ids = self._found_below(node_id)
        column, order = self._order
        if column >= 0:
            descending = order == Qt.SortOrder.DescendingOrder
            ids = sorted(ids, key=rank_by(self._tree.nodes, column), reverse=descending)
        self._children[node_id] = ids
        self._rows.update((child, row) for row, child in enumerate(ids))
        return ids

    def first_below(self, node_id: int, most: int) -> list[int]:
        """Return some of the ids below a node, in the order of the file: no more work than so many."""
        return self._found_below(node_id, most)

    def _found_below(self, node_id: int, most: int | None = None) -> list[int]:
        if self._is_filtered and not self._is_within(node_id):
            return self._matching(node_id, most)
        return list(islice(self.shape.below(node_id), most))

    def _forget(self) -> None:
        self._children = {}
        self._rows = {}
