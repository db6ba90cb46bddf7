"""The elements of a view in the order of rows, block by block, in constant memory whatever its strides.

`elements.copy_strided` writes a view where rows begin, anywhere in its target. Who reads two tensors side by
side, or counts over one, wants its elements in their order, and never more than a block of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from inspector.model.tensors.dtypes import Read, copy_strided, is_contiguous
from inspector.overriding import override
from inspector.progress import Progress

PLAIN_NBYTES = 1 << 17
"""Larger blocks would be new memory of the system each time, which takes as long as reading them."""
BAND_NBYTES = 8 << 20


class View(NamedTuple):
    """What a tensor sees of its storage, in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    first: int

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def reach(self) -> int:
        """How many elements lie between the first and the last, both counted; none of an empty view."""
        steps = zip(self.shape, self.stride, strict=True)
        return 1 + sum((size - 1) * step for size, step in steps) if self.numel else 0


def row_blocks(view: View, itemsize: int, read: Read, progress: Progress) -> Iterator[bytes]:
    """Yield the bytes of a view's elements in the order of rows; no block is larger than 8 MB.

    Args:
        read: Reads the storage, by offset and length in bytes.
    """
    if is_contiguous(view.shape, view.stride):
        start, end = view.first * itemsize, (view.first + view.numel) * itemsize
        step = PLAIN_NBYTES - PLAIN_NBYTES % itemsize
        for pos in range(start, end, step):
            progress.advance()
            yield read(pos, min(step, end - pos))
        return
    for band in _bands(view, max(BAND_NBYTES // itemsize, 1)):
        out = bytearray(band.numel * itemsize)

        def write(offset: int, data: bytes | memoryview, out: bytearray = out) -> None:
            out[offset : offset + len(data)] = data

        copy_strided(band, itemsize, read, write, _Asked(progress))
        yield bytes(out)


class _Asked(Progress):
    """Asks another progress for cancellation, and tells it nothing: what was gathered is not yet done."""

    __slots__ = ("_asked",)

    def __init__(self, asked: Progress) -> None:
        super().__init__()
        self._asked = asked

    @override
    def advance(self, units: int = 0) -> None:
        """Ask."""
        del units
        self._asked.advance()


def _bands(view: View, most: int) -> Iterator[View]:
    """Cut a view along its rows into views of at most so many elements, in the order of rows."""
    if not view.numel:
        return
    depth = _depth(view.shape, most)
    size, step = view.shape[depth], view.stride[depth]
    rows = max(most // prod(view.shape[depth + 1 :]), 1)
    for first in _corners(view, depth):
        for row in range(0, size, rows):
            shape = (min(rows, size - row), *view.shape[depth + 1 :])
            yield View(shape, view.stride[depth:], first + row * step)


def _depth(shape: Sequence[int], most: int) -> int:
    return next(depth for depth in range(len(shape)) if prod(shape[depth + 1 :]) <= most)


def _corners(view: View, depth: int) -> Iterator[int]:
    """Yield the first element of each part of a view that the dimensions before `depth` tell apart."""
    if not depth:
        yield view.first
        return
    places = [0] * depth
    first = view.first
    while True:
        yield first
        for axis in reversed(range(depth)):
            places[axis] += 1
            first += view.stride[axis]
            if places[axis] < view.shape[axis]:
                break
            first -= places[axis] * view.stride[axis]
            places[axis] = 0
        else:
            return
