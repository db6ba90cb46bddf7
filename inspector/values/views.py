"""The elements of a view, a few megabytes at a time, in the order in which they stand in the file.

Statistics do not ask for the order of elements, only for the place of a few of them. So a view is cut along
its longest steps in the storage, each piece is read in one run (or a row of runs, where what lies between is
larger), and NumPy lays the piece's shape over what was read. A dimension with stride 0 repeats the same
elements: it is read once, and counts as often as it is long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from inspector.errors import ValuesError
from inspector.model.tensors.dtypes import Axis
from inspector.values.decoding import PACKED, Array, codes_of

PIECE_NBYTES = 4 << 20
_MOST_RUNS = 4096
_GAP_NBYTES = 1 << 14  # what is not wanted between two runs is read with them up to here
MOST_OVERLAP = 64  # a window that slides over a signal repeats each element this often
FEW = 1 << 26
QUANTIZED_PACKED = frozenset({"quint4x2", "quint2x4"})
"""Types of which an element is less than a byte; a byte of `float4_e2m1fn_x2` is one element."""

Read = Callable[[int, int], bytes]
"""`read(offset, nbytes)` returns bytes of the storage."""


class View(NamedTuple):
    """A tensor in a storage.

    Attributes:
        swapped: Whether the most significant byte of each number stands first.
        whole: The shape of what it is a part of, in which places are counted; empty where it is all.
    """

    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    swapped: bool = False
    whole: tuple[int, ...] = ()
    first: int = 0

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def repeats(self) -> int:
        """How often each element is repeated by dimensions with stride 0."""
        return prod(size for size, step in zip(self.shape, self.stride, strict=True) if not step)


class Piece(NamedTuple):
    """Some of the elements.

    Attributes:
        codes: They, in the shape of the piece, as `decoding.codes_of` has them.
        flat: The same without their shape and in any order.
        first: The place of the first of them in the whole, counted in the order of rows.
        steps: How far a step along each dimension of the piece goes there.
    """

    codes: Array
    flat: Array
    first: int
    steps: tuple[int, ...]

    def places(self) -> npt.NDArray[np.int64]:
        """Return the place of each element in the whole."""
        places = np.full(self.codes.shape, self.first, np.int64)
        for axis, step in enumerate(self.steps):
            shape = [1] * len(self.steps)
            shape[axis] = -1
            places += (np.arange(self.codes.shape[axis], dtype=np.int64) * step).reshape(shape)
        return places


def pieces(view: View, read: Read) -> Iterator[Piece]:
    """Yield the elements of a view, each repeated one once."""
    if not view.numel:
        return
    if view.dtype in QUANTIZED_PACKED:
        yield from _packed(view, read)
        return
    axes = _axes(view)
    _refuse_overlap(axes)
    cut = _cut(axes, PIECE_NBYTES // view.itemsize)
    for place in product(*(range(axis.size) for axis in axes[:cut])):
        source = view.offset + sum(index * axis.source for index, axis in zip(place, axes, strict=False))
        target = view.first + sum(index * axis.target for index, axis in zip(place, axes, strict=False))
        yield from _slabs(view, axes[cut:], source, target, read)


def _axes(view: View) -> list[Axis]:
    """Return the dimensions whose steps lead elsewhere, longest first; those that go on evenly are one."""
    found, step = [], 1
    for size, source, whole in zip(
        reversed(view.shape), reversed(view.stride), reversed(view.whole or view.shape), strict=True
    ):
        if size > 1 and source:
            found.append(Axis(size, source, step))
        step *= whole
    axes: list[Axis] = []
    for axis in sorted(found, key=lambda axis: -axis.source):
        last = axes[-1] if axes else None
        if last is not None and last[1:] == (axis.source * axis.size, axis.target * axis.size):
            axes[-1] = Axis(last.size * axis.size, axis.source, axis.target)
        else:
            axes.append(axis)
    return axes


def _refuse_overlap(axes: list[Axis]) -> None:
    count = prod(axis.size for axis in axes)
    if count > max(MOST_OVERLAP * _span(axes), FEW):
        raise ValuesError(f"its {count:,} elements overlap in {_span(axes):,} of the storage")


def _span(axes: list[Axis]) -> int:
    """Return how many elements lie between the first and the last, both counted."""
    return 1 + sum((axis.size - 1) * axis.source for axis in axes)


def _cut(axes: list[Axis], most: int) -> int:
    """Return the first dimension of which a single index fits into a piece with all that is in it."""
    for number in range(len(axes)):
        inner = axes[number + 1 :]
        if max(_span(inner), prod(axis.size for axis in inner)) <= most:
            return number
    return len(axes)


def _slabs(view: View, axes: list[Axis], source: int, target: int, read: Read) -> Iterator[Piece]:
    """Yield pieces along the first dimension; source and target are where its first index begins."""
    if not axes:
        yield _piece(view, _Box([], [], [], 1), [(source, 1)], target, read)
        return
    outer, inner = axes[0], axes[1:]
    most = PIECE_NBYTES // view.itemsize
    span, numel = _span(inner), prod(axis.size for axis in inner)
    is_sparse = (outer.source - span) * view.itemsize > _GAP_NBYTES
    step = span if is_sparse else outer.source
    count = max(1, min((most - span) // step + 1, most // numel, _MOST_RUNS if is_sparse else outer.size))
    for start in range(0, outer.size, count):
        size = min(count, outer.size - start)
        begin = source + start * outer.source
        runs = (
            [(begin + index * outer.source, span) for index in range(size)]
            if is_sparse
            else [(begin, (size - 1) * step + span)]
        )
        box = _Box(
            [size, *(axis.size for axis in inner)],
            [step, *(axis.source for axis in inner)],
            [outer.target, *(axis.target for axis in inner)],
            size * numel,
        )
        yield _piece(view, box, runs, target + start * outer.target, read)


class _Box(NamedTuple):
    shape: list[int]
    strides: list[int]
    steps: list[int]
    numel: int


def _piece(view: View, box: _Box, runs: list[tuple[int, int]], first: int, read: Read) -> Piece:
    size = view.itemsize
    data = [read(start * size, count * size) for start, count in runs]
    dtype = "uint8" if view.dtype in PACKED else view.dtype
    whole = codes_of(data[0] if len(data) == 1 else b"".join(data), dtype, swapped=view.swapped)
    strides = [step * whole.itemsize for step in box.strides]
    codes: Any = as_strided(whole, box.shape, strides, writeable=False)
    # Each element of the storage is met once where the piece has as many: their order does not matter.
    flat = whole if whole.size == box.numel else codes.reshape(-1)
    if view.dtype in PACKED:
        flat = codes_of(flat.tobytes(), view.dtype)
    return Piece(codes, flat, first, tuple(box.steps))


def _packed(view: View, read: Read) -> Iterator[Piece]:
    """Yield the values of elements that share bytes, as they stand, without gaps."""
    axes, count = _axes(view), PACKED[view.dtype]
    if len(axes) > 1 or any(axis.source != 1 for axis in axes) or view.repeats > 1:
        raise ValuesError(f"elements of {view.dtype} that are not in the order of rows are not read")
    end = view.offset + view.numel
    for start in range(view.offset, end, PIECE_NBYTES):
        stop = min(start + PIECE_NBYTES, end)
        begin = start // count
        codes = codes_of(read(begin, -(-stop // count) - begin), view.dtype)[start - begin * count :]
        codes = codes[: stop - start]
        yield Piece(codes, codes, view.first + start - view.offset, (1,))
