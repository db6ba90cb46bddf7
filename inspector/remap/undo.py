"""The undo record: what stood in a file before it was patched, kept beside it as long as it is wanted.

It is complete on the disk before the first byte of the file changes. So whatever happens then (a crash, a
power cut), each byte of the file is the old one or the new one, and the record says which places are meant;
bytes that are neither were written by somebody else, and then nothing is restored over them.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from inspector.containers.source import Source
from inspector.errors import CheckpointError, ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.records import dataclass
from inspector.remap.copying import write_over
from inspector.remap.patches import Piece

SUFFIX = ".undo"
_MAGIC = b"checkpoint-inspector undo record 1\n"
_MOST_HEADER_NBYTES = 64 << 20  # a tar file has a piece for each storage
_MOST_NBYTES = 3 * DEFAULT_LIMITS.pickle_nbytes
_WITNESS_NBYTES = 1 << 16
_PAGE_NBYTES = 1 << 12
_REMEDY = "if the file is as it should be, delete the record"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRecord:
    """What a patch replaces.

    Attributes:
        nbytes: The file's size before.
        nbytes_after: Its size when the patch is complete.
        mtime_ns: When the file had been changed last, in nanoseconds.
        witness: A hash of the file's beginning and end as they were, by which the file is known again.
        before: The bytes that are written over.
        after: What they are written over with.
    """

    nbytes: int
    nbytes_after: int
    mtime_ns: int
    witness: str
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


def record_path(path: Path) -> Path:
    """Give where the undo record of a file stands: beside it, and beside its target if it is a link."""
    path = path.resolve()
    return path.with_name(path.name + SUFFIX)


def patched_path(record_at: Path) -> Path:
    """Give the file that a record stands beside."""
    return record_at.with_name(record_at.name.removesuffix(SUFFIX))


def make_record(source: Source, pieces: tuple[Piece, ...], mtime_ns: int) -> UndoRecord:
    """Note what stands where pieces are to be written.

    Raises:
        ContainerError: The file cannot be read.
    """
    over = tuple(piece for piece in pieces if piece.offset < source.nbytes)
    before = tuple(Piece(piece.offset, source.read(piece.offset, len(piece.data))) for piece in over)
    ends = [piece.offset + len(piece.data) for piece in pieces]
    return UndoRecord(
        nbytes=source.nbytes,
        nbytes_after=max(source.nbytes, *ends),
        mtime_ns=mtime_ns,
        witness=_witness(source, source.nbytes, before),
        before=before,
        after=over,
    )


def format_record(record: UndoRecord) -> bytes:
    """Give a record's bytes: a line of magic, a line of JSON, the old bytes, the new ones."""
    body = b"".join(piece.data for piece in record.before + record.after)
    header = {
        "nbytes": record.nbytes,
        "nbytes_after": record.nbytes_after,
        "mtime_ns": record.mtime_ns,
        "witness": record.witness,
        "pieces": [[piece.offset, len(piece.data)] for piece in record.before],
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return _MAGIC + json.dumps(header).encode() + b"\n" + body


def read_record(path: Path) -> UndoRecord:
    """Read an undo record.

    Raises:
        ExportError: There is none, or it is damaged.
    """
    try:
        with Source(str(path)) as source:
            data = source.read(0, min(source.nbytes, _MOST_NBYTES))
    except CheckpointError as error:
        raise ExportError(f"no undo record can be read: {error.what}", where=str(path)) from error
    try:
        return _parse(data)
    except (ValueError, KeyError, TypeError) as error:
        raise ExportError("the undo record is damaged", where=str(path), remedy=_REMEDY) from error


def _parse(data: bytes) -> UndoRecord:
    if not data.startswith(_MAGIC):
        raise ValueError("no magic")
    line_end = data.index(b"\n", len(_MAGIC), len(_MAGIC) + _MOST_HEADER_NBYTES)
    header, body = json.loads(data[len(_MAGIC) : line_end]), data[line_end + 1 :]
    spans = [(int(offset), int(nbytes)) for offset, nbytes in header["pieces"]]
    half = sum(nbytes for _, nbytes in spans)
    if len(body) != 2 * half or hashlib.sha256(body).hexdigest() != header["sha256"]:
        raise ValueError("not the bytes that were written")
    record = UndoRecord(
        nbytes=int(header["nbytes"]),
        nbytes_after=int(header["nbytes_after"]),
        mtime_ns=int(header["mtime_ns"]),
        witness=str(header["witness"]),
        before=_split(body[:half], spans),
        after=_split(body[half:], spans),
    )
    if any(offset < 0 or nbytes < 0 or offset + nbytes > record.nbytes for offset, nbytes in spans):
        raise ValueError("it points outside the file")
    return record


def _split(data: bytes, spans: list[tuple[int, int]]) -> tuple[Piece, ...]:
    pieces, pos = [], 0
    for offset, nbytes in spans:
        pieces.append(Piece(offset, data[pos : pos + nbytes]))
        pos += nbytes
    return tuple(pieces)


def refuse_stranger(source: Source, record: UndoRecord) -> None:
    """Refuse to restore a file that is not the one patched, or that was changed by somebody since.

    Raises:
        ExportError: It is such a file.
        ContainerError: It cannot be read.
    """
    known = record.nbytes <= source.nbytes <= record.nbytes_after
    if not known or _witness(source, record.nbytes, record.before) != record.witness:
        raise ExportError(
            "the undo record belongs to another file, or this one was changed since",
            where=source.path,
            remedy=_REMEDY,
        )
    for before, after in zip(record.before, record.after, strict=True):
        now = source.read(before.offset, len(before.data))
        if not _is_mixture(now, before.data, after.data):
            raise ExportError("the file was changed since it was patched", where=source.path, remedy=_REMEDY)


def _is_mixture(now: bytes, before: bytes, after: bytes) -> bool:
    """Say whether each byte is the old or the new one: a write that broke off leaves both."""
    for start in range(0, len(now), _PAGE_NBYTES):
        page, old, new = (data[start : start + _PAGE_NBYTES] for data in (now, before, after))
        if page in {old, new}:
            continue
        if any(byte not in either for byte, *either in zip(page, old, new, strict=True)):
            return False
    return True


def restore(fd: int, record: UndoRecord) -> None:
    """Put the old bytes back where they stood, and wait until the disk has them.

    Raises:
        OSError: The file does not take them.
    """
    for piece in record.before:
        write_over(fd, piece.offset, piece.data)
    os.ftruncate(fd, record.nbytes)
    os.fsync(fd)


def _witness(source: Source, nbytes: int, before: tuple[Piece, ...]) -> str:
    """Hash the first and last bytes of a file of this size, with those before the patch."""
    found = hashlib.sha256()
    for start in (0, max(nbytes - _WITNESS_NBYTES, 0)):
        data = bytearray(source.read(start, min(_WITNESS_NBYTES, nbytes - start)))
        for piece in before:
            low, high = max(piece.offset, start), min(piece.offset + len(piece.data), start + len(data))
            if low < high:
                data[low - start : high - start] = piece.data[low - piece.offset : high - piece.offset]
        found.update(data)
    return found.hexdigest()
