"""Two dimensions of a tensor as a picture or as texts of a few cells, all of it row by row, and its rank."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.errors import ValuesError
from inspector.model.tensors.dtypes import is_contiguous
from inspector.model.tensors.row_blocks import View as RowView
from inspector.model.tensors.row_blocks import row_blocks
from inspector.progress import Progress
from inspector.values.arrays import Request, converted, scales_of, view_of
from inspector.values.decoding import PACKED, Array, codes_of, value_of_codes
from inspector.values.tensor_bytes import TensorBytes
from inspector.values.views import View

_MOST_PICTURE = 1 << 26  # elements that are read for one
_MOST_BAND = 1 << 20
_MOST_CELLS = 1 << 13
_USUAL, _FAR = 0.995, 3.0


class Plane:
    """Two dimensions of a tensor at one index of all others."""

    def __init__(self, request: Request, opened: TensorBytes, choice: dict[str, Any]) -> None:
        view = view_of(request)
        if "layout" in request:
            raise ValuesError("a sparse tensor has no slices to show: its values are a part of it, below it")
        if view.dtype in PACKED:
            raise ValuesError(f"elements of {view.dtype} share bytes, and are not shown one by one")
        self._view, self._request, self._opened = view, request, opened
        self._read = opened.read_of(request["place"])
        self._axes = [choice["row"], choice["column"]]
        chosen = dict(enumerate(choice["index"]))
        self._index = {axis: index for axis, index in chosen.items() if axis not in self._axes}
        self.shape = tuple(1 if axis is None else view.shape[axis] for axis in self._axes)
        inside = all(0 <= index < view.shape[axis] for axis, index in self._index.items())
        if not inside or (self._axes[0] is not None and self._axes[0] == self._axes[1]):
            raise ValuesError("there is no such slice")

    def band(self, rows: range, columns: range) -> Array:
        """Return the values of some rows and columns."""
        starts, steps, shape = (
            [rows.start, columns.start],
            [rows.step, columns.step],
            (len(rows), len(columns)),
        )
        stride, offset = [], self._view.offset
        for axis, size in enumerate(self._view.shape):
            if axis not in self._axes and size:
                offset += self._index.get(axis, 0) * self._view.stride[axis]
        for axis, start, step in zip(self._axes, starts, steps, strict=True):
            stride.append(0 if axis is None else self._view.stride[axis] * step)
            offset += start * (0 if axis is None else self._view.stride[axis])
        codes = _codes(self._view, RowView(shape, tuple(stride), offset), self._read).reshape(shape)
        return self._numbers(codes, rows, columns)

    def _numbers(self, codes: Array, rows: range, columns: range) -> Array:
        if self._request.get("axis") is not None:
            return self._channels(codes, rows, columns)
        return self.converted(codes)

    def converted(self, codes: Array) -> Array:
        """Return the values of elements that have one scale, or none."""
        return converted(self._request, value_of_codes(codes, self._view.dtype))

    def _channels(self, codes: Array, rows: range, columns: range) -> Array:
        axis = self._request["axis"]
        scales, zeros = scales_of(self._request, self._opened)
        if axis in self._axes:
            chosen = rows if axis == self._axes[0] else columns
            shape = (-1, 1) if axis == self._axes[0] else (1, -1)
            scale, zero = (
                part[chosen.start : chosen.stop : chosen.step].reshape(shape) for part in (scales, zeros)
            )
        else:
            scale, zero = scales[self._index.get(axis, 0)], zeros[self._index.get(axis, 0)]
        found: Array = ((codes.astype(np.float32) - zero.astype(np.float32)) * scale).astype(np.float32)
        return found


def picture(plane: Plane, most: tuple[int, int]) -> dict[str, Any]:
    """Return a picture: of each block of elements the one that is farthest from zero, NaN above all.

    Complex elements are shown by their magnitude. What is too large to be read is shown from its beginning.
    """
    rows, columns = plane.shape
    seen_columns = min(columns, _MOST_PICTURE // max(1, min(rows, most[0])))
    seen_rows = min(rows, max(1, _MOST_PICTURE // max(1, seen_columns)))
    steps = -(-seen_rows // most[0]) or 1, -(-seen_columns // most[1]) or 1
    band = max(1, _MOST_BAND // max(1, seen_columns) // steps[0]) * steps[0]
    found = []
    for start in range(0, seen_rows, band):
        values = plane.band(range(start, min(start + band, seen_rows)), range(seen_columns))
        found.append(_farthest(values, steps))
    cells = np.concatenate(found) if found else np.zeros((0, 0), np.float32)
    levels, limit = _levels(cells)
    return {
        "shape": [rows, columns],
        "seen": [seen_rows, seen_columns],
        "steps": list(steps),
        "rows": cells.shape[0],
        "columns": cells.shape[1],
        "cells": base64.b64encode(cells.tobytes()).decode(),
        "levels": base64.b64encode(levels.tobytes()).decode(),
        "limit": limit,
        "is_clipped": bool((np.abs(cells) > limit).any()),
    }


def _levels(cells: Array) -> tuple[Array, float]:
    """Return a level for each cell, and the number that the last one stands for.

    127 is zero, 0 and 254 are the ends, 255 is NaN. A few numbers that are far larger than all others do not
    stretch the scale: they stand at its ends.
    """
    sizes = np.abs(cells[np.isfinite(cells)])
    limit = float(sizes.max()) if sizes.size else 0.0
    usual = float(np.quantile(sizes, _USUAL)) if sizes.size else 0.0
    if usual and limit > _FAR * usual:
        limit = usual
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.clip(np.nan_to_num(cells.astype(np.float64) / (limit or 1.0), nan=0.0), -1, 1)
    levels = np.rint(127 + 127 * scaled).astype(np.uint8)
    levels[np.isnan(cells)] = 255
    return levels, limit


def _farthest(values: Array, steps: tuple[int, int]) -> Array:
    """Return of each block of so many rows and columns the element that is farthest from zero."""
    with np.errstate(over="ignore"):  # what no float32 holds is shown as infinite
        numbers = (np.abs(values) if values.dtype.kind == "c" else values).astype(np.float32)
    rows, columns = numbers.shape
    height, width = -(-rows // steps[0]), -(-columns // steps[1])
    padded = np.zeros((height * steps[0], width * steps[1]), np.float32)
    padded[:rows, :columns] = numbers
    blocks = padded.reshape(height, steps[0], width, steps[1])
    high, low = blocks.max(axis=(1, 3)), blocks.min(axis=(1, 3))  # NaN wins in both
    found: Array = np.where(np.isnan(high) | (np.abs(high) >= np.abs(low)), high, low)
    return found


def cells(plane: Plane, rows: range, columns: range, digits: int) -> list[list[str]]:
    """Return some cells as texts, with so many digits, or with 0 as few as tell a number from all others."""
    rows = range(rows.start, min(rows.stop, plane.shape[0]))
    columns = range(columns.start, min(columns.stop, plane.shape[1]))
    if len(rows) * len(columns) > _MOST_CELLS:
        raise ValuesError(f"more than {_MOST_CELLS:,} cells were asked for")
    return [[_text(value, digits) for value in row] for row in plane.band(rows, columns)]


def _text(value: Any, digits: int) -> str:  # noqa: ANN401 - a number of NumPy's
    if isinstance(value, np.bool_ | np.integer):
        return str(value)
    if isinstance(value, np.complexfloating):
        real, imag = _text(value.real, digits), _text(value.imag, digits)
        return f"{real}{'' if imag.startswith('-') else '+'}{imag}j"
    return f"{value:.{digits}g}" if digits else str(value)


def saved_rows(
    request: Request, opened: TensorBytes, *, is_stored: bool = False
) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield all values in the order of rows, as NumPy's types or as they are stored; their type first."""
    if request.get("axis") is not None:
        raise ValuesError("tensors with a scale for each channel cannot be saved as an array")
    plane = Plane(request, opened, {"row": None, "column": None, "index": []})  # which refuses what it must
    view = view_of(request)
    read = opened.read_of(request["place"])
    row_view = RowView(view.shape, view.stride, view.offset)
    kind = plane.converted(np.zeros(0, codes_of(b"", view.dtype).dtype)).dtype
    yield {"descr": kind.str, "shape": list(view.shape)}, b""
    if not prod(view.shape):
        return
    for block in row_blocks(row_view, view.itemsize, read, Progress()):
        codes = codes_of(block, view.dtype, swapped=view.swapped)
        values = codes if is_stored else plane.converted(codes)
        yield {"done": len(block)}, np.ascontiguousarray(values).tobytes()


def _codes(view: View, row_view: RowView, read: Any) -> Array:  # noqa: ANN401 - a function
    blocks = row_blocks(row_view, view.itemsize, read, Progress()) if prod(row_view.shape) else ()
    return codes_of(b"".join(blocks), view.dtype, swapped=view.swapped)


# --- how many dimensions a matrix really uses, from its singular values -------------------------------------
#
# The effective rank is the exponential of the entropy of the singular values, taken as shares of their sum
# (Roy and Vetterli, https://ieeexplore.ieee.org/document/7098875); the stable rank is the squared Frobenius
# norm over the squared largest one. Of a large matrix the products of its shorter side are summed up, band by
# band, and their eigenvalues are the squares; that takes the memory of the shorter side alone.

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
