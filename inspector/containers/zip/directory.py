"""The directory of a zip file: which records there are and where, without reading any of them.

Written out rather than left to `zipfile`, which needs 6 s and 580 MB for a million entries, cannot be
cancelled, and understands damaged archives differently from torch. Layout: PKWARE's APPNOTE.TXT, sections
4.3.7 (local header), 4.3.12 (central directory), 4.3.14-16 (ends), 4.5.3 (Zip64).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from inspector.containers.notes import NoteKind
from inspector.containers.raw.near import NearReader
from inspector.containers.source import Source
from inspector.containers.zip.end import DirectoryError, ZipEnd, find_end
from inspector.containers.zip.torch_words import MinizError
from inspector.errors import ContainerError, DamagedError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.units import cut_text, escape_text

LOCAL = struct.Struct("<4s5H3L2H")  # signature, version, flags, method, time, date, crc, sizes, name, extra
CENTRAL = struct.Struct("<4s6H3L5H2L")
DESCRIPTOR = struct.Struct("<4s3L")  # signature, crc, size in the file, inflated size
DESCRIPTOR64 = struct.Struct("<4sL2Q")
LOCAL_SIGNATURE, CENTRAL_SIGNATURE = b"PK\x03\x04", b"PK\x01\x02"
DESCRIPTOR_SIGNATURE = b"PK\x07\x08"
STORED, DEFLATED = 0, 8
DESCRIBED = 0x0008  # its sizes and checksum stand in a descriptor behind its contents
REFUSED_FLAGS = 0x2061  # encrypted, patched or masked: torch refuses them all
_ASK_EACH = 8192
_MOST_NAME = 120

# Those fields of the two headers that are used, in one step each; the method is read with the time behind it.
_CENTRAL_FIELDS = struct.Struct("<4s4xHL2x3L4H2x2L")
_LOCAL_FIELDS = struct.Struct("<4s22x2H")
_ELSEWHERE = 0xFFFFFFFF  # the true figure stands in the Zip64 extra field
MASKED = 0x2000
FOLDER = 0x10
"""The attribute by which DOS tells a folder."""
_WRAPPED = (1 << 64) - 1
_METHOD = 0xFFFF
_SLASH = 0x2F


class Trouble(IntEnum):
    """What torch's reader makes of a record with an odd entry in the directory."""

    NONE = 0
    UNWRITTEN = 1
    """It takes the record for a folder or for empty, and hands out memory that nothing was written to."""
    ZIP64 = 2
    """It refuses it."""


class ZipEntry(NamedTuple):
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
        trouble: What torch's reader makes of it where its entry is odd.
    """

    name: str
    header_offset: int
    nbytes: int
    stored_nbytes: int
    method: int
    crc: int
    flags: int
    central_offset: int
    trouble: Trouble = Trouble.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipDirectory:
    """The central directory.

    Attributes:
        entries: All records in the order of the directory.
        start: Where the directory starts in the file.
        end: Where the archive ends in the file (behind the comment).
        doubts: How other readers may find other records.
    """

    entries: Sequence[ZipEntry]
    start: int
    end: int
    doubts: tuple[NoteKind, ...] = ()


def read_directory(source: Source, limits: Limits, progress: Progress | None = None) -> ZipDirectory:
    """Read a zip's central directory, as miniz reads it.

    Args:
        source: The zip.
        limits: The bounds of reading.
        progress: Asked for cancellation.
    """
    end = find_end(source)
    if end.count > limits.records or end.nbytes > limits.directory_nbytes:
        advice = f"at most {limits.storages:,} tensors of a zip are read: save several, or use safetensors"
        raise ContainerError(
            f"the zip directory is too large: {end.count:,} records, {end.nbytes:,} bytes",
            remedy=advice if end.count > limits.records else None,
        )
    data = source.read(end.start, end.nbytes)
    entries: list[ZipEntry] = []
    advance = progress.advance if progress is not None else _go_on
    pos = 0
    while len(entries) < end.count:
        advance(0)
        left = end.count - len(entries)
        pos = _parse_entries(source.nbytes, data, pos, end, entries, min(left, _ASK_EACH))
    doubts = end.doubts if pos == len(data) else (*end.doubts, NoteKind.MORE_RECORDS)
    return ZipDirectory(entries=tuple(entries), start=end.start, end=end.end, doubts=doubts)


def payload_offsets(source: Source, headers: Iterable[int]) -> Iterator[int | None]:
    """Yield the offset of each record's first payload byte, or None where its local header is missing.

    Cheapest when the places of the headers come in their order.
    """
    near, window, start = NearReader(source), b"", 0
    unpack, fixed_nbytes = _LOCAL_FIELDS.unpack_from, LOCAL.size
    for offset in headers:
        at = offset - start
        if not 0 <= at <= len(window) - fixed_nbytes:
            at = near.seek(offset, fixed_nbytes)
            window, start = near.window, offset - at
        try:
            signature, name_nbytes, extra_nbytes = unpack(window, at)
        except struct.error:  # the file ends before
            yield None
            continue
        yield offset + fixed_nbytes + name_nbytes + extra_nbytes if signature == LOCAL_SIGNATURE else None


def place_of(entry: ZipEntry) -> str:
    """Name a record in an error; names come from files nobody vouches for."""
    return f"record {cut_text(escape_text(entry.name), _MOST_NAME)}"


def payload_offset(source: Source, entry: ZipEntry) -> int:
    """Return the offset of a record's first payload byte, behind its local header."""
    offset = next(payload_offsets(source, [entry.header_offset]))
    if offset is None:
        raise DamagedError("a zip record is not where the directory says", where=place_of(entry))
    return offset


def _parse_entries(  # noqa: PLR0917 - what one loop needs
    file_nbytes: int, data: bytes, pos: int, end: ZipEnd, entries: list[ZipEntry], count: int
) -> int:
    """Read the next entries and return the place behind them: one loop, since there may be a million."""
    unpack, fixed_nbytes = _CENTRAL_FIELDS.unpack_from, CENTRAL.size
    most, start, disk_of_end = len(data) - fixed_nbytes, end.start, end.disk
    for _ in range(count):
        if pos > most:
            raise _broken("the zip directory breaks off", start + pos)
        fields = unpack(data, pos)
        signature, flags, method, crc, packed, nbytes, name_n, extra_n, comment_n, disk, attributes, at = (
            fields
        )
        if signature != CENTRAL_SIGNATURE:
            raise _broken("the zip directory is damaged", start + pos)
        name_at = pos + fixed_nbytes
        extra_at = name_at + name_n
        behind = extra_at + extra_n + comment_n
        if behind > most + fixed_nbytes:
            raise _broken("the zip directory breaks off", start + pos)
        trouble = Trouble.NONE
        is_odd = packed != nbytes or disk != disk_of_end or attributes & FOLDER or flags & MASKED
        is_odd = is_odd or _ELSEWHERE in (packed, at) or data[extra_at - 1] == _SLASH
        if is_odd or at + packed + LOCAL.size > file_nbytes:
            head = _Head(start + pos, flags, method, packed, nbytes, disk, attributes, at)
            extra = data[extra_at : extra_at + extra_n]
            nbytes, packed, at, trouble = _judge(
                head, data[name_at:extra_at], extra, file_nbytes, disk_of_end
            )
        name = data[name_at:extra_at].decode("utf-8", "surrogateescape")
        entries.append(ZipEntry(name, at, nbytes, packed, method & _METHOD, crc, flags, start + pos, trouble))
        pos = behind
    return pos


def _go_on(_: int) -> None:
    """Ask nobody."""


class _Head(NamedTuple):
    """The fields of an entry in the directory that make it odd; the method has the time of day above it."""

    place: int
    flags: int
    method: int
    packed: int
    nbytes: int
    disk: int
    attributes: int
    offset: int


def _judge(
    head: _Head, name: bytes, extra: bytes, file_nbytes: int, disk_of_end: int
) -> tuple[int, int, int, Trouble]:
    """Return the sizes and the place of an odd record, and what torch's reader makes of it."""
    place = head.place
    nbytes, packed, offset, trouble = _wide_figures(extra, head)
    is_told = _ELSEWHERE not in {packed, nbytes}
    # miniz asks for equal sizes where method and time are both 0, which it reads as one number.
    if is_told and packed != nbytes and not (head.method and packed):
        raise _broken("the zip directory is damaged", place)
    if head.disk not in {disk_of_end, 1}:
        raise _broken("the zip directory is damaged", place, MinizError.MULTIDISK)
    if packed != _ELSEWHERE and (offset + LOCAL.size + packed) & _WRAPPED > file_nbytes:
        raise _broken("the zip directory is damaged", place)
    if head.flags & MASKED:
        raise _broken("the zip directory is encrypted", place, MinizError.ENCRYPTED)
    if head.attributes & FOLDER or (nbytes and not packed) or name.endswith(b"/"):
        trouble = trouble or Trouble.UNWRITTEN
    return nbytes, packed, offset, trouble


def _broken(what: str, place: int, miniz: MinizError = MinizError.CORRUPTED) -> DirectoryError:
    return DirectoryError(what, miniz, where=f"byte {place:,}")


def _wide_figures(extra: bytes, head: _Head) -> tuple[int, int, int, Trouble]:
    """Replace the figures that read 0xFFFFFFFF by those of the Zip64 extra field, which come in this order.

    Where the field is too short, miniz goes on with what follows it, and refuses the record later.
    """
    figures = (head.nbytes, head.packed, head.offset)
    wanted = figures.count(_ELSEWHERE)
    if not (wanted and extra):
        return *figures, Trouble.NONE
    pos, own = 0, -1
    while own < 0 and pos < len(extra):
        tag, size = struct.unpack_from("<2H", extra, pos) if pos + 4 <= len(extra) else (0, len(extra))
        pos += 4
        if pos + size > len(extra):
            raise _broken("the zip directory is damaged", head.place)
        if tag == 1:
            own = size
        else:
            pos += size
    if own < 0:
        return *figures, Trouble.NONE
    rest = extra[pos:]
    values = iter(struct.unpack_from(f"<{len(rest) // 8}Q", rest))
    nbytes, packed, offset = [next(values, value) if value == _ELSEWHERE else value for value in figures]
    return nbytes, packed, offset, Trouble.NONE if own >= 8 * wanted else Trouble.ZIP64
