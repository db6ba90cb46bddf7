"""Reads a storage in chunks as one, in bounded steps: of each chunk a window is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from inspector.containers.gathered.chunks import Chunk, Gathered, Place
from inspector.containers.gathered.ordering import in_rows
from inspector.containers.gathered.tiling import Run, Tiling, tile
from inspector.containers.gathered.unpacking import UNPACKERS
from inspector.containers.source import Source
from inspector.errors import DamagedError
from inspector.limits import DEFAULT_LIMITS

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

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return exactly so many bytes of the whole."""
        return b"".join(self._bytes(run) for run in self._tiling.runs(offset, offset + nbytes))

    def extents(self, start: int, end: int) -> Iterator[tuple[Source, int, int]] | None:
        """Return where the bytes from `start` up to `end` are, as (source, offset, nbytes).

        None where they are not in the order of the whole, or in so small runs that reading is faster.
        """
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
        return self._part(chunk.part).read(self._place(chunk).offset + start, nbytes)

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
            unpack = UNPACKERS[chunk.packing]
            place = self._places[chunk] = unpack(self._part(chunk.part), self._gathered, chunk)
        return place
