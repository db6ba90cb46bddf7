"""A storage in chunks, read as one in bounded steps.

The dimensions behind the last one that any chunk divides are whole in every chunk, so that a line, which is
one step along that dimension after the other, consists of runs: bytes that stand together in a chunk and in
the whole. The dimensions before it are divided at the borders of chunks into cells; all lines of a cell
consist of runs of the same chunks.

Distributed checkpoints hold each chunk as a file of `torch.save`, one behind the other, and those written
with `SerializationFormat.SAFETENSORS` as entries of one safetensors file. What was asked for is compared with
what is there: a file of another save may lie in the place of the right one.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, product
from math import prod
from typing import Any, Literal, NamedTuple

from inspector.containers.container import Chunk, Gathered, Place
from inspector.containers.notes import AMBIGUOUS
from inspector.containers.packed import inflated_part
from inspector.containers.persistent_ids import parse_storage_id
from inspector.containers.rebuilds import VIEWS
from inspector.containers.safetensors import CODES
from inspector.containers.source import Source, Window
from inspector.containers.zip.archive import read_torchzip
from inspector.errors import CheckpointError, ContainerError, DamagedError
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.values import Call, Global, PersistentId, Value
from inspector.progress import Progress
from inspector.records import dataclass, field, replace

# --- how chunks make up the whole ---------------------------------------------------------------------------


_MOST_DIMENSIONS = 64
_MOST_MORE = 100_000
_Cell = tuple[int, ...]


class Run(NamedTuple):
    """Bytes that stand together in a chunk and in the whole."""

    chunk: Chunk
    start: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """The chunks of a tensor in their order."""

    gathered: Gathered
    axis: int = -1  # the last dimension that is divided; -1 where none is
    borders: tuple[tuple[int, ...], ...] = ()  # where the cells begin, for each dimension before it
    # the chunks of each cell by their place along that dimension
    cells: dict[_Cell, tuple[Chunk, ...]] = field(default_factory=dict)
    fault: str  # why they do not make up the whole; empty where they do

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
    return max(bisect_right(chunks, at, key=lambda chunk: chunk.starts[axis]) - 1, 0)


def tile(gathered: Gathered, look: Callable[[int], object]) -> Tiling:
    """Order the chunks of a tensor; `look` counts the parts that are looked at."""
    shape = gathered.shape
    if 0 in shape:
        return Tiling(gathered=gathered, fault="")
    look(len(gathered.chunks) * (1 + len(shape)))
    # Releases before 2.2 list what every rank has once for each of them.
    chunks = [chunk for chunk, _ in groupby(sorted(chunk for chunk in gathered.chunks if chunk.numel))]
    fault = _outside(shape, chunks)
    if fault:
        return Tiling(gathered=gathered, fault=fault)
    axis = max((number for chunk in chunks for number in _divided(chunk, shape)), default=-1)
    if axis < 0:
        fault = "" if len(chunks) == 1 else "it is there several times, and readers take any one of them"
        return Tiling(gathered=gathered, cells={(): tuple(chunks)}, fault=fault)
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
            return Tiling(gathered=gathered, fault="its chunks are too irregular to be joined")
        look(count)
        for cell in product(*reach):
            cells.setdefault(cell, []).append(chunk)
    for found in cells.values():
        found.sort(key=lambda chunk: chunk.starts[axis])
    fault = _unfilled(gathered.shape, axis, borders, cells)
    return Tiling(
        gathered=gathered,
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


# --- the order of elements ----------------------------------------------------------------------------------


_FORMATS: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
_LARGEST = 8


def in_rows(
    data: bytes, sizes: Sequence[int], strides: Sequence[int], itemsize: int, look: Callable[[int], object]
) -> bytes:
    """Return the elements of a dense tensor in the order of rows.

    One dimension after the other is moved to its place, along the longest of the others at once: so no order
    takes more than some hundred thousand steps for each dimension, whatever the number of elements.
    """
    if itemsize > _LARGEST:
        half = itemsize // 2
        return in_rows(data, (*sizes, 2), (*(2 * step for step in strides), 1), half, look)
    wanted = [number for number, size in enumerate(sizes) if size > 1]
    stored = sorted(wanted, key=lambda number: -strides[number])
    for place, number in enumerate(stored):
        if strides[number] != prod(sizes[behind] for behind in stored[place + 1 :]):
            raise DamagedError("a chunk is stored with elements that overlap or lie apart")
    source = memoryview(data).cast(_FORMATS[itemsize])[: prod(sizes)]
    for place, number in enumerate(wanted):
        at = stored.index(number)
        if at == place:
            continue
        counts = [
            prod(sizes[one] for one in part)
            for part in (stored[:place], stored[place:at], stored[at : at + 1], stored[at + 1 :])
        ]
        source = _moved(source, counts, look)
        stored.insert(place, stored.pop(at))
    return source.tobytes()


def _moved(source: memoryview[int], counts: Sequence[int], look: Callable[[int], object]) -> memoryview[int]:
    """Return elements of (outer, before, moved, inner) dimensions as (outer, moved, before, inner)."""
    _, before, moved, inner = counts
    out = memoryview(bytearray(source.nbytes)).cast(_FORMATS[source.itemsize])
    from_steps = before * moved * inner, moved * inner, inner, 1
    to_steps = before * moved * inner, inner, before * inner, 1
    long = max(range(4), key=counts.__getitem__)
    others = [axis for axis in range(4) if axis != long]
    span = counts[long] - 1
    for place in product(*(range(counts[axis]) for axis in others)):
        look(1)
        start = sum(index * from_steps[axis] for index, axis in zip(place, others, strict=True))
        to = sum(index * to_steps[axis] for index, axis in zip(place, others, strict=True))
        out[to : to + span * to_steps[long] + 1 : to_steps[long]] = source[
            start : start + span * from_steps[long] + 1 : from_steps[long]
        ]
    return out


# --- what chunks are packed in ------------------------------------------------------------------------------


Unpack = Callable[[Source, Gathered, Chunk], Place]
_MOST_HEADER_NBYTES = 100_000_000
_MOST_PICKLE_NBYTES = 1 << 20


def _plain(source: Source, gathered: Gathered, chunk: Chunk) -> Place:
    nbytes = chunk.numel * gathered.itemsize
    if chunk.length < nbytes or not source.reaches(chunk.offset + nbytes):
        raise _damaged(gathered, source, "the file ends before it does")
    return Place(chunk.offset)


def _from_zip(source: Source, gathered: Gathered, chunk: Chunk) -> Place:
    limits = replace(DEFAULT_LIMITS, pickle_nbytes=_MOST_PICKLE_NBYTES).started()
    try:
        container = read_torchzip(Window(source, chunk.offset, chunk.length), limits, Progress())
    except CheckpointError as error:
        raise _damaged(gathered, source, str(error)) from error
    if any(note.kind in AMBIGUOUS for note in container.notes):
        raise _damaged(gathered, source, "the zip that it is in is damaged")
    if dict(container.versions).get("byteorder", "little") != "little":
        raise _damaged(gathered, source, "it was saved on a big-endian machine")
    dtype, sizes, strides, first, key = _view(container.root, gathered, source)
    if dtype != gathered.dtype or sizes != chunk.sizes:
        told = f"the file holds {dtype} {list(sizes)}, where {gathered.dtype} {list(chunk.sizes)} is expected"
        raise _damaged(gathered, source, told)
    stored = container.stored.get(key)
    reach = 1 + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True))
    end = (first + max(reach, chunk.numel)) * gathered.itemsize
    if stored is None or stored.offset is None or end > stored.nbytes or reach > chunk.numel:
        raise _damaged(gathered, source, "its bytes are not all in the file, or not one by one")
    place = chunk.offset + stored.offset + first * gathered.itemsize
    return Place(place, None if _is_contiguous(sizes, strides) else strides)


def _view(
    root: Value, gathered: Gathered, source: Source
) -> tuple[str, tuple[int, ...], tuple[int, ...], int, str]:
    """Read a tensor: its type, sizes, strides, first element, and the key of its storage."""
    args: tuple[Any, ...] = root.arguments if isinstance(root, Call) else ()
    func = root.func if isinstance(root, Call) else None
    node = args[0] if args and isinstance(func, Global) and func.name in VIEWS else None
    storage = parse_storage_id(node) if isinstance(node, PersistentId) else None
    if storage is not None and len(args) in {4, 6, 7} and _are_counts(args[1], args[2], args[3]):
        if len(args) < 7:
            return storage.dtype, args[2], args[3], args[1], storage.key
        if isinstance(args[6], Global) and args[6].module == "torch":
            return args[6].name, args[2], args[3], args[1], storage.key
    raise _damaged(gathered, source, "it is stored in a way of its own (quantized, sparse, or a subclass)")


def _are_counts(first: object, sizes: object, strides: object) -> bool:
    if not isinstance(sizes, tuple) or not isinstance(strides, tuple) or len(sizes) != len(strides):
        return False
    return all(type(one) is int and 0 <= one < 1 << 63 for one in (first, *sizes, *strides))


def _is_contiguous(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return all(
        size <= 1 or step == prod(sizes[number + 1 :])
        for number, (size, step) in enumerate(zip(sizes, strides, strict=True))
    )


def _from_safetensors(source: Source, gathered: Gathered, chunk: Chunk) -> Place:
    """Return the place of a chunk in a safetensors file that other things may stand before."""
    nbytes = int.from_bytes(source.read(chunk.offset, 8), "little")
    if nbytes > _MOST_HEADER_NBYTES:
        raise _damaged(gathered, source, "it is not where it should be")
    try:
        header = json.loads(source.read(chunk.offset + 8, nbytes))
        entry = header[gathered.name]
        code, sizes = CODES.get(entry["dtype"]), tuple(entry["shape"])
        start, end = entry["data_offsets"]
        is_it = code is not None and (code.dtype, sizes) == (gathered.dtype, chunk.sizes)
        fits = type(start) is int and start >= 0 and end - start == chunk.numel * gathered.itemsize
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(gathered, source, "the header in front of it cannot be read") from error
    offset = chunk.offset + 8 + nbytes + start if fits else 0
    if not is_it or not fits or not source.reaches(offset + chunk.numel * gathered.itemsize):
        raise _damaged(gathered, source, "the file holds something else in its place")
    return Place(offset)


def _unknown(source: Source, gathered: Gathered, chunk: Chunk) -> Place:  # noqa: ARG001 - the table's signature
    raise ContainerError(
        "a tensor is compressed in a way that is not read here",
        where=gathered.name,
        remedy="convert the folder where that package is installed, with "
        "torch.distributed.checkpoint.format_utils.dcp_to_torch_save",
    )


def _damaged(gathered: Gathered, source: Source, why: str) -> DamagedError:
    return DamagedError(
        "a chunk of a tensor cannot be read", where=f"{gathered.name} in {source.path}: {why}"
    )


UNPACKERS: dict[str, Unpack] = {
    "": _plain,
    "zip": _from_zip,
    "safetensors": _from_safetensors,
    "transformed": _unknown,
}
"""What returns the place of a chunk, by what it is packed in."""


# --- reading ------------------------------------------------------------------------------------------------


ZSTD = "zstd"
"""What a chunk is packed in that is compressed by itself: a zip is in it."""
_MOST_AROUND = 1 << 20  # of what is written around the elements of a chunk
_AHEAD_NBYTES = 1 << 20
_ALL_AHEAD_NBYTES = 32 << 20
_LEAST_AHEAD_NBYTES = 1 << 12
_MOST_LINED = 128 << 20


class GatheredReader:
    """Reads one storage in chunks."""

    def __init__(
        self, gathered: Gathered, part: Callable[[int], Source], ask: Callable[[], object] | None = None
    ) -> None:
        """Prepare to read; `part` returns the source of a file by its number, `ask` raises to cancel."""
        self._ask = ask
        limits = DEFAULT_LIMITS.started()
        self._gathered = gathered
        self._part = part
        self._tiling: Tiling = tile(gathered, limits.counted().look)
        self._ahead = max(
            min(_AHEAD_NBYTES, _ALL_AHEAD_NBYTES // max(len(gathered.chunks), 1)), _LEAST_AHEAD_NBYTES
        )
        self._places: dict[Chunk, Place] = {}
        self._windows: dict[Chunk, tuple[int, bytes]] = {}
        self._inflated: dict[Chunk, Source] = {}

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return exactly so many bytes of the whole."""
        return b"".join(self._bytes(run) for run in self._tiling.runs(offset, offset + nbytes))

    def extents(self, start: int, end: int) -> Iterator[tuple[Source, int, int]] | None:
        """Return where the bytes from `start` up to `end` are, as (source, offset, nbytes).

        None where they are not in the order of the whole, or in so small runs that reading is faster.
        """
        if any(chunk.packing == ZSTD for chunk in self._gathered.chunks):
            return None
        axis = self._tiling.axis
        if axis > 0 or any(self._place(chunk).strides for chunk in self._tiling.cells.get((), ())):
            return None
        return (
            (self._part(run.chunk.part), self._place(run.chunk).offset + run.start, run.nbytes)
            for run in self._tiling.runs(start, end)
        )

    def _bytes(self, run: Run) -> bytes:
        """Return the bytes of a run: out of the window that is kept of its chunk, where they are in it."""
        chunk, start, nbytes = run
        first, window = self._windows.get(chunk, (0, b""))
        if not first <= start <= start + nbytes <= first + len(window):
            most = chunk.numel * self._gathered.itemsize
            if self._place(chunk).strides is not None:
                first, window = 0, self._lined(chunk, most)
            elif nbytes >= self._ahead:
                return self._read(chunk, start, nbytes)
            else:
                first, window = start, self._read(chunk, start, min(self._ahead, most - start))
            self._windows[chunk] = first, window
        return window[start - first : start - first + nbytes]

    def _read(self, chunk: Chunk, start: int, nbytes: int) -> bytes:
        return self._source(chunk).read(self._place(chunk).offset + start, nbytes)

    def _source(self, chunk: Chunk) -> Source:
        """Return what a chunk is read from: of one that is compressed by itself, its inside."""
        if chunk.packing != ZSTD:
            return self._part(chunk.part)
        found = self._inflated.get(chunk)
        if found is None:
            most = chunk.numel * self._gathered.itemsize + _MOST_AROUND
            if sum(one.nbytes for one in self._inflated.values()) + most > _MOST_LINED:
                self._inflated.clear()
            found = inflated_part(self._part(chunk.part), chunk.offset, chunk.length, most)
            self._inflated[chunk] = found
        return found

    def _lined(self, chunk: Chunk, nbytes: int) -> bytes:
        """Return all elements of a chunk in the order of rows, where they are stored in another one."""
        if sum(len(window) for _, window in self._windows.values()) + nbytes > _MOST_LINED:
            self._windows.clear()
        if nbytes > _MOST_LINED:
            raise DamagedError(
                "a chunk is stored in another order than by rows, and too large to be put in order here",
                where=self._gathered.name,
                remedy="convert the folder with torch.distributed.checkpoint.format_utils.dcp_to_torch_save",
            )
        data = self._read(chunk, 0, nbytes)
        look = DEFAULT_LIMITS.started().counted(self._ask).look  # for each chunk: a copy may have thousands
        return in_rows(data, chunk.sizes, self._place(chunk).strides or (), self._gathered.itemsize, look)

    def _place(self, chunk: Chunk) -> Place:
        place = self._places.get(chunk)
        if place is None:
            if chunk.part < 0:
                raise DamagedError("a file is missing that part of a tensor is in", where=self._gathered.name)
            source, inside = self._source(chunk), chunk
            if chunk.packing == ZSTD:
                inside = chunk._replace(offset=0, length=source.nbytes, packing="zip")
            place = self._places[chunk] = UNPACKERS[inside.packing](source, self._gathered, inside)
        return place
