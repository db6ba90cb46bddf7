"""Sums over a checkpoint: how much lies on which device, and what storages hold that nobody views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from inspector.model.checkpoint import ROLES, Checkpoint, Storage, Tensor
from inspector.model.once import once
from inspector.model.roles.devices import device_order
from inspector.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTotal:
    """One device of the file: tensors and storages on it, and the bytes that the file stores for it."""

    device: str
    tensors: int
    storages: int
    nbytes: int


@once
def device_totals(checkpoint: Checkpoint) -> tuple[DeviceTotal, ...]:
    """Add up by device: accelerators first, in their order, then the CPU, then meta."""
    tensors = Counter(tensor.device for tensor in checkpoint.tensors)
    storages = Counter(storage.device for storage in checkpoint.storages)
    nbytes: Counter[str] = Counter()
    for storage in checkpoint.storages:
        nbytes[storage.device] += storage.nbytes
    return tuple(
        DeviceTotal(
            device=device,
            tensors=tensors.get(device, 0),
            storages=storages.get(device, 0),
            nbytes=nbytes[device],
        )
        for device in sorted({*tensors, *storages}, key=device_order)
    )


@once
def _first_views(checkpoint: Checkpoint) -> dict[tuple[str, str], int]:
    """Return stored bytes by role and dtype of the first tensor that views them."""
    sizes = {storage.key: storage.nbytes for storage in checkpoint.storages}
    totals: dict[tuple[str, str], int] = {}
    for tensor in checkpoint.tensors:
        if tensor.storage is not None and tensor.storage in sizes:
            kind = tensor.role, tensor.dtype
            totals[kind] = totals.get(kind, 0) + sizes.pop(tensor.storage)
    return totals


def storage_nbytes_by(checkpoint: Checkpoint, label: Callable[[Tensor], str]) -> dict[str, int]:
    """Add up stored bytes by a property of tensors; a storage counts once, with the first that views it."""
    sizes = {storage.key: storage.nbytes for storage in checkpoint.storages}
    totals: Counter[str] = Counter()
    for tensor in checkpoint.tensors:
        if tensor.storage is not None and tensor.storage in sizes:
            totals[label(tensor)] += sizes.pop(tensor.storage)
    return dict(totals)


def role_totals(checkpoint: Checkpoint) -> tuple[tuple[str, int], ...]:
    """Add up stored bytes by role, in the fixed order of roles."""
    totals = _summed(checkpoint, 0)
    return tuple((role, totals[role]) for role in ROLES if role in totals)


def dtype_totals(checkpoint: Checkpoint) -> tuple[tuple[str, int], ...]:
    """Add up stored bytes by dtype, largest first."""
    totals = _summed(checkpoint, 1)
    return tuple(sorted(totals.items(), key=lambda item: -item[1]))


def _summed(checkpoint: Checkpoint, place: int) -> Counter[str]:
    totals: Counter[str] = Counter()
    for kind, nbytes in _first_views(checkpoint).items():
        totals[kind[place]] += nbytes
    return totals


def lost_nbytes(row: Storage) -> int:
    """Return how many bytes of a storage the file should hold and does not."""
    return row.nbytes if row.missing else max((row.expected_nbytes or 0) - row.nbytes, 0)


def wasted_nbytes(storages: Iterable[Storage]) -> int:
    """Add up the bytes that are stored and viewed by no tensor."""
    return sum([row.nbytes - row.viewed_nbytes for row in storages if row.nbytes > row.viewed_nbytes])
