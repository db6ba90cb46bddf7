"""How chunks make up a tensor: whether they cover it, and in which order their bytes follow each other.

The dimensions behind the last one that any chunk divides are whole in every chunk, so that a line, which is
one step along that dimension after the other, consists of runs: bytes that stand together in a chunk and in
the whole. The dimensions before it are divided at the borders of chunks into cells; all lines of a cell
consist of runs of the same chunks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import groupby, product
from math import prod
from typing import NamedTuple

from inspector.containers.gathered.chunks import Chunk, Gathered
from inspector.errors import DamagedError
from inspector.records import dataclass

_MOST_DIMENSIONS = 64
_MOST_MORE = 100_000
_Cell = tuple[int, ...]


class Run(NamedTuple):
    """Bytes that stand together in a chunk and in the whole.

    Attributes:
        chunk: The chunk.
        start: The first of them, counted from the chunk's first element.
        nbytes: How many they are.
    """

    chunk: Chunk
    start: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """The chunks of a tensor in their order.

    Attributes:
        gathered: The tensor.
        axis: The last dimension that is divided; -1 where none is.
        borders: Where the cells begin, for each dimension before it.
        cells: The chunks of each cell by their place along that dimension.
        fault: Why they do not make up the whole; empty where they do.
    """

    gathered: Gathered
    axis: int
    borders: tuple[tuple[int, ...], ...]
    cells: dict[_Cell, tuple[Chunk, ...]]
    fault: str

    def runs(self, start: int, end: int) -> Iterator[Run]:
        """Yield the runs that the bytes of the whole from `start` up to `end` consist of, in their order."""
        if self.fault:
            raise DamagedError(f"a tensor is not whole: {self.fault}", where=self.gathered.name)
        if start >= end:
            return
        if self.axis < 0:
            yield Run(self.cells[()][0], start, end - start)
            return
        shape, axis = self.gathered.shape, self.axis
        inner = prod(shape[axis + 1 :]) * self.gathered.itemsize
        nbytes = shape[axis] * inner
        for line in range(start // nbytes, -(-end // nbytes)):
            first = line * nbytes
            yield from self._line(line, inner, max(start - first, 0), min(end - first, nbytes))

    def _line(self, line: int, inner: int, start: int, end: int) -> Iterator[Run]:
        place = self._place(line)
        cell = tuple(map(bisect_right, self.borders, place))
        chunks = self.cells[cell]
        if len(chunks) > 1:
            chunks = chunks[_first_at(chunks, self.axis, start // inner) :]
        for chunk in chunks:
            begin = chunk.starts[self.axis] * inner
            size = chunk.sizes[self.axis] * inner
            if begin >= end:
                return
            low, high = max(start - begin, 0), min(end - begin, size)
            number = 0
            for at, first, count in zip(place, chunk.starts, chunk.sizes, strict=False):
                number = number * count + at - first
            yield Run(chunk, number * size + low, high - low)

    def _place(self, line: int) -> tuple[int, ...]:
        """Return where a line is, by the dimensions before the one along which it goes."""
        place = []
        for size in reversed(self.gathered.shape[: self.axis]):
            line, at = divmod(line, size)
            place.append(at)
        return tuple(reversed(place))


def _first_at(chunks: tuple[Chunk, ...], axis: int, at: int) -> int:
    """Return the number of the chunk that a line is in at some step."""
    return max(bisect_right(chunks, at, key=lambda chunk: chunk.starts[axis]) - 1, 0)


def tile(gathered: Gathered, look: Callable[[int], object]) -> Tiling:
    """Order the chunks of a tensor; `look` counts the parts that are looked at."""
    shape = gathered.shape
    if 0 in shape:
        return _tiling(gathered, fault="")
    look(len(gathered.chunks) * (1 + len(shape)))
    # Releases before 2.2 list what every rank has once for each of them.
    chunks = [chunk for chunk, _ in groupby(sorted(chunk for chunk in gathered.chunks if chunk.numel))]
    fault = _outside(shape, chunks)
    if fault:
        return _tiling(gathered, fault=fault)
    axis = max((number for chunk in chunks for number in _divided(chunk, shape)), default=-1)
    if axis < 0:
        fault = "" if len(chunks) == 1 else "it is there several times, and readers take any one of them"
        return _tiling(gathered, cells={(): tuple(chunks)}, fault=fault)
    borders = tuple(
        tuple(edge for edge, _ in groupby(sorted(edge for chunk in chunks for edge in _edges(chunk, number))))
        for number in range(axis)
    )
    return _fill(gathered, chunks, axis, borders, look)


def _edges(chunk: Chunk, number: int) -> tuple[int, int]:
    return chunk.starts[number], chunk.starts[number] + chunk.sizes[number]


def _divided(chunk: Chunk, shape: tuple[int, ...]) -> Iterator[int]:
    return (number for number, size in enumerate(shape) if chunk.sizes[number] != size)


def _outside(shape: tuple[int, ...], chunks: list[Chunk]) -> str:
    if not chunks:
        return "none of its chunks is there"
    if len(shape) > _MOST_DIMENSIONS:
        return f"it has {len(shape)} dimensions"
    for chunk in chunks:
        if not len(chunk.starts) == len(chunk.sizes) == len(shape):
            return "a chunk has other dimensions than the whole"
        if any(
            start < 0 or start + size > most
            for start, size, most in zip(chunk.starts, chunk.sizes, shape, strict=True)
        ):
            return "a chunk is outside of the whole"
    return ""


def _fill(
    gathered: Gathered,
    chunks: list[Chunk],
    axis: int,
    borders: tuple[tuple[int, ...], ...],
    look: Callable[[int], object],
) -> Tiling:
    """Put each chunk into the cells that it reaches into, and see whether each cell is filled."""
    cells: dict[_Cell, list[Chunk]] = {}
    room = 4 * len(chunks) + _MOST_MORE
    for chunk in chunks:
        reach = [
            range(
                bisect_right(edges, chunk.starts[number]),
                bisect_right(edges, _edges(chunk, number)[1] - 1) + 1,
            )
            for number, edges in enumerate(borders)
        ]
        count = prod(map(len, reach))
        room -= count
        if room < 0:
            return _tiling(gathered, fault="its chunks are too irregular to be joined")
        look(count)
        for cell in product(*reach):
            cells.setdefault(cell, []).append(chunk)
    for found in cells.values():
        found.sort(key=lambda chunk: chunk.starts[axis])
    fault = _unfilled(gathered.shape, axis, borders, cells)
    return _tiling(
        gathered,
        axis=axis,
        borders=borders,
        cells={cell: tuple(found) for cell, found in cells.items()},
        fault=fault,
    )


def _unfilled(
    shape: tuple[int, ...], axis: int, borders: tuple[tuple[int, ...], ...], cells: dict[_Cell, list[Chunk]]
) -> str:
    wanted = 1
    for edges, size in zip(borders, shape, strict=False):
        if edges[0] != 0 or edges[-1] != size:
            return "parts of it are in no chunk"
        wanted *= len(edges) - 1
    fault = "" if len(cells) == wanted else "parts of it are in no chunk"
    for found in cells.values():
        reached = 0
        for chunk in found:
            if chunk.starts[axis] < reached:
                return "its chunks overlap, and readers take any one of them"
            if chunk.starts[axis] > reached:
                fault = "parts of it are in no chunk"
            reached = chunk.starts[axis] + chunk.sizes[axis]
        if reached < shape[axis]:
            fault = "parts of it are in no chunk"
    return fault


def _tiling(
    gathered: Gathered,
    *,
    axis: int = -1,
    borders: tuple[tuple[int, ...], ...] = (),
    cells: dict[_Cell, tuple[Chunk, ...]] | None = None,
    fault: str,
) -> Tiling:
    return Tiling(gathered=gathered, axis=axis, borders=borders, cells=cells or {}, fault=fault)
