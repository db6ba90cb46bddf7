"""A record of a zip, read as a file of its own, compressed or not."""

from __future__ import annotations

import zlib

from inspector.containers.gathered.window import Window
from inspector.containers.raw.inflated import Inflated
from inspector.containers.source import Source
from inspector.containers.zip.directory import DEFLATED, STORED, ZipEntry, payload_offset, place_of
from inspector.containers.zip.records import refused
from inspector.errors import ContainerError, DamagedError
from inspector.limits import Limits
from inspector.overriding import override


class InflatedRecord(Source):
    """The inside of a compressed record, which has the size that the directory says."""

    def __init__(self, whole: Source, entry: ZipEntry, limits: Limits) -> None:
        """Inflate a record of `whole`, which stays open."""
        if entry.nbytes > limits.inflated_nbytes:
            what = f"a zip record is larger than {limits.inflated_nbytes:,} bytes"
            raise ContainerError(what, where=place_of(entry))
        start, stored = payload_offset(whole, entry), entry.stored_nbytes

        def read_packed(offset: int, nbytes: int) -> bytes:
            return whole.read_upto(start + offset, max(min(nbytes, stored - offset), 0))

        look = None if limits.work is None else limits.work.look
        self._inside = Inflated(read_packed, look, is_gzip=False)
        super().__init__(whole.path, entry.nbytes)

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        try:
            return self._inside.read_upto(offset, nbytes)
        except zlib.error as error:
            raise DamagedError(
                "a compressed record is damaged",
                where=f"byte {offset:,}: {error}",
                remedy="fetch or copy the file again",
            ) from error


def open_record(whole: Source, entry: ZipEntry, limits: Limits) -> Source:
    """Return the contents of a record as a source; `whole` stays open."""
    miniz = refused(entry)
    if miniz is not None:
        raise ContainerError("a zip record cannot be read", where=f"{place_of(entry)}: {miniz.value}")
    if entry.method == DEFLATED:
        return InflatedRecord(whole, entry, limits)
    if entry.nbytes != entry.stored_nbytes:
        raise DamagedError("a zip record has two sizes", where=place_of(entry))
    start = payload_offset(whole, entry)
    # Of a record that the end of the file cuts off, what is left is read.
    return Window(whole, start, min(entry.nbytes, max(whole.nbytes - start, 0)))


def is_stored(entry: ZipEntry) -> bool:
    """Return whether the contents of a record stand in the file as they are."""
    return entry.method == STORED
