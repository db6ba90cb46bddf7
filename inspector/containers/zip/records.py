"""The contents of one record of a zip, as torch's reader hands them out.

miniz checks less than other readers do: no checksum (torch builds it so), not whether a packed record is
whole, and of a stored record not always whether its two sizes are one. Where it hands out bytes that others
refuse, or would not hand out twice, that is told as a doubt: what torch does cannot be told then.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from inspector.containers.notes import Note, NoteKind
from inspector.containers.source import Source
from inspector.containers.zip.directory import DEFLATED, STORED, Trouble, ZipEntry, payload_offset, place_of
from inspector.containers.zip.torch_words import MinizError
from inspector.errors import ContainerError

_ENCRYPTED, _PATCHED = 0x41, 0x20
_STEPS = (1 << 16, 1 << 8, 1)


class RecordContents(NamedTuple):
    """What was read of a record.

    Attributes:
        data: Its contents, inflated.
        doubt: Why other readers, or torch another time, may read other contents; None where all read these.
    """

    data: bytes
    doubt: NoteKind | None = None


def refused(entry: ZipEntry) -> MinizError | None:
    """Return why torch refuses a record before it reads any of it, as miniz tells it; None if it takes it."""
    if entry.trouble is Trouble.ZIP64:
        return MinizError.CORRUPTED
    if entry.method not in {STORED, DEFLATED}:
        return MinizError.METHOD
    if entry.flags & _ENCRYPTED:
        return MinizError.ENCRYPTED
    return MinizError.FEATURE if entry.flags & _PATCHED else None


def read_contents(source: Source, entry: ZipEntry, most_nbytes: int) -> RecordContents:
    """Read one record, inflated; at most `most_nbytes` bytes whatever the directory claims."""
    where = place_of(entry)
    if max(entry.nbytes, entry.stored_nbytes) > most_nbytes:
        raise ContainerError(f"a zip record is larger than {most_nbytes:,} bytes", where=where)
    miniz = refused(entry)
    if miniz is MinizError.METHOD:
        raise ContainerError(f"compression method {entry.method} is not supported", where=where)
    if miniz is not None:
        is_encrypted = miniz is MinizError.ENCRYPTED
        what = "a zip record is encrypted" if is_encrypted else "a zip record cannot be read"
        raise ContainerError(what, where=f"{where}: {miniz.value}")
    offset = payload_offset(source, entry)
    if entry.method == DEFLATED:
        contents = _inflate(source.read(offset, entry.stored_nbytes), entry, where)
    else:
        data = source.read(offset, max(entry.nbytes, entry.stored_nbytes))[: entry.nbytes]
        contents = RecordContents(
            data, None if entry.nbytes == entry.stored_nbytes else NoteKind.TWO_RECORD_SIZES
        )
    return (
        RecordContents(contents.data, NoteKind.UNWRITTEN_RECORD)
        if entry.trouble and entry.nbytes
        else contents
    )


def read_zip_record(source: Source, entry: ZipEntry, most_nbytes: int) -> bytes:
    """Read one record that all readers read alike; otherwise as `read_contents`."""
    contents = read_contents(source, entry, most_nbytes)
    if contents.doubt is not None:
        where = f"{place_of(entry)}: {Note(contents.doubt).sentence}"
        raise ContainerError("a zip record is damaged", where=where)
    return contents.data


def _inflate(packed: bytes, entry: ZipEntry, where: str) -> RecordContents:
    """Inflate a record; what of it is damaged or too much is left out, as torch leaves it out."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        # One byte more than declared is enough to see that the declaration is wrong.
        data = inflate.decompress(packed, entry.nbytes + 1)
    except zlib.error:
        return RecordContents(_begun(packed, entry.nbytes), NoteKind.DAMAGED_RECORD)
    if inflate.eof and len(data) < entry.nbytes:
        raise ContainerError("a zip record is not as long as the directory says", where=where)
    is_whole = inflate.eof and len(data) == entry.nbytes
    return RecordContents(data[: entry.nbytes], None if is_whole else NoteKind.DAMAGED_RECORD)


def _begun(packed: bytes, nbytes: int) -> bytes:
    """Inflate as much of a damaged record as can be; zlib keeps back what it made of the damaged piece."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    data = bytearray()
    pos, steps = 0, list(_STEPS)
    while steps and pos < len(packed):
        before = inflate.copy()
        try:
            data += inflate.decompress(packed[pos : pos + steps[0]], nbytes - len(data) + 1)
        except zlib.error:
            inflate = before
            del steps[0]
        else:
            pos += steps[0]
    return bytes(data[:nbytes])
