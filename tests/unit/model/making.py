"""Checkpoints for the tests of the model: saved by torch itself, or from a pickle made by hand."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from inspector.containers.container import Container, StoredBytes, first_storage_ids
from inspector.containers.notes import Note
from inspector.containers.programs import Program
from inspector.containers.rebuilds import EXPECTED
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Value
from tests.builders import pickles


def saved(folder: Path, value: Any, name: str = "file.pt", **options: Any) -> Checkpoint:
    """What the program says of a value that torch saved."""
    import torch

    path = folder / name
    torch.save(value, path, **options)
    return open_checkpoint(str(path))


def loaded(folder: Path, name: str = "file.pt", **options: Any) -> Any:
    """What torch says of the same file."""
    import torch

    return torch.load(folder / name, **options)


def reloaded(value: Any) -> Any:
    """A value that went through a file."""
    import torch

    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


def by_hand(
    *instructions: bytes,
    stored: dict[str, int] | None = None,
    form: str = "zip",
    limits: Limits = DEFAULT_LIMITS,
    notes: tuple[Note, ...] = (),
    versions: tuple[tuple[str, str], ...] = (("version", "3"),),
    refusal: str = "",
) -> Checkpoint:
    """What the program says of a pickle made by hand; storages are whole unless `stored` says else."""
    data = pickles.proto() + b"".join(instructions) + pickles.STOP
    stream = read_pickle(data, expected=EXPECTED)
    ids = first_storage_ids(stream.persistent_ids, limits)
    sizes = {key: found.nbytes for key, found in ids.items()} if stored is None else stored
    container = Container(
        path="by-hand.pt",
        format=form,
        file_nbytes=len(stream.data),
        root=stream.root,
        stream=stream,
        programs=(Program("data.pkl", "object", stream),),
        storage_ids=ids,
        stored={key: StoredBytes(0, 64, nbytes) for key, nbytes in sizes.items() if key in ids},
        versions=versions,
        notes=notes,
        refusal=refusal,
    )
    return build_checkpoint(container, limits)


def storage(key: str = "0", numel: int = 4, *, device: str = "cpu", kind: str = "FloatStorage") -> bytes:
    """A persistent id."""
    return pickles.tuple_(
        pickles.text("storage"),
        pickles.name(f"torch.{kind}"),
        pickles.text(key),
        pickles.text(device),
        pickles.number(numel),
    ) + pickles.op("BINPERSID")


def call(dotted: str, *arguments: bytes) -> bytes:
    """An imported name, called."""
    return pickles.name(dotted) + pickles.tuple_(*arguments) + pickles.op("REDUCE")


def numbers(*values: int) -> bytes:
    """A tuple of integers."""
    return pickles.tuple_(*map(pickles.number, values))


def view(
    data: bytes | None = None,
    *,
    offset: bytes = pickles.number(0),
    size: bytes = numbers(4),
    stride: bytes = numbers(1),
    grad: bytes = pickles.op("NEWFALSE"),
) -> bytes:
    """A plain tensor."""
    hooks = call("collections.OrderedDict")
    return call("torch._utils._rebuild_tensor_v2", data or storage(), offset, size, stride, grad, hooks)


def pairs(**items: bytes) -> bytes:
    """A dictionary."""
    return pickles.dict_(*((pickles.text(key), item) for key, item in items.items()))


def built(target: bytes, state: bytes) -> bytes:
    """An object whose state is set."""
    return target + state + pickles.op("BUILD")


def root_of(*instructions: bytes) -> Value:
    """The inert value of a pickle made by hand."""
    data = pickles.proto() + b"".join(instructions) + pickles.STOP
    return read_pickle(data, expected=EXPECTED).root


def only(checkpoint: Checkpoint) -> Tensor:
    """The one tensor of a checkpoint."""
    (tensor,) = checkpoint.tensors
    return tensor


def by_path(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The tensors by path."""
    return {tensor.path: tensor for tensor in checkpoint.tensors}
