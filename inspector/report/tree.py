"""The rows of the tree, ready to be shown: modules by dotted name, slots under their parameter's name.

Built once, off the GUI thread, for a window that then only indexes into it: ids are positions in a tuple,
in the order of display, so that a sorted list of ids is a list in display order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from inspector.model.checkpoint import Checkpoint, Key, Tensor
from inspector.model.devices import device_order
from inspector.model.texts import step_text
from inspector.units import cut_text, format_shape

NodeKind = Literal["group", "tensor", "value", "bucket"]
BUCKET_ROWS = 1000
"""A parent of more than twice as many children shows them in slices of this size: Qt lays out them all."""

_MOST_NAME = 512
_WRAPPERS = frozenset({"._modules", "._parameters", "._buffers"})


@dataclass(slots=True, kw_only=True)
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
        device_text: What the Device column says: `cuda:0`, `cuda:0, cuda:1`, or empty.
        shape_text: What the Shape column says.
        type_text: What the Type column says: a dtype, or a value's type.
        nbytes: Bytes of the tensors below, each part counted once.
        tensors: How many tensors stand below (1 for a tensor).
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
        colours: Colour index of each device, see `session.screen.Segment.colour`.
    """

    nodes: tuple[Node, ...]
    tensor_nodes: tuple[int, ...]
    value_nodes: tuple[int, ...]
    colours: dict[str, int]


@dataclass(slots=True, eq=False)
class _Draft:
    """A row before it has an id."""

    kind: NodeKind
    name: str
    index: int = -1
    below: list[_Draft] = field(default_factory=list)
    groups: dict[str, _Draft] = field(default_factory=dict)

    def group(self, name: str) -> _Draft:
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = self.add(_Draft("group", name))
        return found

    def add(self, draft: _Draft) -> _Draft:
        self.below.append(draft)
        return draft


def build_tree(checkpoint: Checkpoint, colours: dict[str, int]) -> Tree:
    """Arrange a checkpoint's tensors and values as rows."""
    root = _arrange(checkpoint)
    nodes: list[Node] = []
    tensor_nodes = [-1] * len(checkpoint.tensors)
    value_nodes = [-1] * len(checkpoint.values)
    for parent, row, draft in _in_display_order(root, nodes):
        id_ = len(nodes)
        nodes.append(_node(checkpoint, parent, row, draft))
        if parent >= 0:
            nodes[parent].children.append(id_)
        if draft.kind == "tensor":
            tensor_nodes[draft.index] = id_
        elif draft.kind == "value":
            value_nodes[draft.index] = id_
    _sum_up(nodes, checkpoint)
    return Tree(
        nodes=tuple(nodes), tensor_nodes=tuple(tensor_nodes), value_nodes=tuple(value_nodes), colours=colours
    )


# --- arranging ----------------------------------------------------------------------------------------------


def _arrange(checkpoint: Checkpoint) -> _Draft:
    root = _Draft("group", "")
    drafts: list[_Draft] = []
    for index, tensor in enumerate(checkpoint.tensors):
        *steps, name = _tensor_steps(tensor)
        parent = root if tensor.part_of is None else drafts[tensor.part_of]
        for step in steps if tensor.part_of is None else ():
            parent = parent.group(step)
        drafts.append(parent.add(_Draft("tensor", name, index)))
    for index, value in enumerate(checkpoint.values):
        if not _is_internal(value.keys):
            *steps, name = [_step(key) for key in value.keys if key not in _WRAPPERS] or ["(value)"]
            parent = root
            for step in steps:
                parent = parent.group(step)
            parent.add(_Draft("value", name, index))
    return root


def _tensor_steps(tensor: Tensor) -> list[str]:
    """Give the steps under which a tensor is shown, which differ from its keys in three ways.

    Dotted names of modules are nested, the dictionaries inside `nn.Module` are left out, and optimizer slots
    stand under their parameter's name.
    """
    keys = tensor.keys
    if not keys:
        return ["(tensor)"]
    if tensor.part_of is not None:
        return [_step(keys[-1])]
    if tensor.slot is not None:
        return _slot_steps(tensor)
    steps = [_step(key) for key in keys if key not in _WRAPPERS]
    last = keys[-1]
    if isinstance(last, str) and "." in last[1:-1]:
        return steps[:-1] + _dotted(last)
    return steps


def _slot_steps(tensor: Tensor) -> list[str]:
    at = len(tensor.keys) - 1
    while at > 0 and tensor.keys[at] != "state":
        at -= 1
    above = [_step(key) for key in tensor.keys[:at]]
    owner = tensor.keys[at + 1] if at + 1 < len(tensor.keys) else ""
    name = tensor.parameter if tensor.parameter is not None else f"parameter {owner}"
    return [*above, _cut(step_text(name)), *(_step(key) for key in tensor.keys[at + 2 :])]


def _dotted(name: str) -> list[str]:
    parts = name.split(".")
    return [_cut(step_text(part)) for part in parts] if all(parts) else [_cut(step_text(name))]


def _is_internal(keys: tuple[Key, ...]) -> bool:
    """Say whether a value is one of the empty hook dictionaries that every `nn.Module` carries."""
    return any(isinstance(key, str) and key.startswith("._") and key not in _WRAPPERS for key in keys)


def _step(key: Key) -> str:
    return _cut(step_text(key))


def _cut(text: str) -> str:
    return cut_text(text, _MOST_NAME) or "\u2205"


def _in_display_order(root: _Draft, nodes: list[Node]) -> Iterator[tuple[int, int, _Draft]]:
    """Walk over the drafts depth first, slicing very long lists of children into buckets."""
    stack = [(-1, 0, root)]
    while stack:
        parent, row, draft = stack.pop()
        id_ = len(nodes)
        yield parent, row, draft
        below = _in_buckets(draft.below) if draft.kind != "bucket" else draft.below
        stack.extend((id_, place, below[place]) for place in range(len(below) - 1, -1, -1))


def _in_buckets(below: list[_Draft]) -> list[_Draft]:
    if len(below) <= 2 * BUCKET_ROWS:
        return below
    buckets = []
    for start in range(0, len(below), BUCKET_ROWS):
        rows = below[start : start + BUCKET_ROWS]
        name = f"{start:,} \u2026 {start + len(rows) - 1:,}   ({cut_text(rows[0].name, 40)} \u2026)"
        buckets.append(_Draft("bucket", name, below=rows))
    return buckets


# --- filling ------------------------------------------------------------------------------------------------


def _node(checkpoint: Checkpoint, parent: int, row: int, draft: _Draft) -> Node:
    node = Node(
        parent=parent,
        row=row,
        kind=draft.kind,
        name=draft.name,
        children=[],
        index=draft.index,
        devices=(),
        device_text="",
        shape_text="",
        type_text="",
        nbytes=0,
        tensors=0,
        text="",
    )
    if draft.kind == "tensor":
        tensor = checkpoint.tensors[draft.index]
        node.shape_text, node.type_text = format_shape(tensor.shape), tensor.dtype
        node.devices, node.device_text = ((tensor.device, tensor.nbytes),), tensor.device
        node.nbytes, node.tensors = tensor.nbytes, 1
    elif draft.kind == "value":
        value = checkpoint.values[draft.index]
        node.type_text, node.text = value.type, value.text
    return node


def _sum_up(nodes: list[Node], checkpoint: Checkpoint) -> None:
    """Fill the sums of groups from below; ids of children are larger than their parent's."""
    sums: list[dict[str, int]] = [{} for _ in nodes]
    for id_ in range(len(nodes) - 1, -1, -1):
        node = nodes[id_]
        if node.kind == "tensor":
            _count_tensor(node, sums[id_], checkpoint.tensors[node.index])
        elif node.kind != "value":
            _count_group(node, sums[id_])
        if node.parent >= 0 and node.tensors:
            above = nodes[node.parent]
            above.nbytes += node.nbytes
            above.tensors += node.tensors if above.kind != "tensor" else 0
            totals = sums[node.parent]
            for device, nbytes in sums[id_].items():
                totals[device] = totals.get(device, 0) + nbytes


def _count_tensor(node: Node, totals: dict[str, int], tensor: Tensor) -> None:
    if node.children and tensor.storage is None:
        node.nbytes -= tensor.nbytes  # a sparse tensor takes what its parts take, not what it stands for
    else:
        totals[tensor.device] = totals.get(tensor.device, 0) + tensor.nbytes


def _count_group(node: Node, totals: dict[str, int]) -> None:
    node.devices = tuple(sorted(totals.items(), key=lambda item: -item[1]))
    node.device_text = ", ".join(sorted(totals, key=device_order))
