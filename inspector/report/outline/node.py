"""A row of the tree, and all rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from inspector.records import dataclass
from inspector.report.outline.shared import Run

NodeKind = Literal["group", "tensor", "value", "bucket"]


@dataclass(slots=True)
class Node:
    """One row; nobody changes it.

    Attributes:
        parent: Id of the parent row; -1 for the root.
        kind: `group` (module, mapping, sequence, object), `tensor`, `value`, or `bucket`: a slice of a very
            long list of children.
        name: The last step of the path, escaped and cut; of a chain of groups with nothing else in them, all
            their steps.
        children: Ids of the rows below, in file order.
        index: Index into the checkpoint's tensors or values, or -1.
        devices: (device, bytes) of the tensors below, largest first; for a tensor its own device.
        device_text: The text of the Device column: `cuda:0`, `cuda:0, cuda:1`, or empty; escaped.
        shape_text: The text of the Shape column: a shape, or how many parameters are below.
        type_text: The text of the Type column: a dtype, a value's type, or how many tensors are below.
        nbytes: Bytes of the tensors below; what several of them share counts once.
        tensors: How many tensors are below (1 for a tensor).
        path: Its path in the file; for a group, what the paths of all rows below begin with: `model/layer1.`,
            `optimizer/state/0/`. Empty for a bucket.
        parameters: How many parameters are below, as elements; what is tied counts once.
        integers: How many tensors below are weights made of integers, which have another number of
            parameters than of elements.
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
    path: str = ""
    parameters: int = 0
    integers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All rows; `nodes[0]` is the invisible root, ids are indexes into `nodes`, in the order of display.

    Attributes:
        tensor_nodes: The node id of each tensor of the checkpoint, by its index; -1 for a hidden one.
        value_nodes: The node id of each value, by its index; -1 for one that is not shown.
        colors: Color index of each device, see `session.screen.Segment.color`.
        runs: The bytes that several tensors share.
    """

    nodes: Sequence[Node]
    tensor_nodes: Sequence[int]
    value_nodes: Sequence[int]
    colors: dict[str, int]
    runs: tuple[Run, ...] = ()
