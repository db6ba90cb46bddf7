"""The bytes of storages, wherever they are: in the source for the kernel to copy, or unpacked beside it.

torch never compresses storages, but people do: legacy files with gzip, zip files by packing them anew. What
is compressed is unpacked once into a file without a name, so that everything else finds plain bytes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Self

from inspector.containers.container import Container
from inspector.containers.copying import write_bytes
from inspector.containers.source import FileSource, Source
from inspector.containers.storage_reader import STEP_NBYTES, StorageReader
from inspector.errors import ContainerError, ExportError
from inspector.progress import Progress
from inspector.remap.convert.cast import Caster
from inspector.remap.convert.storages import Piece, Range
from inspector.remap.files.outfile import explained

SMALL_NBYTES = 1 << 16
"""Up to here reading and writing costs less than asking the kernel to copy."""


class Stock:
    """Reads the bytes of a container's storages.

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
        self._bytes = StorageReader(container, source)
        self._unpacked: dict[str, FileSource] = {}

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what was unpacked."""
        self._exits.close()

    def reader(self, key: str, progress: Progress) -> Callable[[int, int], bytes]:
        """Return a function that reads bytes of a storage by offset and length."""
        file = self._unpacked_file(key, progress)
        return partial(self._bytes.read, key) if file is None else file.read

    def read_range(self, key: str, span: Range, progress: Progress) -> Iterator[bytes]:
        """Yield some bytes of a storage, about a megabyte at a time."""
        read = self.reader(key, progress)
        for pos in range(*span, STEP_NBYTES):
            yield read(pos, min(STEP_NBYTES, span[1] - pos))

    def copy_range(self, key: str, span: Range, target: int, progress: Progress) -> None:
        """Have the kernel copy some bytes of a storage to the target's position."""
        file = self._unpacked_file(key, progress)
        if file is None:
            self._bytes.copy_to(key, *span, target, progress)
        else:
            file.copy_to(target, span[0], span[1] - span[0], progress)

    def read(self, piece: Piece, progress: Progress) -> Iterator[bytes]:
        """Yield the bytes of a piece, about a megabyte at a time."""
        for span in piece.ranges:
            yield from self.read_range(piece.source, span, progress)

    def is_cast(self, key: str, dtype: str) -> bool:
        """Return whether what becomes of a storage has another type than it has here."""
        before = self.container.storage_ids.get(key)
        return (
            self.caster is not None
            and dtype == self.caster.dtype
            and (before is None or before.dtype != dtype)
        )

    def crc(self, piece: Piece) -> int:
        """Return the CRC-32 of a piece as the source states it, or 0 where it does not."""
        return self._bytes.crc(piece.source) if piece.is_whole else 0

    def spool(self) -> IO[bytes]:
        """Return a new file without a name, gone with the others."""
        with explained(self._folder):
            return self._exits.enter_context(tempfile.TemporaryFile(dir=self._folder))

    def _unpacked_file(self, key: str, progress: Progress) -> FileSource | None:
        """Return the file that a compressed storage was unpacked to; None for a storage that is plain."""
        if not self._bytes.is_packed(key):
            return None
        file = self._unpacked.get(key)
        if file is None:
            spool = self.spool()
            self._unpack(key, spool.fileno(), progress)
            file = self._unpacked[key] = FileSource(self.source.path, os.dup(spool.fileno()))
            self._exits.enter_context(file)
        return file

    def _unpack(self, key: str, target: int, progress: Progress) -> None:
        """Write the bytes of a storage to a file."""
        try:
            for data in self._bytes.steps(key, 0, self._bytes.nbytes(key), progress):
                with explained(self._folder):
                    write_bytes(target, data)
        except ContainerError as error:
            raise ExportError(error.what, where=error.where, remedy=error.remedy) from error


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
        if len(data) > SMALL_NBYTES:  # not copied once more
            self.flush()
            write_bytes(self._target, data)
            return
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
        if self._data:
            write_bytes(self._target, bytes(self._data))
            self._data.clear()


def read_at(fd: int, offset: int, nbytes: int) -> bytes:
    """Read exactly so many bytes of an open file."""
    data = b""
    while len(data) < nbytes:
        more = _read_some(fd, offset + len(data), nbytes - len(data))
        if not more:
            raise ExportError("the file ended while it was copied", remedy="try again once it is complete")
        data += more
    return data


def _read_some(fd: int, offset: int, nbytes: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, nbytes, offset)
    os.lseek(fd, offset, os.SEEK_SET)  # Windows
    return os.read(fd, nbytes)


def refuse_full_disk(folder: Path, nbytes: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    with explained(folder):
        free = free_nbytes(folder)
    if free < nbytes:
        raise ExportError(
            f"the disk has room for {free:,} bytes, and {nbytes:,} are needed", where=str(folder)
        )


def free_nbytes(folder: Path) -> int:
    """Return how much room a disk has left."""
    return int(shutil.disk_usage(folder).free)
