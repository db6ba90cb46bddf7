"""The bytes of storages, wherever they are: in the source for the kernel to copy, or unpacked beside it.

torch never compresses storages, but people do: legacy files with gzip, zip files by packing them anew. What
is compressed is unpacked once into a file without a name, so that everything else finds plain bytes.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Self

from inspector.containers.container import Container
from inspector.containers.formats import format_of
from inspector.containers.raw.copying import write_bytes
from inspector.containers.source import FileSource, Source
from inspector.containers.zip.archive import Records
from inspector.containers.zip.directory import DEFLATED, STORED, Entry, payload_offset, read_directory
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.progress import Progress
from inspector.remap.convert.cast import Caster
from inspector.remap.convert.storages import Piece, Range
from inspector.remap.files.outfile import explained

STEP_NBYTES = 1 << 20
SMALL_NBYTES = 1 << 16
"""Up to here reading and writing costs less than asking the kernel to copy."""


class Stock:
    """Gives the bytes of a container's storages.

    Attributes:
        source: The file, or what was unpacked of it.
        container: What it holds.
        caster: Casts what is to have another type, or None.
    """

    def __init__(
        self, source: Source, container: Container, folder: Path, caster: Caster | None = None
    ) -> None:
        """Prepare to read; `folder` takes what must be unpacked, under no name."""
        self.caster = caster
        self.source = source
        self.container = container
        self._folder = folder
        self._exits = ExitStack()
        self._records: Records | None = None
        self._unpacked: dict[str, FileSource] = {}

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what was unpacked."""
        self._exits.close()

    def reader(self, key: str, progress: Progress) -> Callable[[int, int], bytes]:
        """Give a function that reads bytes of a storage by offset and length."""
        source, start = self._place(key, progress)
        return lambda offset, nbytes: source.read(start + offset, nbytes)

    def read_range(self, key: str, span: Range, progress: Progress) -> Iterator[bytes]:
        """Give some bytes of a storage, about a megabyte at a time."""
        read = self.reader(key, progress)
        for pos in range(*span, STEP_NBYTES):
            yield read(pos, min(STEP_NBYTES, span[1] - pos))

    def copy_range(self, key: str, span: Range, target: int, progress: Progress) -> None:
        """Let the kernel copy some bytes of a storage to the target's position."""
        source, start = self._place(key, progress)
        source.copy_to(target, start + span[0], span[1] - span[0], progress)

    def read(self, piece: Piece, progress: Progress) -> Iterator[bytes]:
        """Give the bytes of a piece, about a megabyte at a time."""
        for span in piece.ranges:
            yield from self.read_range(piece.source, span, progress)

    def is_cast(self, key: str, dtype: str) -> bool:
        """Say whether what becomes of a storage has another type than it has here."""
        before = self.container.storage_ids.get(key)
        return (
            self.caster is not None
            and dtype == self.caster.dtype
            and (before is None or before.dtype != dtype)
        )

    def crc(self, piece: Piece) -> int:
        """Give the CRC-32 of a piece as the source states it, or 0 where it does not."""
        entry = self._entry(piece.source) if piece.is_whole else None
        return 0 if entry is None else entry.crc

    def spool(self) -> IO[bytes]:
        """Give a new file without a name, gone with the others."""
        with explained(self._folder):
            return self._exits.enter_context(tempfile.TemporaryFile(dir=self._folder))

    def _entry(self, key: str) -> Entry | None:
        if not format_of(self.container.format).has_records:
            return None
        if self._records is None:
            self._records = Records(read_directory(self.source, DEFAULT_LIMITS))
        return self._records.storage(key)

    def _place(self, key: str, progress: Progress) -> tuple[Source, int]:
        stored = self.container.stored.get(key)
        if stored is None or stored.offset is not None or not stored.nbytes:
            return self.source, 0 if stored is None else stored.offset or 0
        file = self._unpacked.get(key)
        if file is None:
            unpacked = self._unpack(key, stored.nbytes, progress)
            file = self._unpacked[key] = FileSource(self.source.path, os.dup(unpacked.fileno()))
            self._exits.enter_context(file)
        return file, 0

    def _unpack(self, key: str, nbytes: int, progress: Progress) -> IO[bytes]:
        entry = self._entry(key)
        if entry is None or entry.method not in {DEFLATED, STORED}:
            raise ExportError("a storage is compressed in an unknown way", where=f"storage {key[:40]}")
        file = self.spool()
        with explained(self._folder):
            done = _inflate(self.source, entry, file.fileno(), nbytes, progress)
        if done != nbytes:
            raise ExportError("a compressed storage is not as long as it says", where=f"storage {key[:40]}")
        return file


def _inflate(source: Source, entry: Entry, target: int, nbytes: int, progress: Progress) -> int:
    """Unpack a record, at most one byte more than it says; give how much that was."""
    start, done = payload_offset(source, entry), 0
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    for pos in range(0, entry.stored_nbytes, STEP_NBYTES):
        packed = source.read(start + pos, min(STEP_NBYTES, entry.stored_nbytes - pos))
        while packed and done <= nbytes:
            progress.advance()
            try:
                plain = inflate.decompress(packed, min(STEP_NBYTES, nbytes + 1 - done))
            except zlib.error as error:
                raise ExportError("a compressed storage is damaged", where=str(error)) from error
            done += write_bytes(target, plain)
            packed = inflate.unconsumed_tail
            if not plain and not packed:
                break
    return done


class Buffered:
    """Writes small pieces together, and has large ones copied by the kernel behind them."""

    def __init__(self, stock: Stock, target: int, progress: Progress) -> None:
        """Write to the descriptor `target`."""
        self._stock = stock
        self._target = target
        self._progress = progress
        self._data = bytearray()

    def write(self, data: bytes) -> None:
        """Write some bytes, now or with others."""
        self._data += data
        if len(self._data) >= STEP_NBYTES:
            self.flush()

    def copy(self, key: str, span: Range) -> None:
        """Write some bytes of a storage."""
        if span[1] - span[0] > SMALL_NBYTES:
            self.flush()
            self._stock.copy_range(key, span, self._target, self._progress)
            return
        for data in self._stock.read_range(key, span, self._progress):
            self.write(data)
            self._progress.advance(len(data))

    def flush(self) -> None:
        """Write what waits."""
        write_bytes(self._target, bytes(self._data))
        self._data.clear()


def read_at(fd: int, offset: int, nbytes: int) -> bytes:
    """Read exactly so many bytes of an open file.

    Raises:
        ExportError: It ended before.
    """
    data = b""
    while len(data) < nbytes:
        os.lseek(fd, offset + len(data), os.SEEK_SET)  # Windows has no pread
        more = os.read(fd, nbytes - len(data))
        if not more:
            raise ExportError("the file ended while it was copied", remedy="try again once it is complete")
        data += more
    return data


def refuse_full_disk(folder: Path, nbytes: int) -> None:
    """Refuse to begin what the disk cannot hold.

    Raises:
        ExportError: It has too little room.
    """
    with explained(folder):
        free = _free_nbytes(folder)
    if free is not None and free < nbytes:
        raise ExportError(
            f"the disk has room for {free:,} bytes, and {nbytes:,} are needed", where=str(folder)
        )


def _free_nbytes(folder: Path) -> int | None:
    if not hasattr(os, "statvfs"):
        return None
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
