"""Where the directory of a zip is: its end record, and that of Zip64, found as miniz finds them.

miniz is what torch reads zips with; the rules are those of `mz_zip_reader_read_central_dir`. Other readers
have other rules: Python's zipfile looks for the directory right in front of the end record, whatever offset
that tells, and for the Zip64 record right in front of its locator. Where the rules lead to different places,
the difference is told as a doubt.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from inspector.containers.notes import NoteKind
from inspector.containers.source import Source
from inspector.containers.zip.torch_words import MinizError
from inspector.errors import DamagedError
from inspector.records import dataclass

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
    """miniz refuses the directory of a zip.

    Attributes:
        miniz: What it says.
    """

    def __init__(
        self, what: str, miniz: MinizError, *, where: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.miniz = miniz


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipEnd:
    """What the end of a zip tells.

    Attributes:
        count: Number of records.
        nbytes: Size of the directory.
        start: Where it starts in the file.
        end: Where the archive ends in the file, behind the comment.
        disk: The number of the disk; torch reads archives of one disk only, whose number may be 1.
        doubts: How other readers may find another directory.
    """

    count: int
    nbytes: int
    start: int
    end: int
    disk: int
    doubts: tuple[NoteKind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """The figures of one end record."""

    disk: int
    directory_disk: int
    count_here: int
    count: int
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
    _, disk, directory_disk, count_here, count, nbytes, start, comment = END.unpack_from(tail, at)
    narrow = _Figures(
        disk=disk,
        directory_disk=directory_disk,
        count_here=count_here,
        count=count,
        nbytes=nbytes,
        start=start,
    )
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
        count=figures.count,
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
    """Return whether the comment of an end record ends where the file does."""
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
    _, own_nbytes, _, _, disk, directory_disk, count_here, count, nbytes, start = END64.unpack(data)
    if own_nbytes < END64.size - 12:
        raise _refused(MinizError.CORRUPTED, "its Zip64 end is too short")
    if disks != 1:
        raise _refused(MinizError.MULTIDISK, f"{disks:,} disks")
    if max(count, count_here, nbytes) > _FULL32:
        raise _refused(MinizError.DIRECTORY_SIZE, f"{count:,} records, {nbytes:,} bytes")
    figures = _Figures(
        disk=disk,
        directory_disk=directory_disk,
        count_here=count_here,
        count=count,
        nbytes=nbytes,
        start=start,
    )
    return figures, offset


def _check(figures: _Figures, nbytes: int) -> None:
    """Refuse what miniz refuses."""
    if figures.count != figures.count_here:
        raise _refused(MinizError.MULTIDISK, f"{figures.count_here:,} of {figures.count:,} records")
    if (figures.disk, figures.directory_disk) not in {(0, 0), (1, 1)}:
        raise _refused(MinizError.MULTIDISK, f"disk {figures.disk:,}")
    is_small = figures.nbytes < figures.count * _LEAST_CENTRAL_NBYTES
    if is_small or figures.start + figures.nbytes > nbytes:
        where = f"{figures.count:,} records in {figures.nbytes:,} bytes from byte {figures.start:,} on"
        raise _refused(MinizError.CORRUPTED, where)


def _refused(miniz: MinizError, where: str) -> DirectoryError:
    return DirectoryError("the zip directory is damaged", miniz, where=where)


def _agree(narrow: _Figures, wide: _Figures) -> bool:
    """Return whether readers that take a wide figure only in place of a full narrow one find the same."""
    return (
        narrow.count in {_FULL16, wide.count}
        and narrow.nbytes in {_FULL32, wide.nbytes}
        and narrow.start in {_FULL32, wide.start}
    )
