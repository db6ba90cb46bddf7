"""The directory of a zip file: which records there are and where, without reading any of them.

Written out rather than left to `zipfile`, which needs 6 s and 580 MB for a million entries, cannot be
cancelled, and understands damaged archives differently from torch. Layout: PKWARE's APPNOTE.TXT, sections
4.3.7 (local header), 4.3.12 (central directory), 4.3.14-16 (ends), 4.5.3 (Zip64).

torch reads zips with `caffe2/serialize/inline_container.cc` and miniz 3.0.2 below it; the rules here are
those of `mz_zip_reader_read_central_dir`, and the words those of torch 2.13. Other readers have other rules:
Python's zipfile looks for the directory right in front of the end record, whatever offset that tells, and for
the Zip64 record right in front of its locator. Where the rules lead to different places, the difference is
told as a doubt.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple

from inspector.containers.notes import NoteKind
from inspector.containers.source import NearReader, Source
from inspector.errors import ContainerError, DamagedError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.units import cut_text, escape_text


class MinizError(Enum):
    """The texts of `mz_zip_get_error_string`, as far as a file can make torch say them."""

    NO_DIRECTORY = "failed finding central directory"
    NOT_A_ZIP = "not a ZIP archive"
    CORRUPTED = "invalid header or archive is corrupted"
    MULTIDISK = "unsupported multidisk archive"
    ENCRYPTED = "unsupported encryption"
    METHOD = "unsupported method"
    FEATURE = "unsupported feature"
    DIRECTORY_SIZE = "unsupported central directory size"
    NOT_FOUND = "file not found"


NO_VERSION = (
    'RuntimeError: Expected hasRecord("version") to be true, but got false.  (Could this error message be '
    "improved?  If so, please report an enhancement request to PyTorch.)"
)
UNDECODABLE = "UnicodeDecodeError: 'utf-8' codec can't decode byte"
_MOST_NAME = 120
_ADVICE = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your "
    "checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was "
    "transferred incorrectly, or the file was modified after saving."
)


def miniz_words(doing: str, error: MinizError) -> str:
    """Return the message of `PyTorchStreamReader::valid`, with the exception's name."""
    return f"RuntimeError: PytorchStreamReader failed {doing}: {error.value}. {_ADVICE}"


def no_folder_words(name: str, folder: str = "") -> str:
    """Return the message about a record outside of `folder`; without one, about the first record."""
    place = f" {cut_text(escape_text(folder), _MOST_NAME)}" if folder else ""
    shown = cut_text(escape_text(name), _MOST_NAME)
    return f"RuntimeError: file in archive is not in a subdirectory{place}: {shown}"


# --- its end ------------------------------------------------------------------------------------------------


END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR64 = struct.Struct("<4sLQL")
END_SIGNATURE = b"PK\x05\x06"
END64_SIGNATURE, LOCATOR64_SIGNATURE = b"PK\x06\x06", b"PK\x06\x07"
_BLOCK, _STEP = 4096, 4093  # what miniz reads at once, and how far it goes back from one block to the next
_REACH = 0xFFFF + END.size  # how far other readers go back, and miniz at least
_BLOCKS = -(-(_REACH - _BLOCK) // _STEP)
_ZIP64_NBYTES = END64.size + LOCATOR64.size
_MOST_ENDS = 16
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_LEAST_CENTRAL_NBYTES = 46


class DirectoryError(DamagedError):
    """miniz refuses the directory of a zip."""

    def __init__(
        self, what: str, miniz: MinizError, *, where: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.miniz = miniz


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipEnd:
    """What the end of a zip tells."""

    count: int
    nbytes: int
    start: int
    end: int
    disk: int  # the number of the disk; torch reads archives of one disk only, whose number may be 1
    doubts: tuple[NoteKind, ...]  # how other readers may find another directory


class _Figures(NamedTuple):
    """The figures of one end record, in its order."""

    disk: int
    directory_disk: int
    records_here: int
    records: int
    nbytes: int
    start: int


def find_end(source: Source) -> ZipEnd:
    """Find the directory."""
    tail_start = _tail_start(source.nbytes)
    tail = source.read(tail_start, source.nbytes - tail_start)
    at = tail.rfind(END_SIGNATURE, 0, max(len(tail) - END.size + len(END_SIGNATURE), 0))
    if at < 0:
        raise DirectoryError(
            "the zip has no directory: its end is missing",
            MinizError.NO_DIRECTORY,
            where=f"{source.nbytes:,} bytes",
            remedy="the file is incomplete: fetch or copy it again, or save what is whole with recover",
        )
    _, *fields, comment = END.unpack_from(tail, at)
    narrow = _Figures(*fields)
    offset = tail_start + at
    locator = source.read_upto(offset - LOCATOR64.size, LOCATOR64.size) if offset >= LOCATOR64.size else b""
    has_locator = locator.startswith(LOCATOR64_SIGNATURE)
    wide, end64 = None, -1
    if has_locator and offset >= _ZIP64_NBYTES:
        wide, end64 = _read_wide(source, locator)
    figures = wide or narrow
    _check(figures, source.nbytes)
    doubts = set(_doubts_of_place(source.nbytes, tail, tail_start, at))
    if has_locator and (wide is None or end64 != offset - _ZIP64_NBYTES):
        doubts.add(NoteKind.TWO_DIRECTORIES)
    if wide is not None and not _agree(narrow, wide):
        doubts.add(NoteKind.TWO_DIRECTORY_SIZES)
    if figures.start + figures.nbytes != offset - (_ZIP64_NBYTES if wide else 0):
        doubts.add(NoteKind.TWO_DIRECTORIES)
    return ZipEnd(
        count=figures.records,
        nbytes=figures.nbytes,
        start=figures.start,
        end=min(offset + END.size + comment, source.nbytes),
        disk=figures.disk,
        doubts=tuple(kind for kind in NoteKind if kind in doubts),
    )


def directories_elsewhere(source: Source) -> Iterator[tuple[int, int, int]]:
    """Yield where readers may find a directory: (start, bytes, what is added to places in it)."""
    tail_start = max(source.nbytes - _BLOCK - _STEP * _BLOCKS, 0)
    tail = source.read(tail_start, source.nbytes - tail_start)
    at = tail.rfind(END_SIGNATURE)
    for _ in range(_MOST_ENDS):
        if at < 0:
            return
        offset = tail_start + at
        if at + END.size <= len(tail):
            _, _, _, _, _, nbytes, start, _ = END.unpack_from(tail, at)
            yield from _places(offset, start, nbytes)
        locator = source.read_upto(max(offset - LOCATOR64.size, 0), LOCATOR64.size)
        if locator.startswith(LOCATOR64_SIGNATURE):
            for end64 in (LOCATOR64.unpack(locator)[2], max(offset - _ZIP64_NBYTES, 0)):
                data = source.read_upto(end64, END64.size)
                if len(data) == END64.size and data.startswith(END64_SIGNATURE):
                    yield from _places(offset - _ZIP64_NBYTES, *END64.unpack(data)[:-3:-1])
        at = tail.rfind(END_SIGNATURE, 0, at)


def _places(behind: int, start: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
    """Yield the place that an end tells, and the place in front of it."""
    yield start, nbytes, 0
    if start != behind - nbytes >= 0:
        yield behind - nbytes, nbytes, behind - nbytes - start


def _tail_start(nbytes: int) -> int:
    """Return how far miniz goes back: some blocks that overlap by three bytes, and never a part of a block.

    Of a file of more than one block it misses the beginning unless that begins a block: the next step would
    lead in front of the file, and reading there fails.
    """
    if nbytes <= _BLOCK:
        return 0
    return nbytes - _BLOCK - _STEP * min(_BLOCKS, (nbytes - _BLOCK) // _STEP)


def _doubts_of_place(nbytes: int, tail: bytes, tail_start: int, at: int) -> Iterator[NoteKind]:
    """Yield whether readers that weigh end records otherwise may believe in another one."""
    if nbytes - tail_start - at > _REACH:
        yield NoteKind.FAR_END
    chosen_is_last = _reaches_end(tail, at)
    other = tail.find(END_SIGNATURE, 0, at)
    while other >= 0:
        if not chosen_is_last or _reaches_end(tail, other):
            yield NoteKind.TWO_ENDS
            return
        other = tail.find(END_SIGNATURE, other + 1, at)


def _reaches_end(tail: bytes, at: int) -> bool:
    (comment,) = struct.unpack_from("<H", tail, at + END.size - 2)
    return bool(at + END.size + comment == len(tail))


def _read_wide(source: Source, locator: bytes) -> tuple[_Figures | None, int]:
    """Read the Zip64 end where the locator points, and say where; miniz does without if there is none."""
    _, _, offset, disks = LOCATOR64.unpack(locator)
    if offset > source.nbytes - END64.size:
        raise _refused(MinizError.NOT_A_ZIP, "its Zip64 locator points outside the file")
    data = source.read(offset, END64.size)
    if not data.startswith(END64_SIGNATURE):
        return None, offset
    _, own_nbytes, _, _, *fields = END64.unpack(data)
    figures = _Figures(*fields)
    if own_nbytes < END64.size - 12:
        raise _refused(MinizError.CORRUPTED, "its Zip64 end is too short")
    if disks != 1:
        raise _refused(MinizError.MULTIDISK, f"{disks:,} disks")
    if max(figures.records, figures.records_here, figures.nbytes) > _FULL32:
        raise _refused(MinizError.DIRECTORY_SIZE, f"{figures.records:,} records, {figures.nbytes:,} bytes")
    return figures, offset


def _check(figures: _Figures, nbytes: int) -> None:
    if figures.records != figures.records_here:
        raise _refused(MinizError.MULTIDISK, f"{figures.records_here:,} of {figures.records:,} records")
    if (figures.disk, figures.directory_disk) not in {(0, 0), (1, 1)}:
        raise _refused(MinizError.MULTIDISK, f"disk {figures.disk:,}")
    is_small = figures.nbytes < figures.records * _LEAST_CENTRAL_NBYTES
    if is_small or figures.start + figures.nbytes > nbytes:
        where = f"{figures.records:,} records in {figures.nbytes:,} bytes from byte {figures.start:,} on"
        raise _refused(MinizError.CORRUPTED, where)


def _refused(miniz: MinizError, where: str) -> DirectoryError:
    return DirectoryError("the zip directory is damaged", miniz, where=where)


def _agree(narrow: _Figures, wide: _Figures) -> bool:
    """Return whether readers that take a wide figure only in place of a full narrow one find the same."""
    return (
        narrow.records in {_FULL16, wide.records}
        and narrow.nbytes in {_FULL32, wide.nbytes}
        and narrow.start in {_FULL32, wide.start}
    )


# --- its entries --------------------------------------------------------------------------------------------


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
    """One record, as the central directory tells it."""

    name: str  # its full name; bytes that are not UTF-8 become lone surrogates
    header_offset: int  # where its local header starts in the file
    nbytes: int
    stored_nbytes: int
    method: int
    crc: int  # CRC-32 of its contents; torch may leave it 0
    flags: int
    central_offset: int  # where its central header starts in the file
    trouble: Trouble = Trouble.NONE  # what torch's reader makes of it where its entry is odd


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipDirectory:
    """The central directory."""

    entries: Sequence[ZipEntry]
    start: int
    end: int  # where the archive ends in the file (behind the comment)
    doubts: tuple[NoteKind, ...] = ()  # how other readers may find other records


def read_directory(source: Source, limits: Limits, progress: Progress | None = None) -> ZipDirectory:
    """Read a zip's central directory, as miniz reads it."""
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
    pass


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
