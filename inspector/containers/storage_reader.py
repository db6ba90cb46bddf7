"""The bytes of storages by key, of any format and from any source, in bounded steps, compressed or not."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from inspector.containers.codings import PLAIN, coded, decoding, is_coded
from inspector.containers.container import Container, Extent
from inspector.containers.copying import write_bytes
from inspector.containers.formats import format_of
from inspector.containers.inflated import Inflated
from inspector.containers.source import Source
from inspector.errors import ContainerError, DamagedError, TooLargeError
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.containers.gathered import GatheredReader

STEP_NBYTES = 1 << 20
_STORED, _DEFLATED = 0, 8
_MOST_CHARS = 40

Read = Callable[[int, int], bytes]
"""`read(offset, nbytes)` returns exactly so many bytes, or raises."""


class StorageReader:
    """Reads the storages of a container whose files are open."""

    def __init__(self, container: Container, *parts: Source) -> None:
        self.container = container
        self._parts = parts
        self._find: dict[int, Callable[[str], Extent | None]] = {}
        self._inflating: tuple[str, Read] | None = None
        self._readers: dict[int, ExtentReader] = {}
        self._gathering: tuple[str, GatheredReader] | None = None
        self._progress: Progress | None = None

    def nbytes(self, key: str) -> int:
        """Return how many bytes of a storage there are: none of one that is missing."""
        stored = self.container.stored.get(key)
        return 0 if stored is None else stored.nbytes

    def is_packed(self, key: str) -> bool:
        """Return whether the bytes of a storage are compressed."""
        stored = self.container.stored.get(key)
        return (
            key not in self.container.gathered
            and stored is not None
            and stored.offset is None
            and stored.nbytes > 0
        )

    def crc(self, key: str) -> int:
        """Return the CRC-32 that the file states of a storage; 0 where it states none."""
        extent = self._extent(key)
        return 0 if extent is None else extent.crc

    def read(self, key: str, offset: int, nbytes: int) -> bytes:
        """Return exactly `nbytes` bytes of a storage."""
        self._refuse_outside(key, offset + nbytes)
        if not nbytes:
            return b""
        if key in self.container.gathered:
            return self._in_chunks(key).read(offset, nbytes)
        if self.is_packed(key):
            return self._inflated(key)(offset, nbytes)
        source, start = self._place(key)
        return source.read(start + offset, nbytes)

    def steps(self, key: str, start: int, end: int, progress: Progress) -> Iterator[bytes]:
        """Yield the bytes of a storage from `start` up to `end`, about a megabyte at a time."""
        self._progress = progress
        for pos in range(start, end, STEP_NBYTES):
            progress.advance(0)
            yield self.read(key, pos, min(STEP_NBYTES, end - pos))

    def copy_to(self, key: str, start: int, end: int, target: int, progress: Progress) -> None:
        """Copy the same bytes to the position of the descriptor `target`, by the kernel where it can."""
        self._refuse_outside(key, end)
        if start == end:
            return
        if key in self.container.gathered:
            self._copy_chunks(key, start, end, target, progress)
        elif self.is_packed(key):
            for data in self.steps(key, start, end, progress):
                progress.advance(write_bytes(target, data))
        else:
            source, offset = self._place(key)
            source.copy_to(target, offset + start, end - start, progress)

    def _copy_chunks(self, key: str, start: int, end: int, target: int, progress: Progress) -> None:
        """Copy a storage in chunks, by the kernel where the chunks stand in the order of the whole."""
        extents = self._in_chunks(key).extents(start, end)
        if extents is None:
            for data in self.steps(key, start, end, progress):
                progress.advance(write_bytes(target, data))
            return
        for source, offset, nbytes in extents:
            source.copy_to(target, offset, nbytes, progress)

    def _in_chunks(self, key: str) -> GatheredReader:
        """Return what reads a storage in chunks; that of the last one is kept."""
        if self._gathering is None or self._gathering[0] != key:
            from inspector.containers.gathered import GatheredReader  # noqa: PLC0415 - few files have any

            reader = GatheredReader(self.container.gathered[key], self._part, self._ask)
            self._gathering = key, reader
        return self._gathering[1]

    def _ask(self) -> None:
        """Ask whether reading in steps was cancelled: putting one chunk in order may take seconds."""
        if self._progress is not None:
            self._progress.advance(0)

    def _part(self, number: int) -> Source:
        if self._parts[0].is_folder:
            return self._parts[0].part_at(self.container.parts[number].path)
        if number >= len(self._parts):
            raise ContainerError("a file of the checkpoint is not open", where=self.container.path)
        return self._parts[number]

    def _refuse_outside(self, key: str, end: int) -> None:
        if end > self.nbytes(key):
            where = f"storage {key[:_MOST_CHARS]}: byte {end:,} of {self.nbytes(key):,}"
            raise DamagedError("a storage is shorter than what is read of it", where=where)

    def _place(self, key: str) -> tuple[Source, int]:
        part, offset, _ = self.container.stored[key]
        return self._part(part), offset or 0

    def _extent(self, key: str) -> Extent | None:
        parts, place = self.container.parts, self.container.stored.get(key)
        number = 0 if place is None else place.part
        find = self._find.get(number)
        if find is None:
            form = parts[number].format if parts else self.container.format
            find = self._find[number] = format_of(form).finder(self._part(number))
        return find(key.partition(":")[2] if parts else key)  # as its own file knows it

    def _inflated(self, key: str) -> Read:
        """Return what reads a compressed storage; that of the last one is kept."""
        if self._inflating is None or self._inflating[0] != key:
            extent = self._extent(key)
            if extent is None or not (extent.method in {_STORED, _DEFLATED} or is_coded(extent.method)):
                where = f"storage {key[:_MOST_CHARS]}"
                raise ContainerError("a storage is compressed in an unknown way", where=where)
            part = self.container.stored[key].part
            if part not in self._readers:
                self._readers[part] = ExtentReader(self._place(key)[0])
            self._inflating = key, self._readers[part].reader_of(extent)
        return self._inflating[1]


class ExtentReader:
    """Reads extents of one source; where several stand in one compressed record, that is inflated once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._inflated: tuple[tuple[int, int], Inflated] | None = None

    def reader_of(self, extent: Extent) -> Read:
        """Return what reads the contents of an extent."""
        source = self._source
        if extent.method == _STORED:
            return lambda offset, nbytes: source.read(extent.offset + offset, nbytes)

        def read_packed(offset: int, nbytes: int) -> bytes:
            return source.read(extent.offset + offset, max(min(nbytes, extent.stored_nbytes - offset), 0))

        if is_coded(extent.method):
            return _exactly(decoding(read_packed, extent.method))
        record = extent.offset, extent.stored_nbytes
        if self._inflated is None or self._inflated[0] != record:
            self._inflated = record, Inflated(read_packed, is_gzip=False)
        read = _inflating(self._inflated[1], extent)
        return read if extent.swap == 1 else _exactly(decoding(read, coded(PLAIN, extent.swap)))

    def contents(self, extent: Extent) -> Iterator[bytes]:
        """Yield the contents of an extent, about a megabyte at a time and never more than it says."""
        read = self.reader_of(extent)
        for done in range(0, extent.nbytes, STEP_NBYTES):
            yield read(done, min(STEP_NBYTES, extent.nbytes - done))


def _inflating(inflated: Inflated, extent: Extent) -> Read:
    def read(offset: int, nbytes: int) -> bytes:
        try:
            data = inflated.read_upto(extent.skip + offset, nbytes)
        except zlib.error as error:
            raise DamagedError("a compressed record is damaged", where=str(error)) from error
        if len(data) < nbytes:
            short = f"{extent.nbytes - offset - len(data):,} bytes short"
            raise DamagedError("a compressed record is shorter than it says", where=short)
        return data

    return read


def _exactly(read_upto: Read) -> Read:
    def read(offset: int, nbytes: int) -> bytes:
        data = read_upto(offset, nbytes)
        if len(data) < nbytes:
            raise DamagedError(
                "the bytes of a tensor end too early", where=f"{nbytes - len(data):,} bytes short"
            )
        return data

    return read


# --- checksums ----------------------------------------------------------------------------------------------


class Sums(NamedTuple):
    """What reading all bytes showed."""

    crcs: dict[str, int]
    faults: dict[str, str]
    unchecked: frozenset[str]  # which of those that are whole the file has no checksum of


def sum_extents(source: Source, extents: dict[str, Extent], progress: Progress) -> Sums:
    """Read all bytes of some extents, in the order of the file, and compare their checksums."""
    progress.start("checking", sum(extent.nbytes for extent in extents.values()))
    crcs: dict[str, int] = {}
    faults: dict[str, str] = {}
    reader = ExtentReader(source)
    for key, extent in sorted(extents.items(), key=lambda item: (item[1].offset, item[1].skip)):
        try:
            crc = _sum(reader, extent, progress)
        except TooLargeError:
            raise  # what is not read is not lost
        except ContainerError as error:
            faults[key] = str(error)
            continue
        if extent.crc in {0, crc}:
            crcs[key] = crc
        else:
            faults[key] = "its checksum is wrong: bytes of it were changed or lost"
    return Sums(crcs, faults, frozenset(key for key in crcs if not extents[key].crc and extents[key].nbytes))


def _sum(reader: ExtentReader, extent: Extent, progress: Progress) -> int:
    crc = 0
    for data in reader.contents(extent):
        crc = zlib.crc32(data, crc)
        progress.advance(len(data))
    return crc
