"""The bytes of storages, read in this process from the files themselves.

A pipe carries less than a gigabyte in a second and costs both sides their time, so what comes over is not the
bytes but where they are: a path, and what the file looked like when it was opened. Storages that stand in
the file as they are take one `pread` for each piece; for those that are compressed or in chunks the container
is read here once more, and the last one is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from inspector.containers.container import Container
from inspector.containers.opening import open_path, read_container
from inspector.containers.source import Source
from inspector.containers.storage_reader import StorageReader
from inspector.errors import ContainerError, ValuesError
from inspector.worker.blocks import dequantized

Read = Callable[[int, int], bytes]
_KEPT: dict[tuple[object, ...], Container] = {}


class TensorBytes:
    """An open file or folder, and what reads the storages in it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._reader: StorageReader | None = None

    def read_of(self, place: dict[str, Any]) -> Read:
        """Return what reads a storage.

        Args:
            place: Its `key`, its size as `nbytes`, the `part` that it is in, empty where there is one file;
                and its `file_offset`, None where it is compressed or in chunks; of quantized blocks also
                their type as `blocks`, and how many bytes their numbers have.
        """
        nbytes = int(place["nbytes"])
        if place["file_offset"] is None:
            read: Read = partial(self._container_reader().read, place["key"])
        else:
            source = self._source.part_at(place["part"]) if place["part"] else self._source
            start = int(place["file_offset"])
            read = partial(_read_plain, source, start)
        blocks = place.get("blocks")
        if blocks:
            return partial(_read_inside, dequantized(read, blocks, nbytes), int(place["numbers_nbytes"]))
        return partial(_read_inside, read, nbytes)

    def refuse_changed(self) -> None:
        """Raise an error if the file is not what it was when it was opened."""
        if self._source.identity() != self._source.stamp:
            raise _changed(self._source.path)

    def _container_reader(self) -> StorageReader:
        if self._reader is None:
            known = (self._source.path, self._source.stamp)
            if known not in _KEPT:
                _KEPT.clear()
                _KEPT[known] = read_container(self._source)
            self._reader = StorageReader(_KEPT[known], self._source)
        return self._reader


@contextmanager
def open_bytes(path: str, stamp: list[int] | None) -> Iterator[TensorBytes]:
    """Open a file or folder, which must be as it was when somebody looked at it."""
    with open_path(path) as source:
        found = source.stamp
        if stamp is not None and (found is None or list(found) != stamp):
            raise _changed(path)
        opened = TensorBytes(source)
        yield opened
        opened.refuse_changed()


def _changed(path: str) -> ContainerError:
    return ContainerError("the file changed since it was opened", where=path, remedy="open it again")


def _read_plain(source: Source, start: int, offset: int, nbytes: int) -> bytes:
    return source.read(start + offset, nbytes)


def _read_inside(read: Read, most: int, offset: int, nbytes: int) -> bytes:
    if offset < 0 or offset + nbytes > most:
        raise ValuesError(f"its elements run past the {most:,} bytes of its storage")
    return read(offset, nbytes)
