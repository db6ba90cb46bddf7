"""Checkpoints made of rows, for tests that need no file."""

from __future__ import annotations

from inspector.containers.notes import Note
from inspector.model.checkpoint import (
    Checkpoint,
    GlobalUse,
    Key,
    Optimizer,
    Role,
    Safety,
    Storage,
    Tensor,
    ValueRow,
)
from inspector.model.values.text import step_text
from inspector.records import replace
from inspector.target.profile import Profile

THIS = Profile(id="this", label="This machine")
SAFE = Safety(opcodes=("GLOBAL", "STOP"), protocol=2, oddities=(), unread=())


def tensor(
    *keys: Key,
    device: str = "cpu",
    role: Role = "parameter",
    dtype: str = "float32",
    nbytes: int = 4,
    part_of: int | None = None,
    on_cpu_by_design: bool = False,
) -> Tensor:
    return Tensor(
        keys=keys,
        path="/".join(map(step_text, keys)),
        device=device,
        dtype=dtype,
        shape=(nbytes,),
        stride=(1,),
        storage_offset=0,
        layout="strided",
        requires_grad=False,
        nbytes=nbytes,
        storage=None,
        role=role,
        parameter=None,
        slot=None,
        part_of=part_of,
        on_cpu_by_design=on_cpu_by_design,
        problem=None,
    )


def value(*keys: Key, type: str = "int", text: str = "1") -> ValueRow:  # noqa: A002 - the field's name
    return ValueRow(keys=keys, path="/".join(map(step_text, keys)), type=type, text=text)


def optimizer(*keys: Key) -> Optimizer:
    return Optimizer(
        path="/".join(map(step_text, keys)),
        keys=keys,
        parameters=1,
        with_state=1,
        naming="order",
        detail="",
        capturable=False,
    )


def storage(device: str) -> Storage:
    return Storage(
        key="0",
        device=device,
        dtype="uint8",
        nbytes=1,
        file_offset=0,
        missing=False,
        viewed_nbytes=1,
        tensors=1,
    )


def checkpoint(
    *tensors: Tensor,
    values: tuple[ValueRow, ...] = (),
    optimizers: tuple[Optimizer, ...] = (),
    storages: tuple[Storage, ...] = (),
    names: tuple[str, ...] = (),
    safety: Safety | None = None,
    root: str = "mapping",
    form: str = "zip",
    path: str = "best.pth",
    notes: tuple[Note, ...] = (),
) -> Checkpoint:
    return Checkpoint(
        path=path,
        format=form,
        file_nbytes=1000,
        tensors=tensors,
        storages=storages,
        values=values,
        globals=tuple(GlobalUse(name=name, count=1) for name in names),
        hidden_devices=(),
        optimizers=optimizers,
        versions=(),
        root=root,
        module_class=None,
        safety=replace(SAFE, constructed=names) if safety is None else safety,
        notes=notes,
    )
