"""Rows of checkpoints whose values are asked for."""

from __future__ import annotations

from typing import Any

from inspector.model.checkpoint import Encoding, Storage, Tensor
from tests.unit.report.rows import checkpoint

__all__ = ["Encoding", "checkpoint", "stored", "tensor"]


def tensor(*keys: str, **more: Any) -> Tensor:
    plain: dict[str, Any] = {
        "keys": keys or ("w",),
        "path": "/".join(keys or ("w",)),
        "device": "cpu",
        "dtype": "float32",
        "shape": (2, 3),
        "stride": (3, 1),
        "storage_offset": 0,
        "layout": "strided",
        "requires_grad": False,
        "nbytes": 24,
        "storage": "0",
        "role": "parameter",
        "parameter": None,
        "slot": None,
        "part_of": None,
        "on_cpu_by_design": False,
        "problem": None,
    }
    return Tensor(**(plain | more))


def stored(key: str = "0", **more: Any) -> Storage:
    plain: dict[str, Any] = {
        "key": key,
        "device": "cpu",
        "dtype": "float32",
        "nbytes": 24,
        "file_offset": 64,
        "missing": False,
        "viewed_nbytes": 24,
        "tensors": 1,
    }
    return Storage(**(plain | more))
