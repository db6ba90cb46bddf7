"""Checkpoints made of plain Python values and described tensors, in two formats, without torch."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from inspector.containers.persistent_ids import STORAGE_DTYPES
from tests.builders import pickles as p
from tests.builders.safetensors import safetensors
from tests.builders.zips import Record, checkpoint

_CLASSES = {dtype: name for name, (dtype, _) in reversed(STORAGE_DTYPES.items())}
_FORMATS = {
    "float32": "f",
    "float64": "d",
    "int64": "q",
    "uint8": "B",
    "float16": "e",
    "int32": "i",
    "complex64": "f",
}
_FORMATS["complex64"] = "f"  # two for each
_SAFE = {
    "float32": "F32",
    "float64": "F64",
    "int64": "I64",
    "uint8": "U8",
    "float16": "F16",
    "bfloat16": "BF16",
}


@dataclass(frozen=True, eq=False)
class T:
    """A tensor: its numbers, or bytes for other dtypes; tensors of one `key` share a storage.

    `kind` is the rebuild function: `v2`, `parameter`, or `qtensor` with `more` as its quantizer.
    """

    numbers: Any
    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    stride: tuple[int, ...] | None = None
    offset: int = 0
    device: str = "cpu"
    grad: bool = False
    key: str = ""
    kind: str = "v2"
    more: tuple[Any, ...] = ()

    @property
    def data(self) -> bytes:
        if isinstance(self.numbers, bytes):
            return self.numbers
        return struct.pack(f"<{len(self.numbers)}{_FORMATS[self.dtype]}", *self.numbers)

    @property
    def numel(self) -> int:
        return len(self.data) // STORAGE_DTYPES[_CLASSES[self.dtype]][1]

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.numel,) if self.shape is None else self.shape


@dataclass(frozen=True, eq=False)
class Raw:
    """Instructions as they are, or several values under one key that is written twice."""

    code: bytes


@dataclass(frozen=True, eq=False)
class Pairs:
    """A dictionary whose keys may be repeated, or be anything."""

    pairs: tuple[tuple[Any, Any], ...]


class _Writer:
    def __init__(self) -> None:
        self.storages: dict[str, bytes] = {}
        self._keys = count()
        self._memo: dict[int, int] = {}
        self._kept: list[object] = []

    def write(self, value: Any) -> bytes:
        if isinstance(value, dict | Pairs | list) and value:
            return self._shared(value)
        if isinstance(value, T):
            return self._tensor(value)
        if isinstance(value, Raw):
            return value.code
        return self._plain(value)

    def _shared(self, value: Any) -> bytes:
        """A container; the second time, the same object."""
        if id(value) in self._memo:
            return p.op("LONG_BINGET", struct.pack("<I", self._memo[id(value)]))
        number = self._memo[id(value)] = len(self._memo)
        self._kept.append(value)
        start = p.op("EMPTY_LIST") if isinstance(value, list) else p.op("EMPTY_DICT")
        start += p.op("LONG_BINPUT", struct.pack("<I", number)) + p.MARK
        if isinstance(value, list):
            return start + b"".join(map(self.write, value)) + p.op("APPENDS")
        pairs = value.pairs if isinstance(value, Pairs) else value.items()
        return start + b"".join(self.write(key) + self.write(item) for key, item in pairs) + p.op("SETITEMS")

    def _plain(self, value: Any) -> bytes:
        if isinstance(value, bool):
            return p.op("NEWTRUE" if value else "NEWFALSE")
        if isinstance(value, float):
            return p.op("BINFLOAT", struct.pack(">d", value))
        if isinstance(value, int):
            return p.number(value)
        if isinstance(value, str):
            return p.text(value)
        if isinstance(value, tuple):
            return p.tuple_(*map(self.write, value))
        return {"list": p.op("EMPTY_LIST"), "dict": p.op("EMPTY_DICT")}.get(type(value).__name__, p.NONE)

    def _tensor(self, t: T) -> bytes:
        key = t.key or f"auto{next(self._keys)}"
        self.storages.setdefault(key, t.data)
        push = p.storage(key, f"torch.{_CLASSES[t.dtype]}Storage", t.device, t.numel)
        shape = t.sizes
        stride = t.stride or tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        geometry = (push, p.number(t.offset), self.write(shape), self.write(stride))
        hooks = p.call("collections.OrderedDict")
        grad = self.write(t.grad)
        if t.kind == "qtensor":
            return p.call("torch._utils._rebuild_qtensor", *geometry, self.write(t.more), grad, hooks)
        made = p.call("torch._utils._rebuild_tensor_v2", *geometry, grad, hooks, *map(self.write, t.more))
        if t.kind == "parameter":
            return p.call("torch._utils._rebuild_parameter", made, grad, hooks)
        return made


def zip_bytes(value: Any, *, byteorder: str = "little", version: bytes = b"3\n") -> bytes:
    """A zip that holds a value, as torch.save writes it."""
    writer = _Writer()
    pickle = p.stream(p.proto(), writer.write(value))
    return checkpoint(
        pickle, writer.storages, Record(name="archive/byteorder", data=byteorder.encode()), version=version
    )


def save_zip(path: Path, value: Any, **more: Any) -> str:
    path.write_bytes(zip_bytes(value, **more))
    return str(path)


def save_safetensors(path: Path, tensors: Mapping[str, T], metadata: Mapping[str, str] | None = None) -> str:
    """Write contiguous tensors as safetensors; returns the path."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    data = b""
    for name, t in tensors.items():
        header[name] = {
            "dtype": _SAFE[t.dtype],
            "shape": list(t.sizes),
            "data_offsets": [len(data), len(data) + len(t.data)],
        }
        data += t.data
    path.write_bytes(safetensors(json.dumps(header), data))
    return str(path)
