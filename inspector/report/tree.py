"""The rows of the tree, ready to be shown: modules by dotted name, slots under their parameter's name.

Built once, off the GUI thread, for a window that then only indexes into it: ids are positions in a tuple,
in the order of display, so that a sorted list of ids is a list in display order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from inspector.model.build import collector_paused
from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.model.roles.devices import device_order
from inspector.records import dataclass
from inspector.report.arrange import Arrangement, Group, Leaf, arrange
from inspector.report.colors import device_name
from inspector.units import cut_text, format_shape

NodeKind = Literal["group", "tensor", "value", "bucket"]
BUCKET_ROWS = 1000
"""A parent of more than twice as many children shows them in slices of this size: Qt lays out all of them."""
_MOST_LISTED = 3
_MOST_SUMMED = 64
OTHERS = "other devices"
"""Stands for all devices of a group beyond the first 64: no machine has more, but a file can name more."""
_NOTHING: dict[str, int] = {}
_Rows = tuple[int, int, Sequence[Group | Leaf]]
"""A parent's id, the place of the next row, and the parent's rows."""


@dataclass(slots=True)
class Node:
    """One row. Filled while the tree is built, then only read.

    Attributes:
        parent: Id of the parent row; -1 for the root.
        row: Position among the parent's children.
        kind: `group` (module, mapping, sequence, object), `tensor`, `value`, or `bucket`: a slice of a very
            long list of children.
        name: The last step of the path, escaped and cut.
        children: Ids of the rows below, in file order.
        index: Index into the checkpoint's tensors or values, or -1.
        devices: (device, bytes) of the tensors below, largest first; for a tensor its own device.
        device_text: The text of the Device column: `cuda:0`, `cuda:0, cuda:1`, or empty; escaped.
        shape_text: The text of the Shape column.
        type_text: The text of the Type column: a dtype, or a value's type.
        nbytes: Bytes of the tensors below, each part counted once.
        tensors: How many tensors are below (1 for a tensor).
        text: For a value, its short text.
    """

    parent: int
    row: int
    kind: NodeKind
    name: str
    children: list[int]
    index: int
    devices: tuple[tuple[str, int], ...]
    device_text: str
    shape_text: str
    type_text: str
    nbytes: int
    tensors: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All rows; `nodes[0]` is the invisible root, ids are indexes into `nodes`, in the order of display.

    Attributes:
        nodes: The rows.
        tensor_nodes: The node id of each tensor of the checkpoint, by its index; -1 for a hidden one.
        value_nodes: The node id of each value, by its index; -1 for one that is not shown.
        colors: Color index of each device, see `session.screen.Segment.color`.
    """

    nodes: tuple[Node, ...]
    tensor_nodes: tuple[int, ...]
    value_nodes: tuple[int, ...]
    colors: dict[str, int]


def build_tree(checkpoint: Checkpoint, colors: dict[str, int]) -> Tree:
    """Arrange a checkpoint's tensors and values as rows."""
    with collector_paused():
        numbered = _Numbering(checkpoint, arrange(checkpoint))
        _sum_up(numbered.nodes, checkpoint.tensors)
    return Tree(
        nodes=tuple(numbered.nodes),
        tensor_nodes=tuple(numbered.tensor_nodes),
        value_nodes=tuple(numbered.value_nodes),
        colors=colors,
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
            self.nodes.append(_group_node(parent, row, item))
            return item.below if item.is_bucket else in_buckets(item.below)
        _, index = item
        if index < 0:
            self.nodes.append(_value_node(parent, row, item, self._checkpoint.values[~index]))
            self.value_nodes[~index] = id_
            return ()
        self.nodes.append(_tensor_node(parent, row, item, self._checkpoint.tensors[index]))
        self.tensor_nodes[index] = id_
        return in_buckets(self._parts[index]) if index in self._parts else ()


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


def _group_node(parent: int, row: int, group: Group) -> Node:
    kind: NodeKind = "bucket" if group.is_bucket else "group"
    return Node(parent, row, kind, group.name, [], -1, (), "", "", "", 0, 0, "")


def _tensor_node(parent: int, row: int, leaf: Leaf, tensor: Tensor) -> Node:
    name, index = leaf
    device, nbytes = tensor.device, tensor.nbytes
    text, shape, devices = device_name(device), format_shape(tensor.shape), ((device, nbytes),)
    return Node(parent, row, "tensor", name, [], index, devices, text, shape, tensor.dtype, nbytes, 1, "")


def _value_node(parent: int, row: int, leaf: Leaf, value: ValueRow) -> Node:
    return Node(parent, row, "value", leaf[0], [], ~leaf[1], (), "", "", value.type, 0, 0, value.text)


# --- sums ---------------------------------------------------------------------------------------------------


def _sum_up(nodes: list[Node], tensors: Sequence[Tensor]) -> None:
    """Fill the sums of groups from below; ids of children are larger than their parent's."""
    sums: dict[int, dict[str, int]] = {id_: {} for id_, node in enumerate(nodes) if node.children}
    sums.setdefault(0, {})
    for id_ in range(len(nodes) - 1, 0, -1):
        node = nodes[id_]
        own = sums.get(id_, _NOTHING)
        totals = sums[node.parent]
        if node.kind == "tensor":
            tensor = tensors[node.index]
            if own and tensor.storage is None:
                node.nbytes -= tensor.nbytes  # a sparse tensor takes what its parts take
            else:
                _add(totals, tensor.device, tensor.nbytes)
        elif not own:
            continue
        if own:
            _hand_up(node, own, totals)
        above = nodes[node.parent]
        above.nbytes += node.nbytes
        if above.kind != "tensor":
            above.tensors += node.tensors
    _fill_group(nodes[0], sums[0])


def _hand_up(node: Node, own: dict[str, int], totals: dict[str, int]) -> None:
    """Fill a row that has others below, and add its sums to those of its parent."""
    if node.kind != "tensor":
        _fill_group(node, own)
    for device, nbytes in own.items():
        _add(totals, device, nbytes)


def _add(totals: dict[str, int], device: str, nbytes: int) -> None:
    """Add to the sum of a device; those beyond the first ones of a group share a sum.

    A file can name a hundred thousand devices two hundred levels deep, and each level would sum up all.
    """
    if len(totals) >= _MOST_SUMMED and device not in totals:
        device = OTHERS
    totals[device] = totals.get(device, 0) + nbytes


def _fill_group(node: Node, totals: dict[str, int]) -> None:
    """Name the devices below a group in their order, the first few of many."""
    node.devices = tuple(totals.items())
    if len(totals) == 1:
        node.device_text = device_name(*totals)
        return
    node.devices = tuple(sorted(node.devices, key=lambda item: -item[1]))
    shown = [device_name(device) for device in sorted(totals, key=device_order)]
    if len(shown) > _MOST_LISTED:
        or_more = " or more" if len(totals) > _MOST_SUMMED else ""
        shown = [*shown[: _MOST_LISTED - 1], f"+{len(shown) - _MOST_LISTED + 1}{or_more}"]
    node.device_text = ", ".join(shown)
