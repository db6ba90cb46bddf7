"""A torch archive laid out as torch itself would, byte for byte, for when a record has to grow.

Readers with `calculate_storage_offsets` compute where storages lie from the layout alone, so it must be
torch's: records in the same order, contents aligned by an `FB` field of padding in the local header, sizes
and CRC in a descriptor behind the contents, a Zip64 end always. From `getPadding` in
`caffe2/serialize/inline_container.cc` and `mz_zip_writer_add_mem_ex_v2` in the miniz that comes with torch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from inspector.containers.zip.directory import (
    CENTRAL,
    CENTRAL_SIGNATURE,
    DESCRIBED,
    DESCRIPTOR,
    DESCRIPTOR64,
    DESCRIPTOR_SIGNATURE,
    LOCAL,
    LOCAL_SIGNATURE,
    Entry,
)
from inspector.containers.zip.end import (
    END,
    END64,
    END64_SIGNATURE,
    END_SIGNATURE,
    LOCATOR64,
    LOCATOR64_SIGNATURE,
)

DEFAULT_ALIGNMENT = 64
_UTF8 = 0x0800
_MOST32, _MOST16 = 0xFFFFFFFF, 0xFFFF
_END64_NBYTES = END64.size - 12  # what its own size field counts
_MADE_BY, _NEEDED = 0x031E, 0x2D
_PAD_HEADER = struct.Struct("<2sH")


class Record(NamedTuple):
    """One record to write.

    Attributes:
        entry: As the source's directory has it; name, method and attributes are kept.
        crc: CRC-32 of its contents.
        nbytes: Its inflated size.
        stored_nbytes: How many bytes its contents take.
    """

    entry: Entry
    crc: int
    nbytes: int
    stored_nbytes: int


class Contents(NamedTuple):
    """Stands in the layout for a record's contents: copy them here."""

    number: int


def lay_out(records: list[Record], alignment: int) -> Iterator[bytes | Contents]:
    """Give an archive as a sequence of bytes to write and of contents to copy, in file order.

    A record's CRC may still be put into the list while its contents are copied.
    """
    central: list[bytes] = []
    pos = 0
    for number, record in enumerate(records):
        header = _local_header(record, pos, alignment)
        yield header
        yield Contents(number)
        record = records[number]  # noqa: PLW2901 - whoever copies the contents may know their CRC only now
        descriptor = _descriptor(record, pos)
        yield descriptor
        central.append(_central_header(record, pos))
        pos += len(header) + record.stored_nbytes + len(descriptor)
    directory = b"".join(central)
    yield directory
    yield _end(len(records), pos, len(directory))


def lay_out_behind(
    pos: int, new: tuple[Record, bytes], central: tuple[bytes, bytes], *, count: int, alignment: int
) -> bytes:
    """Give what is appended to an archive to replace a record: the new one, and a directory that names it.

    torch finds records by the directory alone, so those that stay need not move, and the old one is not read.

    Args:
        pos: Where the archive ends.
        new: The record and its contents.
        central: The old directory's bytes before and behind the header of the record it replaces.
        count: How many records there are.
        alignment: What contents are aligned to.
    """
    record, contents = new
    body = _local_header(record, pos, alignment) + contents + _descriptor(record, pos)
    directory = _central_header(record, pos).join(central)
    return body + directory + _end(count, pos + len(body), len(directory))


def _flags(record: Record) -> int:
    return _UTF8 | DESCRIBED if record.nbytes else _UTF8


def _local_header(record: Record, pos: int, alignment: int) -> bytes:
    name = record.entry.name.encode("utf-8", "surrogateescape")
    # torch's writer does not know the stored size yet and leaves 0 where a Zip64 field has room for it.
    extra = _zip64(record.nbytes, 0 if record.nbytes >= _MOST32 else None, pos)
    extra += _padding(pos + LOCAL.size + len(name) + len(extra), alignment)
    header = LOCAL.pack(
        LOCAL_SIGNATURE, 0, _flags(record), record.entry.method, 0, 0, 0, 0, 0, len(name), len(extra)
    )
    return header + name + extra


def _padding(start: int, alignment: int) -> bytes:
    count = -(start + _PAD_HEADER.size) % alignment
    return _PAD_HEADER.pack(b"FB", count) + b"Z" * count


def _zip64(nbytes: int, stored_nbytes: int | None, pos: int) -> bytes:
    """Give the Zip64 field with those of size, stored size and offset that need it."""
    values = [nbytes] if nbytes >= _MOST32 else []
    if stored_nbytes is not None and (values or stored_nbytes >= _MOST32):
        values.append(stored_nbytes)
    if pos >= _MOST32:
        values.append(pos)
    return struct.pack(f"<2H{len(values)}Q", 1, 8 * len(values), *values) if values else b""


def _descriptor(record: Record, pos: int) -> bytes:
    if not record.nbytes:
        return b""
    wide = max(record.nbytes, record.stored_nbytes, pos) >= _MOST32
    form = DESCRIPTOR64 if wide else DESCRIPTOR
    return form.pack(DESCRIPTOR_SIGNATURE, record.crc, record.stored_nbytes, record.nbytes)


def _central_header(record: Record, pos: int) -> bytes:
    name = record.entry.name.encode("utf-8", "surrogateescape")
    extra = _zip64(record.nbytes, record.stored_nbytes, pos)
    sizes = min(record.stored_nbytes, _MOST32), min(record.nbytes, _MOST32)
    header = CENTRAL.pack(
        CENTRAL_SIGNATURE,
        *(0, 0, _flags(record), record.entry.method, 0, 0, record.crc),
        *sizes,
        *(len(name), len(extra), 0, 0, 0, 0, min(pos, _MOST32)),
    )
    return header + name + extra


def _end(count: int, start: int, nbytes: int) -> bytes:
    end64 = END64.pack(END64_SIGNATURE, _END64_NBYTES, _MADE_BY, _NEEDED, 0, 0, count, count, nbytes, start)
    locator = LOCATOR64.pack(LOCATOR64_SIGNATURE, 0, start + nbytes, 1)
    few, start32, nbytes32 = min(count, _MOST16), min(start, _MOST32), min(nbytes, _MOST32)
    return end64 + locator + END.pack(END_SIGNATURE, 0, 0, few, few, nbytes32, start32, 0)
