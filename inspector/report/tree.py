"""The rows of the tree, ready to be shown: modules by dotted name, slots under their parameter's name.

Built once, off the GUI thread, for a window that then only indexes into it: ids are positions in a tuple,
in the order of display, so that a sorted list of ids is a list in display order.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.model.build import collector_paused
from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.report.arrange import MOST_NAME, Arrangement, Group, Leaf, arrange
from inspector.report.colors import device_name
from inspector.report.outline.node import Node, NodeKind, Tree
from inspector.report.outline.shared import shared_runs
from inspector.report.outline.sums import OTHERS, sum_up
from inspector.units import cut_text, format_shape

__all__ = ["OTHERS", "Node", "NodeKind", "Tree", "build_tree"]
"""The rows themselves are made of what stands in `outline`."""

BUCKET_ROWS = 1000
"""A parent of more than twice as many children shows them in slices of this size: Qt lays out all of them."""
_Rows = tuple[int, int, Sequence[Group | Leaf]]
"""A parent's id, the place of the next row, and the parent's rows."""


def build_tree(checkpoint: Checkpoint, colors: dict[str, int]) -> Tree:
    """Arrange a checkpoint's tensors and values as rows."""
    with collector_paused():
        numbered = _Numbering(checkpoint, arrange(checkpoint))
        runs = tuple(shared_runs(checkpoint))
        sum_up(numbered.nodes, checkpoint, numbered.tensor_nodes, runs)
    return Tree(
        nodes=tuple(numbered.nodes),
        tensor_nodes=tuple(numbered.tensor_nodes),
        value_nodes=tuple(numbered.value_nodes),
        colors=colors,
        runs=runs,
    )


class _Numbering:
    """Walks over an arrangement depth first, in the order of display, and makes a node of each row."""

    def __init__(self, checkpoint: Checkpoint, arrangement: Arrangement) -> None:
        self._checkpoint = checkpoint
        self._parts = arrangement.parts
        self.nodes = [Node(-1, 0, "group", "", [], -1, (), "", "", "", 0, 0, "")]
        self.tensor_nodes = [-1] * len(checkpoint.tensors)
        self.value_nodes = [-1] * len(checkpoint.values)
        stack: list[_Rows] = [(0, 0, in_buckets(arrangement.root.below))]
        while stack:
            stack.extend(self._number(*stack.pop()))

    def _number(self, parent: int, start: int, rows: Sequence[Group | Leaf]) -> list[_Rows]:
        """Number rows from `start` up to the first that has rows below; return the rows left, then those."""
        children = self.nodes[parent].children
        for row in range(start, len(rows)):
            id_ = len(self.nodes)
            children.append(id_)
            below = self._add(id_, parent, row, rows[row])
            if below:
                return [(parent, row + 1, rows), (id_, 0, below)]
        return []

    def _add(self, id_: int, parent: int, row: int, item: Group | Leaf) -> Sequence[Group | Leaf]:
        """Make the node of a row; return the rows below it."""
        if isinstance(item, Group):
            group, name = _end_of_chain(item)
            self.nodes.append(_group_node(parent, row, group, name))
            return group.below if group.is_bucket else in_buckets(group.below)
        _, index = item
        if index < 0:
            self.nodes.append(_value_node(parent, row, item, self._checkpoint.values[~index]))
            self.value_nodes[~index] = id_
            return ()
        self.nodes.append(_tensor_node(parent, row, item, self._checkpoint.tensors[index]))
        self.tensor_nodes[index] = id_
        return in_buckets(self._parts[index]) if index in self._parts else ()


def _end_of_chain(group: Group) -> tuple[Group, str]:
    """Follow groups that have nothing but one other group below; return the last, and the names of all."""
    name, end = group.name, group
    while (below := _only_group(end)) is not None:
        name, end = cut_text(f"{name}{end.path[-1:]}{below.name}", MOST_NAME), below
    return end, name


def _only_group(group: Group) -> Group | None:
    """Return the only row below a group if that is a group too."""
    if group.is_bucket or len(group.below) != 1:
        return None
    (below,) = group.below
    return below if isinstance(below, Group) else None


def in_buckets(below: Sequence[Group | Leaf]) -> Sequence[Group | Leaf]:
    """Slice a very long list of rows."""
    if len(below) <= 2 * BUCKET_ROWS:
        return below
    buckets = []
    for start in range(0, len(below), BUCKET_ROWS):
        rows = list(below[start : start + BUCKET_ROWS])
        first = rows[0].name if isinstance(rows[0], Group) else rows[0][0]
        name = f"{start:,} \u2026 {start + len(rows) - 1:,}   ({cut_text(first, 40)} \u2026)"
        buckets.append(Group(name, is_bucket=True, below=rows))
    return buckets


# --- rows ---------------------------------------------------------------------------------------------------
# By position: a hundred thousand rows are made before the window shows any.


def _group_node(parent: int, row: int, group: Group, name: str) -> Node:
    kind: NodeKind = "bucket" if group.is_bucket else "group"
    return Node(parent, row, kind, name, [], -1, (), "", "", "", 0, 0, "", group.path)


def _tensor_node(parent: int, row: int, leaf: Leaf, tensor: Tensor) -> Node:
    name, index = leaf
    device, nbytes = tensor.device, tensor.nbytes
    text, shape, devices = device_name(device), format_shape(tensor.shape), ((device, nbytes),)
    return Node(
        parent, row, "tensor", name, [], index, devices, text, shape, tensor.dtype, nbytes, 1, "", tensor.path
    )


def _value_node(parent: int, row: int, leaf: Leaf, value: ValueRow) -> Node:
    name, text = leaf[0], value.text
    return Node(parent, row, "value", name, [], ~leaf[1], (), "", "", value.type, 0, 0, text, value.path)
