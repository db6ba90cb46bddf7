"""Whether two loaded values are the same: types, values to the last bit, order, and what is shared with what.

Two values are the same if one could be put in the place of the other and no program noticed, except by the
address: so of anything that can be changed, or told apart by `is`, the copy must share where the original
shares, and only there. Texts, numbers and bytes have no identity to speak of.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import pathlib
import struct
import types
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch

_FIXED = (
    torch.dtype,
    torch.layout,
    torch.memory_format,
    torch.qscheme,
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    enum.Enum,
)
_EQUAL = (
    dt.date,
    dt.time,
    dt.timedelta,
    dt.tzinfo,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
    pathlib.PurePath,
    range,
    torch.device,
)

_COMPRESSED = ("crow_indices", "col_indices", "values")
_TURNED = ("ccol_indices", "row_indices", "values")
_PARTS: dict[torch.layout, tuple[str, ...]] = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: _COMPRESSED,
    torch.sparse_bsr: _COMPRESSED,
    torch.sparse_csc: _TURNED,
    torch.sparse_bsc: _TURNED,
}

Part = tuple[str, Any, Any]


class Comparison:
    """Compares one value with another, which if `compact` may lack bytes that no tensor views."""

    def __init__(self, *, compact: bool = False) -> None:
        self.compact = compact
        self._there: dict[object, object] = {}
        self._here: dict[object, object] = {}
        self._views: dict[object, list[tuple[int, int, int, str]]] = {}
        self._kept: list[Any] = []

    def differences(self, one: Any, other: Any) -> Iterator[str]:
        todo: list[Part] = [("", one, other)]
        while todo:
            path, first, second = todo.pop()
            found = self._compare(path, first, second)
            if isinstance(found, str):
                yield f"{path or 'root'}: {found}"
            else:
                todo += found
        yield from self._moved_views()

    def _compare(self, path: str, one: Any, other: Any) -> str | list[Part]:
        if type(one) is not type(other):
            return f"{type(one).__name__} is now {type(other).__name__}"
        if isinstance(one, _FIXED):
            return _unless(one is other, one, other)
        compare = _ATOMS.get(type(one))
        if compare is not None or (type(one) is tuple and not one and not other):
            return _unless(compare is None or compare(one) == compare(other), one, other)
        known = self._met(id(one), id(other))
        self._kept += (one, other)
        if known is not None:
            return "shared with something else" if known is False else []
        kinds = [method for kind, method in _CONTENTS if isinstance(one, kind)]
        return kinds[0](self, path, one, other) if kinds else self._object(path, one, other)

    def _met(self, one: object, other: object) -> bool | None:
        """Return whether they were met together before; False if either was met with something else."""
        if one not in self._there and other not in self._here:
            self._there[one], self._here[other] = other, one
            return None
        return self._there.get(one) == other and self._here.get(other) == one

    def _object(self, path: str, one: Any, other: Any) -> str | list[Part]:
        names = [name for name in ("maxlen", "default_factory") if hasattr(one, name)]
        parts = [_both(path, name, one, other) for name in names]
        # Of classes derived from these, there is the value, too.
        kinds: list[Any] = [kind for kind in (int, str, bytes, float) if isinstance(one, kind)]
        parts += [(f"{path}.value", kind(one), kind(other)) for kind in kinds]
        mine, yours = _items(one), _items(other)
        if len(mine) != len(yours):
            return f"{len(mine)} items are now {len(yours)}"
        parts += [(f"{path}/{number}", *pair) for number, pair in enumerate(zip(mine, yours, strict=True))]
        return parts + _attributes(path, one, other)

    def _equal(self, path: str, one: Any, other: Any) -> str | list[Part]:
        return _unless(one == other and repr(one) == repr(other), one, other)

    def _slice(self, path: str, one: slice, other: slice) -> list[Part]:
        return [_both(path, name, one, other) for name in ("start", "stop", "step")]

    def _numpy(self, path: str, one: Any, other: Any) -> str | list[Part]:
        is_same = repr(one) == repr(other) and (isinstance(one, np.dtype) or one.tobytes() == other.tobytes())
        return _unless(is_same, one, other)

    def _array(self, path: str, one: Any, other: Any) -> str | list[Part]:
        if _array_facts(one) != _array_facts(other):
            return f"{_array_facts(one)} is now {_array_facts(other)}"
        if one.dtype.hasobject:
            pairs = zip(one.flat, other.flat, strict=True)
            return [(f"{path}/{number}", *pair) for number, pair in enumerate(pairs)]
        return [(f"{path}.bytes", one.tobytes(), other.tobytes())]

    def _generator(self, path: str, one: torch.Generator, other: torch.Generator) -> list[Part]:
        return [(f"{path}.state", one.get_state(), other.get_state())]

    # --- tensors --------------------------------------------------------------------------------------------

    def _tensor(self, path: str, one: torch.Tensor, other: torch.Tensor) -> str | list[Part]:
        if _facts(one) != _facts(other):
            return f"{_facts(one)} is now {_facts(other)}"
        parts = [*_attributes(path, one, other), _both(path, "_backward_hooks", one, other)]
        inner = _PARTS.get(one.layout, ())
        if inner:
            one, other = one.detach(), other.detach()
            parts += [(f"{path}.{name}", getattr(one, name)(), getattr(other, name)()) for name in inner]
            return parts
        if one.is_nested:
            return [*parts, (f"{path}.parts", list(one.unbind()), list(other.unbind()))]
        if one.device.type == "meta" or hasattr(type(one), "__tensor_flatten__"):
            return parts  # the tensors that a wrapper holds are its attributes
        return parts + self._strided(path, one, other)

    def _strided(self, path: str, one: torch.Tensor, other: torch.Tensor) -> list[Part]:
        storages = one.untyped_storage(), other.untyped_storage()
        first, size = one.storage_offset() * one.itemsize, _span(one)
        self._views.setdefault(storages[0]._cdata, []).append(
            (first, first + size, other.storage_offset() * other.itemsize - first, path)
        )
        if not self.compact:
            return [
                (f"{path}.offset", one.storage_offset(), other.storage_offset()),
                (f"{path}.storage", *storages),
            ]
        if not one.numel():  # no byte of it is kept, and torch makes each storage of no bytes anew
            return []
        shared = self._met(("storage", storages[0]._cdata), ("storage", storages[1]._cdata))
        mine, yours = (_viewed_bytes(tensor) for tensor in (one, other))
        return [(f"{path}.shared", True, shared is not False), (f"{path}.bytes", mine, yours)]

    def _storage(self, path: str, one: Any, other: Any) -> str | list[Part]:
        if isinstance(one, torch.TypedStorage):
            return [
                (f"{path}.dtype", one.dtype, other.dtype),
                (f"{path}.untyped", one._untyped_storage, other._untyped_storage),
            ]
        if self._met(("storage", one._cdata), ("storage", other._cdata)) is False:
            return "a storage is shared with something else"
        if one.device.type == "meta":
            return [(f"{path}.nbytes", one.nbytes(), other.nbytes())]
        return [(f"{path}.bytes", _storage_bytes(one), _storage_bytes(other))]

    def _moved_views(self) -> Iterator[str]:
        """Return views that overlapped and do not any more."""
        for views in self._views.values():
            views.sort()
            for (_, end, moved, path), (start, _, also, other) in pairwise(views):
                if start < end and moved != also:
                    yield f"{path} and {other} overlap in another way"


def differences(one: Any, other: Any, *, compact: bool = False) -> list[str]:
    return list(Comparison(compact=compact).differences(one, other))


def assert_same(one: Any, other: Any, *, compact: bool = False) -> None:
    found = differences(one, other, compact=compact)
    assert not found, "\n".join(found[:9])


def _itself(value: Any) -> Any:
    return value


def _bits(number: float) -> bytes:
    return struct.pack(">d", number)


def _complex_bits(number: complex) -> bytes:
    return _bits(number.real) + _bits(number.imag)


def _order(item: Any) -> tuple[str, str]:
    return type(item).__name__, repr(sorted(item, key=_order) if isinstance(item, frozenset) else item)


def _attributes(path: str, one: Any, other: Any) -> list[Part]:
    parts: list[Part] = [
        (f"{path}.__dict__", dict(getattr(one, "__dict__", {})), dict(getattr(other, "__dict__", {})))
    ]
    parts = [(name, mine, yours) for name, mine, yours in parts if mine or yours]
    names = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [name for name in names if name not in {"__dict__", "__weakref__"}]
    missing = "no such attribute"
    return parts + [
        (f"{path}.{name}", getattr(one, name, missing), getattr(other, name, missing)) for name in names
    ]


def _both(path: str, name: str, one: Any, other: Any) -> Part:
    return f"{path}.{name}", getattr(one, name), getattr(other, name)


def _unless(is_same: bool, one: Any, other: Any) -> str | list[Part]:
    return [] if is_same else f"{one!r:.80} is now {other!r:.80}"


def _items(value: Any) -> list[Any]:
    if isinstance(value, OrderedDict):
        return [part for pair in OrderedDict.items(value) for part in pair]
    if isinstance(value, dict):
        return [part for pair in dict.items(value) for part in pair]  # a subclass may have its own `items`
    if isinstance(value, set | frozenset):
        return sorted(value, key=_order)
    return list(value) if isinstance(value, list | tuple | deque) else []


def _array_facts(array: Any) -> tuple[object, ...]:
    flags = array.flags
    return repr(array.dtype), array.dtype.byteorder, array.shape, flags.writeable, flags.f_contiguous


def _facts(tensor: torch.Tensor) -> tuple[object, ...]:
    looks = (
        tensor.dtype,
        tensor.device,
        tensor.layout,
        tensor.requires_grad,
        tensor.is_leaf,
        tensor.is_nested,
    )
    if tensor.is_nested:
        return looks
    bits = (
        tensor.is_conj(),
        tensor.is_neg(),
        tuple(tensor.shape),
        tensor.is_quantized and _quantization(tensor),
    )
    if tensor.layout == torch.sparse_coo:
        return (*looks, *bits, tensor.is_coalesced())
    return (*looks, *bits, tensor.stride() if tensor.layout == torch.strided else None)


def _quantization(tensor: torch.Tensor) -> tuple[object, ...]:
    if tensor.qscheme() == torch.per_tensor_affine:
        return tensor.qscheme(), tensor.q_scale(), tensor.q_zero_point()
    scales, points = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return tensor.qscheme(), scales.tolist(), points.tolist(), points.dtype, tensor.q_per_channel_axis()


def _span(tensor: torch.Tensor) -> int:
    if not tensor.numel():
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.itemsize


def _viewed_bytes(tensor: torch.Tensor) -> bytes:
    data = _storage_bytes(tensor.untyped_storage())
    start = tensor.storage_offset() * tensor.itemsize
    if len(data) < start + _span(tensor):  # several elements share a byte, as those of quint4x2
        return data[start:]
    flat = np.frombuffer(data[start : start + _span(tensor)], dtype=np.uint8)
    strides = [stride * tensor.itemsize for stride in tensor.stride()]
    shape = (*tensor.shape, tensor.itemsize)
    return np.lib.stride_tricks.as_strided(flat, shape, (*strides, 1)).tobytes() if flat.size else b""


def _storage_bytes(storage: torch.UntypedStorage) -> bytes:
    return (
        bytes(storage.cpu().tolist())
        if storage.nbytes() < 64
        else torch.tensor([], dtype=torch.uint8).set_(storage.cpu()).numpy().tobytes()
    )


_ATOMS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((type(None), bool, int, str, bytes, type(...), type(NotImplemented)), _itself),
    float: _bits,
    complex: _complex_bits,
}
_CONTENTS: list[tuple[Any, Callable[..., str | list[Part]]]] = [
    (torch.Tensor, Comparison._tensor),
    (torch.UntypedStorage | torch.TypedStorage, Comparison._storage),
    (torch.Generator, Comparison._generator),
    (np.ndarray, Comparison._array),
    (np.generic | np.dtype, Comparison._numpy),
    ((*_EQUAL, bytearray), Comparison._equal),
    (slice, Comparison._slice),
]
