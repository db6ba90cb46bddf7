"""The bytes of storages, read from the files themselves: in the worker, and where the library is used.

A pipe carries less than a gigabyte in a second and costs both sides their time, so what the worker is told is
not the bytes but where they are: a path, and what the file looked like when it was opened. Storages that
stand in the file as they are are read at once; for those that are compressed or in chunks the container is
read here once more, and the last one is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from inspector.containers.container import Container
from inspector.containers.opening import open_path, read_container, stamp_at
from inspector.containers.source import Source
from inspector.containers.storage_reader import StorageReader
from inspector.errors import ContainerError, ValuesError

Read = Callable[[int, int], bytes]
_STEP_NBYTES = 1 << 20


class _Kept(NamedTuple):
    known: tuple[object, ...]
    container: Container
    nbytes: int


_KEPT: list[_Kept] = []
_OPEN: list[TensorBytes] = []
"""The last folder, or file that is compressed as a whole: to list or unpack it anew takes long."""


class StorageBytes:
    """The bytes of one storage, and no others."""

    def __init__(self, nbytes: int, read: Read, source: Source | None = None, start: int = 0) -> None:
        """Read by a function; of a source that has them as they are, from `start` on, without it."""
        self._nbytes, self._read, self._source, self._start = nbytes, read, source, start

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return exactly so many bytes."""
        self._refuse_outside(offset, nbytes)
        return self._read(self._start + offset, nbytes)

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill a buffer of bytes."""
        self._refuse_outside(offset, len(buffer))
        if self._source is not None:
            self._source.read_into(self._start + offset, buffer)
            return
        for done in range(0, len(buffer), _STEP_NBYTES):
            part = buffer[done : done + _STEP_NBYTES]
            part[:] = self._read(offset + done, len(part))

    def _refuse_outside(self, offset: int, nbytes: int) -> None:
        if offset < 0 or offset + nbytes > self._nbytes:
            raise ValuesError(f"its elements run past the {self._nbytes:,} bytes of its storage")


class TensorBytes:
    """An open file or folder, and what reads the storages in it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._reader: StorageReader | None = None

    def storage(self, place: dict[str, Any]) -> StorageBytes:
        """Return a storage.

        Args:
            place: Its `key`, its size as `nbytes`, the `part` that it is in, empty where there is one file;
                and its `file_offset`, None where it is compressed or in chunks; of quantized blocks also
                their type as `blocks`, and how many bytes their numbers have.
        """
        if place.get("blocks"):
            from inspector.values.decoding import dequantized  # noqa: PLC0415 - few files have blocks

            raw = self.storage({**place, "blocks": ""})
            read = dequantized(raw.read, place["blocks"], int(place["nbytes"]))
            return StorageBytes(int(place["numbers_nbytes"]), read)
        nbytes = int(place["nbytes"])
        if place["file_offset"] is None:
            return StorageBytes(nbytes, partial(self._container_reader().read, place["key"]))
        source = self.source.part_at(place["part"]) if place["part"] else self.source
        return StorageBytes(nbytes, source.read, source, int(place["file_offset"]))

    def read_of(self, place: dict[str, Any]) -> Read:
        """Return what reads a storage, by offset and length."""
        return self.storage(place).read

    def refuse_other(self, stamp: list[int] | None) -> None:
        """Raise an error if the file is not the one that somebody looked at; None is any file."""
        found = self.source.stamp
        if stamp is not None and (found is None or list(found) != stamp):
            raise _changed(self.source.path)

    def refuse_changed(self) -> None:
        """Raise an error if the file is not what it was when it was opened."""
        if self.source.identity() != self.source.stamp:
            raise _changed(self.source.path)

    def _container_reader(self) -> StorageReader:
        if self._reader is None:
            known = (self.source.path, self.source.stamp)
            kept = next((one for one in _KEPT if one.known == known and known[1] is not None), None)
            if kept is None:
                container = read_container(self.source)
                kept = _Kept(known, container, self.source.nbytes)
                _KEPT[:] = [kept]
            self.source.nbytes = kept.nbytes  # which is measured while it is read, where it is compressed
            self._reader = StorageReader(kept.container, self.source)
        return self._reader


@contextmanager
def open_bytes(path: str, stamp: list[int] | None) -> Iterator[TensorBytes]:
    """Open a file or folder, which must be as it was when somebody looked at it."""
    opened = _taken(path) or TensorBytes(open_path(path))
    try:
        opened.refuse_other(stamp)
        yield opened
        opened.refuse_changed()
    except BaseException:
        opened.source.close()
        raise
    if opened.source.gzipped or opened.source.is_folder:
        close_kept()
        _OPEN.append(opened)
    else:
        opened.source.close()


def _taken(path: str) -> TensorBytes | None:
    """Take what is kept open, if it is that of this path and still as it was.

    What changes in a folder shows after reading, as it does of all that is read.
    """
    try:
        kept = _OPEN.pop()
    except IndexError:
        return None
    if kept.source.path != path:
        _OPEN.append(kept)
        return None
    if kept.source.is_folder or kept.source.stamp == stamp_at(path):
        return kept
    kept.source.close()
    return None


def close_kept() -> None:
    """Close what is kept open."""
    while _OPEN:
        _OPEN.pop().source.close()


def _changed(path: str) -> ContainerError:
    return ContainerError("the file changed since it was opened", where=path, remedy="open it again")
