"""Storages: what the file holds of each, and how much of that its tensors view."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from inspector.containers.container import Container
from inspector.containers.rebuilds import FROM_TYPE, PARAMETERS, SENT, WRAPPER
from inspector.model.checkpoint import Piece, Storage, Tensor
from inspector.model.tensors.views import shared_text
from inspector.model.values.text import device_label, int_text
from inspector.pickles.values import Call, Global, Value

# Tensors that name their device themselves, beside or instead of their storages' location tags.
#
# A wrapper subclass (DTensor, ShardedTensor, quantized weights, ...) has no storage; torch makes it on the
# device that stands among its arguments. XLA, Maia and MTIA tensors are stored on the CPU and sent to
# theirs while they are loaded. See `_rebuild_wrapper_subclass` and `_rebuild_device_tensor_from_cpu_tensor`
# in torch's `torch/_utils.py`; `map_location` reaches both.

_WRAPPER_DEVICE, _SENT_DEVICE = 6, 2  # its place among the arguments

REBUILDS = SENT | FROM_TYPE | {WRAPPER}
"""The names of the calls that such a device can be an argument of."""


class OwnDevice(NamedTuple):
    """Where a tensor's own device stands: the arguments of a call, and its place among them.

    Attributes:
        has_parts: Whether the tensor is made of others that must be on its device: a wrapper.
    """

    args: tuple[Value, ...]
    place: int
    has_parts: bool


def find_own_device(value: Value) -> OwnDevice | None:
    """Return where a tensor names its device itself; None if it does not, or if the value is no tensor."""
    while isinstance(value, Call):
        name, args = _name_of(value.func), value.args
        if name in FROM_TYPE and isinstance(args, tuple) and len(args) > 2:
            return _in_arguments(_name_of(args[0]), args[2])
        if name not in PARAMETERS or not isinstance(args, tuple) or not args:
            return _in_arguments(name, args)
        value = args[0]
    return None


def _in_arguments(name: str, args: Value) -> OwnDevice | None:
    if name == WRAPPER:
        place = _WRAPPER_DEVICE
    elif name in SENT:
        place = _SENT_DEVICE
    else:
        return None
    if not isinstance(args, tuple) or len(args) <= place:
        return None
    return OwnDevice(args, place, has_parts=name == WRAPPER)


def _name_of(func: Value) -> str:
    return func.name if isinstance(func, Global) and func.package == "torch" else ""


Span = tuple[int, int]
_MOST = (1 << 63) - 1


class Views:
    """What tensors view of each storage: bytes from (inclusive) and to (exclusive), holes included.

    Nearly all storages have one tensor, so only the others get a list.
    """

    __slots__ = ("first", "more")

    def __init__(self) -> None:
        self.first: dict[str, Span] = {}
        self.more: defaultdict[str, list[Span]] = defaultdict(list)

    def add(self, key: str, span: Span) -> None:
        """Add what one tensor views."""
        if key in self.first:
            self.more[key].append(span)
        else:
            self.first[key] = span

    def total(self, key: str) -> tuple[int, int]:
        """Return how many bytes of a storage are viewed at least once, and by how many tensors."""
        first = self.first.get(key)
        if first is None:
            return 0, 0
        start, end = first
        if key not in self.more:
            return end - start, 1
        spans = [(start, end), *self.more[key]]
        return _length_of_union(spans), len(spans)


def build_storages(container: Container, views: Views) -> tuple[Storage, ...]:
    """Describe every storage, in the order of first use."""
    rows: list[Storage] = []
    parts, labels = container.parts, dict[str, str]()
    for key, (_, dtype, itemsize, location, numel, _, _) in container.storage_ids.items():
        declared, place = numel * itemsize, container.stored.get(key)
        missing, expected, part = place is None, None, ""
        if place is None:
            offset, nbytes = None, declared if declared <= _MOST else 0
        else:
            number, offset, nbytes = place
            if parts:
                part = parts[number].path
            if nbytes != declared:
                expected = declared
        viewed, tensors = views.total(key)
        if location not in labels:
            labels[location] = device_label(location)
        own = labels[location], dtype, nbytes, offset, missing, min(viewed, nbytes), tensors
        rows.append(Storage(key, *own, expected, part, _pieces(container, key)))
    return tuple(rows)


def _pieces(container: Container, key: str) -> tuple[Piece, ...]:
    found = container.gathered.get(key)
    if found is None:
        return ()
    return tuple(
        Piece(container.parts[one.part].path if one.part >= 0 else "", one.starts, one.sizes)
        for one in found.chunks
        if one.numel
    )


def mark_misfits(tensors: list[Tensor], storages: Iterable[Storage]) -> None:
    """Name the problem of tensors whose storage is not as long in the file as their pickle says."""
    misfits = {storage.key: storage for storage in storages if storage.expected_nbytes is not None}
    for row, tensor in enumerate(tensors) if misfits else ():
        storage = misfits.get(tensor.storage or "")
        if storage is not None and storage.expected_nbytes is not None and tensor.problem is None:
            expected = int_text(storage.expected_nbytes)
            problem = shared_text(
                f"its storage should have {expected} bytes, and the file holds {storage.nbytes}"
            )
            tensors[row] = tensor._replace(problem=problem)


def _length_of_union(spans: list[Span]) -> int:
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total
