"""The rows of the tree, ready to be shown: modules by dotted name, slots under their parameter's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NodeKind = Literal["group", "tensor", "value", "bucket"]


@dataclass(slots=True, kw_only=True)
class Node:
    """One row. Filled while the tree is built, then only read.

    Attributes:
        parent: Id of the parent row; -1 for the root.
        row: Position among the parent's children.
        kind: `group` (module, mapping, sequence, object), `tensor`, `value`, or `bucket`: a slice of a very long list of children.
        name: The last step of the path, escaped and cut.
        children: Ids of the rows below, in file order.
        index: Index into the checkpoint's tensors or values, or -1.
        devices: (device, stored bytes) of everything below, largest first; for a tensor its own device.
        device_text: What the Device column says: `cuda:0`, `cuda:0, cuda:1`, or empty.
        shape_text: What the Shape column says.
        type_text: What the Type column says: a dtype, or a value's type.
        nbytes: Logical bytes of the tensors below, parts not counted twice.
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
    """All rows; `nodes[0]` is the invisible root, ids are indexes into `nodes`.

    Attributes:
        nodes: The rows.
        tensor_nodes: The node id of each tensor of the checkpoint, by its index.
        colours: Colour index of each device, see `session.screen.Segment.colour`.
    """

    nodes: tuple[Node, ...]
    tensor_nodes: tuple[int, ...]
    colours: dict[str, int]
