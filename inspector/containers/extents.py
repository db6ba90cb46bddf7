"""Where the bytes of each storage are and what checksum they should have; or why they are not whole.

Opening a file asks no more than whether there are enough bytes. To save what is left of a damaged file, or to
check a file, takes more: which record, how packed, and what is wrong with the others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from inspector.containers.container import Container, Extent, StoredBytes
from inspector.containers.formats import find_format
from inspector.containers.legacy import open_legacy
from inspector.containers.persistent_ids import StorageId
from inspector.containers.source import Source
from inspector.containers.storage_reader import ExtentReader
from inspector.containers.unread import programs_on_errors
from inspector.containers.zip.archive import open_torchzip
from inspector.containers.zip.directory import (
    DEFLATED,
    DESCRIBED,
    DESCRIPTOR,
    REFUSED_FLAGS,
    STORED,
    ZipEntry,
    payload_offsets,
)
from inspector.containers.zip.records import Records
from inspector.errors import ContainerError, TooLargeError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.records import dataclass

_TAIL_NBYTES = 8


_NOTHING = Extent(0, 0, 0, STORED, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extents:
    """A container with the places of its bytes.

    Attributes:
        container: The checkpoint.
        whole: Each storage whose bytes are all there, by key; their contents may still be damaged.
        lost: Why the others are not, by key, in a few words.
        records: The records of a zip that are no storages, by their full name; none of a legacy file.
    """

    container: Container
    whole: dict[str, Extent]
    lost: dict[str, str]
    records: dict[str, Extent]


def read_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    """Take a file apart and find the bytes of each storage."""
    with programs_on_errors(source, limits, progress):
        form = find_format(source, limits, progress)
        read = form.reader_for(source)
        if form.extents is not None:
            return form.extents(source, limits, progress)
        container = read(source, limits, progress)
        packed = any(place.offset is None for place in container.stored.values())
        return plain_extents(
            container, container.stored, form.storage_extents(source) if packed else _nowhere
        )


# --- the containers -------------------------------------------------------------------------------------


def _nowhere(_key: str) -> Extent | None:
    """Find no bytes that are packed, where there are none."""


def plain_extents(
    container: Container,
    stored: Mapping[str, StoredBytes],
    find: Callable[[str], Extent | None] = _nowhere,
) -> Extents:
    """Find the bytes of storages that have no checksum; `find` those that are not stored as they are."""
    whole: dict[str, Extent] = {}
    lost: dict[str, str] = {}
    for key, storage in container.storage_ids.items():
        found = _plain_extent(storage, stored.get(key), find)
        if isinstance(found, str):
            lost[key] = found
        else:
            whole[key] = found
    return Extents(container=container, whole=whole, lost=lost, records={})


def _plain_extent(
    storage: StorageId, place: StoredBytes | None, find: Callable[[str], Extent | None] = _nowhere
) -> Extent | str:
    """Return the extent of a storage without a checksum, or why it has none."""
    if not storage.nbytes:
        return _NOTHING
    if place is None:
        return "its bytes are not in the file"
    if place.nbytes != storage.nbytes:
        return _of_other_size(storage, place.nbytes)
    if place.offset is None:
        return find(storage.key) or "it is compressed, and nothing here inflates it"
    return Extent(place.offset, place.nbytes, place.nbytes, STORED, 0)


def legacy_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    """Find the storages of a legacy file, also within gzip; errors as those of `read_legacy`."""
    container, places = open_legacy(source, limits, progress)
    found = plain_extents(container, places.stored)
    for key in places.before_damage & found.whole.keys():
        if _ends_in_zeros(source, found.whole[key]):
            del found.whole[key]
            found.lost[key] = "zeros stand at its end and behind it, where the next tensor should be"
    return found


def _ends_in_zeros(source: Source, extent: Extent) -> bool:
    """Return whether a hole behind some bytes may begin in them; no checksum tells where it does."""
    nbytes = min(_TAIL_NBYTES, extent.nbytes)
    return not source.read(extent.offset + extent.nbytes - nbytes, nbytes).strip(b"\0")


def zip_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    """Find the storages and other records of a zip; errors as those of `read_torchzip`."""
    container, records = open_torchzip(source, limits, progress)
    return records_extents(source, container, records)


def records_extents(source: Source, container: Container, records: Records) -> Extents:
    """Find the storages and other records of any zip."""
    whole: dict[str, Extent] = {}
    lost: dict[str, str] = {}
    entries = {key: records.storage(key) for key in container.storage_ids}
    offsets = _offsets(source, [entry for entry in entries.values() if entry is not None])
    for key, storage in container.storage_ids.items():
        found = _judge(source, storage, entries[key], offsets)
        if entries[key] is None:  # it stands in a file within one of the records
            found = _plain_extent(storage, container.stored.get(key))
        if isinstance(found, str):
            lost[key] = found
        else:
            whole[key] = found
    mine = {entry.header_offset for entry in entries.values() if entry is not None}
    others = [entry for entry in records.directory.entries if entry.header_offset not in mine]
    return Extents(container=container, whole=whole, lost=lost, records=record_extents(source, others))


def record_extents(source: Source, entries: list[ZipEntry]) -> dict[str, Extent]:
    """Return where the contents of records are, by their full names."""
    offsets = _offsets(source, entries)
    return {
        entry.name: _extent(entry, offset)
        for entry in entries
        if (offset := offsets[entry.header_offset]) is not None
    }


def _offsets(source: Source, entries: list[ZipEntry]) -> dict[int, int | None]:
    """Return where the contents of records start, by where their headers do."""
    entries = sorted(entries, key=lambda entry: entry.header_offset)
    found = payload_offsets(source, [entry.header_offset for entry in entries])
    return {entry.header_offset: offset for entry, offset in zip(entries, found, strict=True)}


def _judge(
    source: Source, storage: StorageId, entry: ZipEntry | None, offsets: dict[int, int | None]
) -> Extent | str:
    """Return the extent of a storage, or why it has none."""
    if not storage.nbytes:
        return _NOTHING
    if entry is None:
        return "its bytes are not in the file"
    offset = offsets[entry.header_offset]
    if offset is None:
        return "the header of its record was overwritten"
    return _fault_of(source, storage, entry, offset) or _extent(entry, offset)


def _fault_of(source: Source, storage: StorageId, entry: ZipEntry, offset: int) -> str | None:
    end = offset + entry.stored_nbytes
    if end > source.nbytes:
        return f"the file ends within it, after {max(source.nbytes - offset, 0):,} of {entry.nbytes:,} bytes"
    if entry.nbytes != storage.nbytes:
        return _of_other_size(storage, entry.nbytes)
    if entry.method not in {STORED, DEFLATED} or entry.flags & REFUSED_FLAGS:
        return "its record is encrypted or packed in a way that torch does not read"
    if entry.flags & DESCRIBED and end + DESCRIPTOR.size > source.nbytes:
        # As long as it should be; but bytes may have been lost in its middle, and what follows moved up.
        return "the file ends before its checksum, so that nothing tells whether its bytes are its own"
    has_two_sizes = entry.method == STORED and entry.nbytes != entry.stored_nbytes
    return "its record has two sizes" if has_two_sizes else None


def _extent(entry: ZipEntry, offset: int) -> Extent:
    return Extent(offset, entry.stored_nbytes, entry.nbytes, entry.method, entry.crc)


def _of_other_size(storage: StorageId, nbytes: int) -> str:
    return f"the file holds {nbytes:,} bytes of it, and it should have {storage.nbytes:,}"


# --- checksums ----------------------------------------------------------------------------------------------


class Sums(NamedTuple):
    """What reading all bytes showed.

    Attributes:
        crcs: CRC-32 of what is whole, by key or name.
        faults: What is wrong with the others, in a few words.
        unchecked: Which of those that are whole the file has no checksum of.
    """

    crcs: dict[str, int]
    faults: dict[str, str]
    unchecked: frozenset[str]


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
