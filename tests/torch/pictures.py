"""What torch made of a file, as plain values to be compared: tensors byte for byte, sharing included."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

Picture = Any


# --- classes that the corpus was saved with -----------------------------------------------------------------


class Point(NamedTuple):
    x: int
    y: Any


class Net(torch.nn.Module):
    """Only its class is needed: what is in it comes from the file."""


class SubT(torch.Tensor):
    """A subclass with data of its own."""


def lend_classes(patch: Any) -> None:
    """Let `__main__` have the classes, for as long as a monkeypatch lasts."""
    for cls in (Point, Net, SubT):
        patch.setattr(sys.modules["__main__"], cls.__name__, cls, raising=False)


# --- pictures -----------------------------------------------------------------------------------------------


def picture(value: Any, *, devices: bool = True) -> Picture:
    """Describe a value wholly; without `devices`, as if there were only one."""
    return _Painter(devices=devices).paint(value)


class _Painter:
    def __init__(self, *, devices: bool) -> None:
        self._devices = devices
        self._seen: dict[int, tuple[int, Any]] = {}
        self._storages: dict[int, int] = {}

    def paint(self, value: Any) -> Picture:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | slice | range):
            return type(value).__name__, repr(value)
        if id(value) in self._seen:
            return "seen", self._seen[id(value)][0]
        self._seen[id(value)] = len(self._seen), value
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.storage.TypedStorage | torch.UntypedStorage):
            return self._storage(value)
        if isinstance(value, torch.Generator):
            return "generator", str(value.device), value.get_state().numpy().tobytes()
        return self._container(value)

    def _container(self, value: Any) -> Picture:
        name = type(value).__qualname__
        if isinstance(value, Mapping):
            return (
                name,
                [(self.paint(key), self.paint(item)) for key, item in value.items()],
                self._state(value),
            )
        if isinstance(value, set | frozenset):
            return name, sorted(repr(self.paint(item)) for item in value)
        if isinstance(value, list | tuple):
            return name, [self.paint(item) for item in value], self._state(value)
        if isinstance(value, np.ndarray | np.generic):
            return name, str(value.dtype), value.shape, value.tobytes()
        if isinstance(value, torch.device | torch.dtype | torch.layout | bytearray | type | type(Ellipsis)):
            return name, repr(value)
        return name, self._state(value)

    def _state(self, value: Any) -> Picture:
        state = vars(value) if hasattr(value, "__dict__") else {}
        slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
        state = state | {
            name: getattr(value, name) for name in slots if isinstance(name, str) and hasattr(value, name)
        }
        return [(name, self.paint(item)) for name, item in sorted(state.items()) if not callable(item)]

    # --- tensors --------------------------------------------------------------------------------------------

    def _tensor(self, tensor: torch.Tensor) -> Picture:
        head = (type(tensor).__qualname__, str(tensor.dtype), str(tensor.layout), tensor.requires_grad)
        device = str(tensor.device) if self._devices else ""
        # Looked up on the class: a tensor answers to names of its own making.
        state = self._state(tensor) if vars(tensor) else []
        return *head, device, self._contents(tensor.detach()), state

    def _contents(self, tensor: torch.Tensor) -> Picture:
        if tensor.layout == torch.sparse_coo:
            return (
                tuple(tensor.shape),
                self.paint(tensor._indices()),
                self.paint(tensor._values()),
                tensor.is_coalesced(),
            )
        if tensor.layout in {torch.sparse_csr, torch.sparse_bsr}:
            parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
            return tuple(tensor.shape), [self.paint(part) for part in parts]
        if tensor.layout in {torch.sparse_csc, torch.sparse_bsc}:
            parts = tensor.ccol_indices(), tensor.row_indices(), tensor.values()
            return tuple(tensor.shape), [self.paint(part) for part in parts]
        if tensor.is_nested:
            return [self.paint(part.clone()) for part in tensor.unbind()]
        if hasattr(type(tensor), "__tensor_flatten__"):
            names, context = tensor.__tensor_flatten__()
            return [(name, self.paint(getattr(tensor, name))) for name in names], repr(context)
        return self._strided(tensor)

    def _strided(self, tensor: torch.Tensor) -> Picture:
        geometry = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        bits = tensor.is_conj(), tensor.is_neg()
        if tensor.device.type == "meta":
            return geometry, bits
        scales: Picture = None
        if tensor.is_quantized and tensor.qscheme() in {
            torch.per_channel_affine,
            torch.per_channel_affine_float_qparams,
        }:
            scales = self.paint(tensor.q_per_channel_scales()), self.paint(tensor.q_per_channel_zero_points())
        elif tensor.is_quantized:
            scales = tensor.q_scale(), tensor.q_zero_point()
        return geometry, bits, scales, self._storage(tensor.untyped_storage())

    def _storage(self, storage: Any) -> Picture:
        dtype = str(getattr(storage, "dtype", ""))
        untyped = storage.untyped() if isinstance(storage, torch.storage.TypedStorage) else storage
        number = (
            self._storages.setdefault(untyped.data_ptr(), len(self._storages)) if untyped.nbytes() else -1
        )
        data = torch.empty(0, dtype=torch.uint8).set_(untyped) if untyped.nbytes() else torch.empty(0)
        return dtype, number, data.numpy().tobytes()
