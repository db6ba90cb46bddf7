"""Which bytes of a file have to change for its pickle to say something else, and at what places.

A zip takes a pickle that is no longer than the old one at its place, with zeros behind: torch stops reading
at STOP. A longer one is appended as a record of its own, with a directory behind it that names it instead of
the old one; nothing that was there moves, so storages lie where every reader expects them. In a legacy file
the storages follow the pickle at once, so it must keep its length to the byte.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from inspector.containers.source import Source
from inspector.containers.zip.directory import (
    CENTRAL,
    DESCRIBED,
    DESCRIPTOR_SIGNATURE,
    END,
    END_SIGNATURE,
    STORED,
    ZipEntry,
    payload_offset,
)
from inspector.containers.zip.records import Records, read_zip_record
from inspector.errors import ExportError
from inspector.remap.archive.zip_layout import DEFAULT_ALIGNMENT, lay_out_behind, plain_record

_LOCAL_CRC, _CENTRAL_CRC = 14, 16  # where the CRC stands in the two headers
_CENTRAL_LENGTHS = struct.Struct("<28x3H")  # of name, extra field and comment
_MOST_ALIGNMENT = 1 << 20
_COPY = "write a copy instead, with -o"


class Patch(NamedTuple):
    """Bytes that stand at a place of the file, over what was there or behind its end."""

    offset: int
    data: bytes


def fits(entry: ZipEntry, pickle: bytes) -> bool:
    """Return whether a pickle can stand where the old one does."""
    return entry.method == STORED and len(pickle) <= entry.nbytes


def zip_pieces(source: Source, entry: ZipEntry, pickle: bytes) -> tuple[Patch, ...]:
    """Return what changes where a pickle that fits takes the old one's place: it, and its checksums."""
    start = payload_offset(source, entry)
    new = pickle + bytes(entry.nbytes - len(pickle))
    crc = struct.pack("<L", zlib.crc32(new) if entry.crc else 0)
    pieces = [Patch(start, new), Patch(entry.central_offset + _CENTRAL_CRC, crc)]
    descriptor = start + entry.stored_nbytes
    if not entry.flags & DESCRIBED:
        pieces.append(Patch(entry.header_offset + _LOCAL_CRC, crc))
    elif source.read_upto(descriptor, 4) == DESCRIPTOR_SIGNATURE:
        pieces.append(Patch(descriptor + 4, crc))
    return tuple(pieces)


def appended_piece(source: Source, records: Records, entry: ZipEntry, pickle: bytes) -> Patch:
    """Return what is appended where a pickle is too long for its place."""
    directory = records.directory
    end = source.read_upto(directory.end - END.size, END.size)
    if directory.end != source.nbytes or not end.startswith(END_SIGNATURE):
        raise ExportError("there are bytes after the end of the zip", where=source.path, remedy=_COPY)
    record = plain_record(entry.name, pickle, has_crc=bool(entry.crc))
    made = lay_out_behind(
        source.nbytes,
        record,
        pickle,
        _central_around(source, records, entry),
        count=len(directory.entries),
        alignment=storage_alignment(source, records),
    )
    return Patch(source.nbytes, made)


def refuse_doubles(source: Source, records: Records, entry: ZipEntry) -> None:
    """Refuse an archive in which torch, to which case is nothing, may read another pickle than we do."""
    name = entry.name.lower()
    if sum(other.name.lower() == name for other in records.directory.entries) > 1:
        raise ExportError(f"several records are named {entry.name}", where=source.path)


def storage_alignment(source: Source, records: Records) -> int:
    """Return the bytes that contents are aligned to in an archive."""
    entry = records.get(".storage_alignment")
    if entry is None or entry.nbytes > 16:
        return DEFAULT_ALIGNMENT
    text = read_zip_record(source, entry, 16).strip()
    return int(text) if text.isdigit() and 0 < int(text) <= _MOST_ALIGNMENT else DEFAULT_ALIGNMENT


def _central_around(source: Source, records: Records, entry: ZipEntry) -> tuple[bytes, bytes]:
    """Return the directory's bytes before a record's header and behind it."""
    directory = records.directory
    own_end = _central_end(source, entry)
    last_end = _central_end(source, directory.entries[-1])
    start = directory.start
    return source.read(start, entry.central_offset - start), source.read(own_end, last_end - own_end)


def _central_end(source: Source, entry: ZipEntry) -> int:
    header = source.read(entry.central_offset, CENTRAL.size)
    name, extra, comment = _CENTRAL_LENGTHS.unpack_from(header)
    return entry.central_offset + CENTRAL.size + int(name) + int(extra) + int(comment)
