"""A row of the tree, and all rows of a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Literal, NamedTuple

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.records import dataclass
from inspector.report.damage import NO_MARKS, Marks

# Bytes that several tensors view: each run of them once, with all tensors that do.
#
# A sum over a part of the tree counts a run once if any of its tensors stands there. Tied weights are the
# usual case, and views of one flat parameter beside it.

MOST_BITS = 128
"""A file can claim a thousand sizes for each of a million tensors; their product is not worked out again."""
_MOST_WORK = 4_000_000
"""A file can have a million views of which each overlaps with sixty others; the first of them are cut."""
_MOST_BOUNDS = 64
"""Views that overlap in more ways are not cut into runs: only those of the very same bytes count once."""


class Run(NamedTuple):
    """Bytes with all the tensors that view them, by their indexes; always two or more."""

    nbytes: int
    tensors: Sequence[int]


def shared_runs(checkpoint: Checkpoint) -> Iterator[Run]:
    """Yield the runs of bytes that more than one tensor views."""
    several = {storage.key for storage in checkpoint.storages if storage.tensors > 1}
    viewers: dict[str, list[int]] = defaultdict(list)
    for index, tensor in enumerate(checkpoint.tensors) if several else ():
        if tensor.storage in several and tensor.nbytes > 0:
            viewers[tensor.storage].append(index)
    work = 0
    for indexes in viewers.values():
        work += len(indexes) * min(len(indexes), _MOST_BOUNDS)
        yield from _runs_of(checkpoint.tensors, indexes, can_cut=work <= _MOST_WORK)


def _runs_of(tensors: Sequence[Tensor], indexes: Iterable[int], *, can_cut: bool) -> Iterator[Run]:
    """Yield the runs within one storage; of views with gaps only the same ones share."""
    spans: dict[tuple[int, int], list[int]] = defaultdict(list)
    others: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index in indexes:
        tensor = tensors[index]
        span = _span(tensor)
        if span is None:
            others[tensor.storage_offset, tensor.shape, tensor.stride, tensor.dtype].append(index)
        else:
            spans[span].append(index)
    yield from (Run(tensors[same[0]].nbytes, same) for same in others.values() if len(same) > 1)
    yield from _cut(spans, can_cut=can_cut)


def _cut(spans: dict[tuple[int, int], list[int]], *, can_cut: bool) -> Iterator[Run]:
    """Yield the runs of spans, cut where others begin or end within them."""
    ordered = sorted(spans)
    bounds = sorted({bound for span in spans for bound in span})
    apart = all(before[1] <= after[0] for before, after in pairwise(ordered))
    if apart or not can_cut or len(bounds) > _MOST_BOUNDS:
        yield from (
            Run(end - start, spans[start, end]) for start, end in ordered if len(spans[start, end]) > 1
        )
        return
    for start, end in pairwise(bounds):
        within = [index for span in ordered if span[0] <= start and end <= span[1] for index in spans[span]]
        if len(within) > 1:
            yield Run(end - start, sorted(within))


def _span(tensor: Tensor) -> tuple[int, int] | None:
    """Return the bytes from the first to the last that a tensor views; None if it leaves some out."""
    if tensor.nbytes.bit_length() > MOST_BITS:
        return None
    elements = prod(tensor.shape)
    if tensor.stride is None or tensor.storage_offset is None or elements <= 0:
        return None
    itemsize = tensor.nbytes // elements
    steps = zip(tensor.shape, tensor.stride, strict=False)
    if not itemsize or 1 + sum((size - 1) * step for size, step in steps) != elements:
        return None
    start = tensor.storage_offset * itemsize
    return start, start + tensor.nbytes


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
        colors: Color index of each device, see `charts.bars.Segment.color`.
        runs: The bytes that several tensors share.
        marks: What is wrong with rows, as far as it is known without reading their bytes.
    """

    nodes: Sequence[Node]
    tensor_nodes: Sequence[int]
    value_nodes: Sequence[int]
    colors: dict[str, int]
    runs: tuple[Run, ...] = ()
    marks: Marks = NO_MARKS


# How many parameters a model has: the numbers in its tensors of that role, each run of shared bytes once.


def count_parameters(checkpoint: Checkpoint) -> int:
    """Count the parameters of all models in a file; what is tied counts once, as in the sums of the tree."""
    tensors = checkpoint.tensors
    counts = {
        index: prod(tensor.shape) if tensor.nbytes.bit_length() <= MOST_BITS else tensor.nbytes
        for index, tensor in enumerate(tensors)
        if tensor.role == "parameter" and tensor.part_of is None
    }
    total = sum(counts.values())
    for run in shared_runs(checkpoint):
        for index in [index for index in run.tensors if counts.get(index)][1:]:
            total -= round(counts[index] * (run.nbytes / tensors[index].nbytes))
    return total
