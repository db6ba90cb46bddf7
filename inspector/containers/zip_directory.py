"""The directory of a zip file: which records there are and where, without reading any of them.

Written out rather than left to `zipfile`, which needs 6 s and 580 MB for a million entries, cannot be
cancelled, and understands damaged archives differently from torch. Layout: PKWARE's APPNOTE.TXT, sections
4.3.7 (local header), 4.3.12 (central directory), 4.3.14-16 (ends), 4.5.3 (Zip64).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from inspector.containers.source import NearReader, Source
from inspector.errors import ContainerError, DamagedError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.units import cut_text, escape_text

LOCAL = struct.Struct("<4s5H3L2H")  # signature, version, flags, method, time, date, crc, sizes, name, extra
CENTRAL = struct.Struct("<4s6H3L5H2L")
DESCRIPTOR = struct.Struct("<4s3L")  # signature, crc, size in the file, inflated size
DESCRIPTOR64 = struct.Struct("<4sL2Q")
END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR64 = struct.Struct("<4sLQL")
LOCAL_SIGNATURE, CENTRAL_SIGNATURE, END_SIGNATURE = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
END64_SIGNATURE, LOCATOR64_SIGNATURE = b"PK\x06\x06", b"PK\x06\x07"
DESCRIPTOR_SIGNATURE = b"PK\x07\x08"
STORED, DEFLATED = 0, 8
DESCRIBED = 0x0008  # its sizes and checksum stand in a descriptor behind its contents
REFUSED_FLAGS = 0x2061  # encrypted, patched or masked: torch refuses them all
NO_END = "the zip has no directory: its end is missing"
_MOST_COMMENT_NBYTES = 0xFFFF
_ASK_EACH = 8192
_MOST_NAME = 120

# Those fields of the two headers that are used, in one step each.
_CENTRAL_FIELDS = struct.Struct("<4s4x2H4x3L3H8xL")
_LOCAL_FIELDS = struct.Struct("<4s22x2H")
_ELSEWHERE = 0xFFFFFFFF  # the true figure stands in the Zip64 extra field


class Entry(NamedTuple):
    """One record, as the central directory tells it.

    Attributes:
        name: Its full name; bytes that are not UTF-8 become lone surrogates.
        header_offset: Where its local header starts in the file.
        nbytes: Its size once inflated.
        stored_nbytes: Its size in the file.
        method: 0 stored, 8 deflated.
        crc: CRC-32 of its contents; torch may leave it 0.
        flags: General purpose bits.
        central_offset: Where its central header starts in the file.
    """

    name: str
    header_offset: int
    nbytes: int
    stored_nbytes: int
    method: int
    crc: int
    flags: int
    central_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipDirectory:
    """The central directory.

    Attributes:
        entries: All records in the order of the directory.
        start: Where the directory starts in the file.
        end: Where the archive ends in the file (behind the comment).
    """

    entries: tuple[Entry, ...]
    start: int
    end: int


def read_directory(source: Source, limits: Limits, progress: Progress | None = None) -> ZipDirectory:
    """Read a zip's central directory.

    Raises:
        DamagedError: There is none, or it is damaged.
        ContainerError: It is larger than the limits allow.
        CancelledError: The work was cancelled.
    """
    count, nbytes, start, end = _find_end(source)
    if count > limits.records or nbytes > limits.directory_nbytes:
        raise ContainerError(f"the zip directory is too large: {count:,} records, {nbytes:,} bytes")
    data = source.read(start, nbytes)
    entries: list[Entry] = []
    pos = 0
    while len(entries) < count:
        if progress is not None:
            progress.advance(0)
        pos = _parse_entries(data, pos, start, entries, min(count - len(entries), _ASK_EACH))
    return ZipDirectory(entries=tuple(entries), start=start, end=end)


def payload_offsets(source: Source, entries: Iterable[Entry]) -> Iterator[int | None]:
    """Give the offset of each record's first payload byte, or None where its local header is missing.

    Cheapest when the entries come in the order of their headers.

    Raises:
        ContainerError: The file cannot be read.
    """
    near = NearReader(source)
    for entry in entries:
        offset = entry.header_offset
        at = near.seek(offset, LOCAL.size)
        try:
            signature, name_nbytes, extra_nbytes = _LOCAL_FIELDS.unpack_from(near.window, at)
        except struct.error:  # the file ends before
            yield None
            continue
        yield offset + LOCAL.size + name_nbytes + extra_nbytes if signature == LOCAL_SIGNATURE else None


def place_of(entry: Entry) -> str:
    """Name a record in an error; names come from files nobody vouches for."""
    return f"record {cut_text(escape_text(entry.name), _MOST_NAME)}"


def payload_offset(source: Source, entry: Entry) -> int:
    """Give the offset of a record's first payload byte, behind its local header.

    Raises:
        DamagedError: There is no local header where the directory says.
    """
    offset = next(payload_offsets(source, [entry]))
    if offset is None:
        raise DamagedError("a zip record is not where the directory says", where=place_of(entry))
    return offset


def read_record(source: Source, entry: Entry, most_nbytes: int) -> bytes:
    """Read one record, inflated; at most `most_nbytes` bytes whatever the directory claims.

    Raises:
        ContainerError: It is too large, compressed in an unknown way, or damaged.
    """
    where = place_of(entry)
    if max(entry.nbytes, entry.stored_nbytes) > most_nbytes:
        raise ContainerError(f"a zip record is larger than {most_nbytes:,} bytes", where=where)
    if entry.flags & REFUSED_FLAGS:
        raise ContainerError("a zip record is encrypted", where=where)
    raw = source.read(payload_offset(source, entry), entry.stored_nbytes)
    data = raw if entry.method == STORED else _inflate(raw, entry, where)
    if len(data) != entry.nbytes:
        raise ContainerError("a zip record is not as long as the directory says", where=where)
    return data


def _inflate(raw: bytes, entry: Entry, where: str) -> bytes:
    if entry.method != DEFLATED:
        raise ContainerError(f"compression method {entry.method} is not supported", where=where)
    try:
        # One byte more than declared is enough to see that the declaration is wrong.
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, entry.nbytes + 1)
    except zlib.error as error:
        raise ContainerError("a compressed zip record is damaged", where=f"{where}: {error}") from error


def _find_end(source: Source) -> tuple[int, int, int, int]:
    """Find the directory: (records, bytes, offset, end of the archive)."""
    tail_start = max(source.nbytes - END.size - _MOST_COMMENT_NBYTES, 0)
    tail = source.read(tail_start, source.nbytes - tail_start)
    at = tail.rfind(END_SIGNATURE, 0, max(len(tail) - END.size + len(END_SIGNATURE), 0))
    if at < 0:
        raise DamagedError(
            NO_END,
            where=f"{source.nbytes:,} bytes",
            remedy="the file is incomplete: fetch or copy it again, or save what is whole with recover",
        )
    _, _, _, _, count, nbytes, start, comment = END.unpack_from(tail, at)
    offset = tail_start + at
    end = min(offset + END.size + comment, source.nbytes)
    if offset >= LOCATOR64.size:
        signature, _, end64, _ = LOCATOR64.unpack(source.read(offset - LOCATOR64.size, LOCATOR64.size))
        if signature == LOCATOR64_SIGNATURE:
            count, nbytes, start = _read_end64(source, end64) or (count, nbytes, start)
    return count, nbytes, start, end


def _read_end64(source: Source, offset: int) -> tuple[int, int, int] | None:
    """Read (records, bytes, offset) where the locator points; torch does without if there is no end."""
    data = source.read_upto(offset, END64.size)
    if len(data) < END64.size or not data.startswith(END64_SIGNATURE):
        return None
    fields = END64.unpack(data)
    return fields[7], fields[8], fields[9]


def _parse_entries(data: bytes, pos: int, start: int, entries: list[Entry], count: int) -> int:
    """Read the next entries and give the place behind them: one loop, since there may be a million."""
    unpack, fixed_nbytes, new = _CENTRAL_FIELDS.unpack_from, CENTRAL.size, tuple.__new__
    for _ in range(count):
        try:
            fields = unpack(data, pos)
        except struct.error:
            raise DamagedError("the zip directory breaks off", where=f"byte {start + pos:,}") from None
        signature, flags, method, crc, packed, nbytes, name_n, extra_n, comment_n, offset = fields
        if signature != CENTRAL_SIGNATURE:
            raise DamagedError("the zip directory is damaged", where=f"byte {start + pos:,}")
        name_at = pos + fixed_nbytes
        extra_at = name_at + name_n
        end = extra_at + extra_n + comment_n
        if end > len(data):
            raise DamagedError("the zip directory breaks off", where=f"byte {start + pos:,}")
        if _ELSEWHERE in (packed, nbytes, offset):
            extra = data[extra_at : extra_at + extra_n]
            nbytes, packed, offset = apply_zip64(extra, nbytes, packed, offset)
        name = data[name_at:extra_at].decode("utf-8", "surrogateescape")
        # Entry(...) would take thrice as long.
        entries.append(new(Entry, (name, offset, nbytes, packed, method, crc, flags, start + pos)))
        pos = end
    return pos


def apply_zip64(extra: bytes, nbytes: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Replace the sizes that read 0xFFFFFFFF by those of the Zip64 extra field, which come in this order."""
    values = _zip64_values(extra)
    fixed = [next(values, value) if value == _ELSEWHERE else value for value in (nbytes, packed, offset)]
    return fixed[0], fixed[1], fixed[2]


def _zip64_values(extra: bytes) -> Iterator[int]:
    pos = 0
    while pos + 4 <= len(extra):
        tag, size = struct.unpack_from("<2H", extra, pos)
        if tag == 1:
            whole = extra[pos + 4 : pos + 4 + size]
            return iter(struct.unpack_from(f"<{len(whole) // 8}Q", whole))
        pos += 4 + size
    return iter(())
