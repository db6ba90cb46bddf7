"""The sums of groups: bytes by device, tensors and parameters, each shared run of bytes once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.roles.devices import device_order
from inspector.report.colors import device_name
from inspector.report.outline.node import Node
from inspector.report.outline.shared import MOST_BITS, Run
from inspector.units import format_count, format_quantity

OTHERS = "other devices"
"""Stands for all devices of a group beyond the first 64: no machine has more, but a file can name more."""
_MOST_SUMMED = 64
_MOST_LISTED = 3
_MATRIX = 2
_PACKING_DTYPES = frozenset({"uint8", "int8", "int16", "int32", "uint16", "uint32"})
"""Dtypes that packed weights are stored as; indexes, which are no weights, are int64."""
_NOTHING: dict[str, int] = {}


def sum_up(
    nodes: Sequence[Node], checkpoint: Checkpoint, tensor_nodes: Sequence[int], runs: Sequence[Run]
) -> None:
    """Fill the sums of groups from below; ids of children are larger than their parent's."""
    tensors = checkpoint.tensors
    sums: dict[int, dict[str, int]] = {id_: {} for id_, node in enumerate(nodes) if node.children}
    sums.setdefault(0, {})
    _count_parameters(nodes, tensors)
    _take_shared_once(nodes, sums, tensors, tensor_nodes, runs)
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
        above.parameters += node.parameters
        above.integers += node.integers
        if above.kind != "tensor":
            above.tensors += node.tensors
    _fill_group(nodes[0], sums[0])


def parameters_text(node: Node) -> str:
    """Return how many parameters a row has, and that there are weights that cannot be counted."""
    return quantities_text(node.parameters, node.integers)


def quantities_text(parameters: int, integers: int) -> str:
    """Return a count of parameters, and of the weights made of integers, which have more of them."""
    counted = f"{format_quantity(parameters)} params" if parameters else ""
    packed = f"{integers:,} int" if counted else format_count(integers, "int weight")
    return " + ".join(filter(None, (counted, packed if integers else "")))


def _count_parameters(nodes: Sequence[Node], tensors: Sequence[Tensor]) -> None:
    """Count those of each tensor: slots, buffers and averages have none; what is packed has more."""
    for node in nodes:
        tensor = tensors[node.index] if node.kind == "tensor" else None
        if tensor is None or tensor.part_of is not None:
            continue
        if tensor.role == "parameter":
            node.parameters = prod(tensor.shape) if tensor.nbytes.bit_length() <= MOST_BITS else tensor.nbytes
        elif tensor.role == "buffer" and tensor.dtype in _PACKING_DTYPES and len(tensor.shape) == _MATRIX:
            node.integers = 1


def _take_shared_once(
    nodes: Sequence[Node],
    sums: dict[int, dict[str, int]],
    tensors: Sequence[Tensor],
    tensor_nodes: Sequence[int],
    runs: Sequence[Run],
) -> None:
    """Subtract what is shared where the tensors that share it first meet: at the row that has both below it.

    Of the rows that share something in display order, each but the first takes it away again where it meets
    the one before it. So every group counts it once, wherever it stands.
    """
    for run in runs:
        places = sorted(id_ for index in run.tensors if (id_ := tensor_nodes[index]) >= 0)
        for before, after in pairwise(places):
            device, meeting = tensors[nodes[after].index].device, _meeting(nodes, before, after)
            sums[meeting][device] = sums[meeting].get(device, 0) - run.nbytes
            nodes[meeting].nbytes -= run.nbytes
        for before, after in pairwise([id_ for id_ in places if nodes[id_].parameters]):
            part = run.nbytes / tensors[nodes[after].index].nbytes
            nodes[_meeting(nodes, before, after)].parameters -= round(nodes[after].parameters * part)


def _meeting(nodes: Sequence[Node], one: int, other: int) -> int:
    """Return the innermost row that two rows are below; a parent's id is smaller than its children's."""
    one, other = nodes[one].parent, nodes[other].parent
    while one != other:
        if one > other:
            one = nodes[one].parent
        else:
            other = nodes[other].parent
    return one


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
    """Name the devices below a group in their order, the first few of many; and count what is below."""
    node.devices = tuple(totals.items())
    node.shape_text = parameters_text(node)
    node.type_text = format_count(node.tensors, "tensor")
    if len(totals) == 1:
        node.device_text = device_name(*totals)
        return
    node.devices = tuple(sorted(node.devices, key=lambda item: -item[1]))
    shown = [device_name(device) for device in sorted(totals, key=device_order)]
    if len(shown) > _MOST_LISTED:
        or_more = " or more" if len(totals) > _MOST_SUMMED else ""
        shown = [*shown[: _MOST_LISTED - 1], f"+{len(shown) - _MOST_LISTED + 1}{or_more}"]
    node.device_text = ", ".join(shown)
