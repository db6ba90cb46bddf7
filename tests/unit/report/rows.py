"""Checkpoints made of rows, for tests that need no file."""

from __future__ import annotations

import unicodedata

from inspector.model.checkpoint import Checkpoint, Key, Optimizer, Safety, Storage, Tensor, ValueRow
from inspector.model.values.text import step_text
from inspector.records import replace

BLANK_TENSOR = dict(  # noqa: C408 - reads as the call that it becomes
    device="cpu",
    dtype="float32",
    shape=(4,),
    stride=(1,),
    storage_offset=0,
    layout="strided",
    requires_grad=False,
    nbytes=16,
    storage=None,
    role="parameter",
    parameter=None,
    slot=None,
    part_of=None,
    on_cpu_by_design=False,
    problem=None,
)
BLANK = Checkpoint(
    path="best.pth",
    format="zip",
    file_nbytes=1000,
    tensors=(),
    storages=(),
    values=(),
    globals=(),
    hidden_devices=(),
    optimizers=(),
    versions=(),
    root="mapping",
    module_class=None,
    safety=Safety(opcodes=("STOP",), protocol=2, oddities=(), unread=()),
    notes=(),
)


def is_harmless(text: str) -> bool:
    """Whether a text has no control, bidi or other invisible character in it, and no surrogate."""
    return not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} for char in text)


def path_of(keys: tuple[Key, ...]) -> str:
    return "/".join(step_text(key) for key in keys)


def tensor(*keys: Key, **fields: object) -> Tensor:
    return Tensor(**{**BLANK_TENSOR, "keys": keys, "path": path_of(keys), **fields})


def value(*keys: Key, **fields: object) -> ValueRow:
    return ValueRow(**{"keys": keys, "path": path_of(keys), "type": "int", "text": "1", **fields})


def storage(key: str, device: str = "cpu", nbytes: int = 16, **fields: object) -> Storage:
    blank = {"dtype": "float32", "file_offset": 64, "missing": False, "viewed_nbytes": nbytes, "tensors": 1}
    return Storage(**{"key": key, "device": device, "nbytes": nbytes, **blank, **fields})


def optimizer(*keys: Key, **fields: object) -> Optimizer:
    blank = {"parameters": 1, "with_state": 1, "naming": "order", "detail": "All agree.", "capturable": False}
    return Optimizer(**{"path": path_of(keys), "keys": keys, **blank, **fields})


def checkpoint(*rows: Tensor | ValueRow | Storage | Optimizer, **fields: object) -> Checkpoint:
    """Sort rows into a checkpoint; a value remembers how many tensors were given before it."""
    tensors: list[Tensor] = []
    values: list[ValueRow] = []
    for row in rows:
        if isinstance(row, Tensor):
            tensors.append(row)
        elif isinstance(row, ValueRow):
            values.append(value(*row.keys, type=row.type, text=row.text, after=len(tensors)))
    # Without other word, the file makes objects of the classes that it names, and calls nothing.
    names = tuple(use.name for use in fields.get("globals", ()))
    fields.setdefault("safety", replace(BLANK.safety, constructed=names))
    return replace(
        BLANK,
        tensors=tuple(tensors),
        values=tuple(values),
        storages=tuple(row for row in rows if isinstance(row, Storage)),
        optimizers=tuple(row for row in rows if isinstance(row, Optimizer)),
        **fields,
    )
