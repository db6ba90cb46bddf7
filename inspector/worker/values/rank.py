"""How many dimensions a matrix really uses, from its singular values.

The effective rank is the exponential of the entropy of the singular values, taken as shares of their sum
(Roy and Vetterli, https://ieeexplore.ieee.org/document/7098875); the stable rank is the squared Frobenius
norm over the squared largest one. Of a large matrix the products of its shorter side are summed up, band by
band, and their eigenvalues are the squares; that takes the memory of the shorter side alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.errors import ValuesError
from inspector.model.tensors.dtypes import is_contiguous
from inspector.worker.decoding import Array
from inspector.worker.tensor_bytes import TensorBytes
from inspector.worker.values.reading import Request
from inspector.worker.values.slices import Plane

MOST_SIDE = 2048
_MOST_WHOLE = 1 << 20
_MOST_ELEMENTS = 1 << 28
_BAND = 1 << 20


def ranks(request: Request, opened: TensorBytes) -> Iterator[dict[str, Any]]:
    """Yield how far it is, and at last the ranks."""
    matrix = as_matrix(request)
    rows, columns = matrix["shape"]
    plane = Plane(matrix, opened, {"row": 0, "column": 1, "index": [0, 0]})
    if rows * columns <= _MOST_WHOLE:
        values = _finite(plane.band(range(rows), range(columns)))
        found = np.linalg.svd(values, compute_uv=False)
    else:
        side = min(rows, columns)
        sums = np.zeros((side, side), np.complex128 if request["dtype"].startswith("complex") else np.float64)
        for band in _bands(plane):
            sums += band.conj().T @ band if rows > columns else band @ band.conj().T
            yield {"done": band.size * int(request["itemsize"])}
        found = np.sqrt(np.maximum(np.linalg.eigvalsh(sums), 0))
    yield {"found": _ranks(np.sort(found)[::-1], min(rows, columns))}


def as_matrix(request: Request) -> Request:
    """Return a tensor as a matrix: its first dimension, and all others as one."""
    shape, stride = request["shape"], request["stride"]
    if "layout" in request or len(shape) < 2 or not prod(shape):
        raise ValuesError("only a matrix has a rank")
    if len(shape) > 2:
        if not is_contiguous(shape, stride) or request.get("axis") is not None:
            raise ValuesError("its dimensions cannot be taken as those of a matrix")
        shape, stride = [shape[0], prod(shape[1:])], [prod(shape[1:]), 1]
    if min(shape) > MOST_SIDE or prod(shape) > _MOST_ELEMENTS:
        raise ValuesError(f"its singular values take too long: its shorter side is longer than {MOST_SIDE:,}")
    return {**request, "shape": list(shape), "stride": list(stride)}


def _bands(plane: Plane) -> Iterator[Array]:
    rows, columns = plane.shape
    if rows > columns:
        count = max(1, _BAND // columns)
        for start in range(0, rows, count):
            yield _finite(plane.band(range(start, min(start + count, rows)), range(columns)))
    else:
        count = max(1, _BAND // rows)
        for start in range(0, columns, count):
            yield _finite(plane.band(range(rows), range(start, min(start + count, columns))))


def _finite(values: Array) -> Array:
    if not np.isfinite(values).all():
        raise ValuesError("it holds NaN or infinities, so that it has no singular values")
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _ranks(singular: npt.NDArray[np.float64], most: int) -> dict[str, Any]:
    largest = float(singular[0])
    if not largest:
        return {"effective": 0.0, "stable": 0.0, "largest": 0.0, "most": most}
    shares = singular / singular.sum()
    shares = shares[shares > 0]
    return {
        "effective": float(np.exp(-(shares * np.log(shares)).sum())),
        "stable": float(((singular / largest) ** 2).sum()),
        "largest": largest,
        "most": most,
    }
