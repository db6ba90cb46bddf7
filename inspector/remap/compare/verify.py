"""Whether a copy is what was planned: opened again and compared, tensor by tensor and value by value."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from inspector.errors import CancelledError, CheckpointError, ExportError
from inspector.model.checkpoint import (
    Checkpoint,
    HiddenDevice,
    HiddenPlace,
    OddKey,
    Storage,
    Tensor,
    ValueRow,
)
from inspector.model.roles.devices import is_accelerator
from inspector.records import replace
from inspector.remap.hidden import texts_of_hidden, with_hidden_moved, without_devices
from inspector.remap.plan import Plan

Row = TypeVar("Row", Tensor, ValueRow)
_MOST_DIFFERENCES = 20


@contextlib.contextmanager
def read_again(what: str) -> Iterator[None]:
    """Turn the failure to read a file that was just written into one of writing it.

    Raises:
        ExportError: Reading failed within the block.
    """
    try:
        yield
    except CancelledError:
        raise
    except CheckpointError as error:
        raise ExportError(f"{what} cannot be read: {error}") from error


def compare_with_plan(original: Checkpoint, copy: Checkpoint, plan: Plan) -> tuple[str, ...]:
    """Return the differences between a copy and what the plan makes of the original, one sentence each.

    None means: the same tensors in the same order on the planned devices, storages of the same size, and
    every other value as it was.
    """
    if any(original.hidden_devices[index].what is HiddenPlace.KEY for index in plan.hidden):
        original, copy = _without_keys(original), _without_keys(copy)
    found = [*_tensors(original, copy, plan), *_storages(original, copy, plan)]
    shown = texts_of_hidden(original.hidden_devices[index] for index in plan.hidden)
    if _values(original, shown) != _values(copy, shown):
        found.append("Values other than tensors differ.")
    if _hidden(with_hidden_moved(original.hidden_devices, plan.hidden)) != _hidden(copy.hidden_devices):
        found.append("Devices stored as values differ.")
    if _names(original) != _names(copy):
        found.append("The imported names differ.")
    return tuple(found[:_MOST_DIFFERENCES])


def _without_keys(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint with the devices in keys left out of all paths: they are compared by themselves."""

    def bare(row: Row) -> Row:
        keys = tuple(OddKey(without_devices(key)) if isinstance(key, OddKey) else key for key in row.keys)
        return row._replace(keys=keys, path=without_devices(row.path))

    return replace(
        checkpoint,
        tensors=tuple(map(bare, checkpoint.tensors)),
        values=tuple(map(bare, checkpoint.values)),
        hidden_devices=tuple(
            replace(row, path=without_devices(row.path)) for row in checkpoint.hidden_devices
        ),
    )


def _hidden(rows: Iterable[HiddenDevice]) -> list[HiddenDevice]:
    """Return devices as they are listed: of a file within bytes those of accelerators, each once."""
    kept: list[HiddenDevice] = []
    for row in rows:
        is_nested = row.what is HiddenPlace.NESTED
        if not is_nested or (is_accelerator(row.device) and row not in kept):
            kept.append(row)
    return kept


def _values(checkpoint: Checkpoint, shown: Collection[str]) -> list[ValueRow]:
    """Return the rows of values, without the texts of devices that are compared by themselves."""
    return [row._replace(text="") if row.path in shown else row for row in checkpoint.values]


def _names(checkpoint: Checkpoint) -> list[str]:
    # How often each is asked for may differ: where two shared one torch.device, each may have its own now.
    return [use.name for use in checkpoint.globals]


def _tensors(original: Checkpoint, copy: Checkpoint, plan: Plan) -> list[str]:
    if len(original.tensors) != len(copy.tensors):
        return [f"There are {len(copy.tensors):,} tensors instead of {len(original.tensors):,}."]
    found = []
    for index, (before, after) in enumerate(zip(original.tensors, copy.tensors, strict=True)):
        # One on meta has no device of its own to plan: it may be made of parts that move.
        is_planned = before.device != "meta" or before.storage is not None
        device = plan.tensors.get(index, before.device if is_planned else after.device)
        if _all_but_device(before) != _all_but_device(after) or after.device != device:
            found.append(f"{before.path} is not as planned.")
    return found


def _all_but_device(row: Tensor) -> tuple[object, ...]:
    place = (row.keys, row.path, row.storage, row.storage_offset, row.part_of)
    looks = (row.dtype, row.shape, row.stride, row.layout, row.requires_grad, row.problem)
    # Not the name of a slot's parameter: it may come from a file that lies beside one of them only.
    return (*place, *looks, row.role, row.slot)


def _storages(original: Checkpoint, copy: Checkpoint, plan: Plan) -> list[str]:
    def planned(row: Storage) -> tuple[str, str, str, int, bool]:
        return row.key, plan.storages.get(row.key, row.device), row.dtype, row.nbytes, row.missing

    wanted = [planned(row) for row in original.storages]
    if wanted == [(row.key, row.device, row.dtype, row.nbytes, row.missing) for row in copy.storages]:
        return []
    return ["The storages differ from the plan."]
