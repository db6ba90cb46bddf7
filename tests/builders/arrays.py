"""Files of NumPy: genuine ones, and headers made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def array(folder: Path) -> Path:
    path = folder / "a.npy"
    np.save(path, np.arange(6, dtype="f4").reshape(2, 3))
    return path


def arrays(folder: Path) -> Path:
    path = folder / "a.npz"
    weights = np.arange(6, dtype="f4").reshape(2, 3)
    np.savez(path, **{"layer.weight": weights, "layer.bias": np.ones(2, "f4"), "steps": np.arange(2)})
    return path


def npy(
    descr: Any = "<f4",
    shape: Any = (2,),
    data: bytes = bytes(8),
    *,
    fortran: Any = False,
    version: tuple[int, int] = (1, 0),
    header: str | bytes | None = None,
) -> bytes:
    """A file of one array, of which everything may lie."""
    if header is None:
        header = f"{{'descr': {descr!r}, 'fortran_order': {fortran!r}, 'shape': {shape!r}, }}\n"
    raw = header if isinstance(header, bytes) else header.encode("utf-8" if version[0] > 2 else "latin-1")
    width = 2 if version[0] == 1 else 4
    return b"\x93NUMPY" + bytes(version) + len(raw).to_bytes(width, "little") + raw + data
