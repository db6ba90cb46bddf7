"""A torch archive laid out as torch itself would lay it out, byte for byte.

Readers with `calculate_storage_offsets` compute where storages lie from the layout alone, so it must be
torch's: records in the same order, contents aligned by an `FB` field of padding in the local header, sizes
and CRC in a descriptor behind the contents, a Zip64 end always. From `getPadding` in
`caffe2/serialize/inline_container.cc` and `mz_zip_writer_add_mem_ex_v2` in the miniz that comes with torch.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from inspector.containers.zip.directory import (
    CENTRAL,
    CENTRAL_SIGNATURE,
    DESCRIBED,
    DESCRIPTOR,
    DESCRIPTOR64,
    DESCRIPTOR_SIGNATURE,
    END,
    END64,
    END64_SIGNATURE,
    END_SIGNATURE,
    LOCAL,
    LOCAL_SIGNATURE,
    LOCATOR64,
    LOCATOR64_SIGNATURE,
    STORED,
)

DEFAULT_ALIGNMENT = 64
_UTF8 = 0x0800
_MOST32, _MOST16 = 0xFFFFFFFF, 0xFFFF
_END64_NBYTES = END64.size - 12  # what its own size field counts
_MADE_BY, _NEEDED = 0x031E, 0x2D
_PAD_HEADER = struct.Struct("<2sH")


Contents = bytes | Callable[[], int]
"""A record's bytes, or a function that writes them to the archive and returns their CRC-32."""


class Record(NamedTuple):
    """One record to write.

    Attributes:
        crc: CRC-32 of its contents; of those that a function writes it is set by what that returns.
    """

    name: str
    nbytes: int
    stored_nbytes: int
    contents: Contents
    method: int = STORED
    crc: int = 0


def plain_record(name: str, data: bytes, *, has_crc: bool = True) -> Record:
    """Return the record that holds these bytes as they are, with a checksum or with none."""
    return Record(name, len(data), len(data), data, crc=zlib.crc32(data) if has_crc else 0)


def write_zip(records: Iterable[Record], alignment: int, write: Callable[[bytes], object]) -> None:
    """Write an archive: `write` takes the bytes in between the contents that functions write."""
    central: list[bytes] = []
    pos = 0
    for record in records:
        header = _local_header(record, pos, alignment)
        write(header)
        if isinstance(record.contents, bytes):
            write(record.contents)
        else:
            record = record._replace(crc=record.contents())  # noqa: PLW2901 - known only now
        descriptor = _descriptor(record, pos)
        write(descriptor)
        central.append(_central_header(record, pos))
        pos += len(header) + record.stored_nbytes + len(descriptor)
    directory = b"".join(central)
    write(directory)
    write(_end(len(central), pos, len(directory)))


def lay_out_behind(
    pos: int, record: Record, data: bytes, central: tuple[bytes, bytes], *, count: int, alignment: int
) -> bytes:
    """Return what is appended to an archive to replace a record: the new one, and a directory that names it.

    torch finds records by the directory alone, so those that stay need not move, and the old one is not read.
    """
    body = _local_header(record, pos, alignment) + data + _descriptor(record, pos)
    directory = _central_header(record, pos).join(central)
    return body + directory + _end(count, pos + len(body), len(directory))


def _flags(record: Record) -> int:
    return _UTF8 | DESCRIBED if record.nbytes else _UTF8


def _local_header(record: Record, pos: int, alignment: int) -> bytes:
    name = record.name.encode("utf-8", "surrogateescape")
    # torch's writer does not know the stored size yet and leaves 0 where a Zip64 field has room for it.
    extra = _zip64(record.nbytes, 0 if record.nbytes >= _MOST32 else None, pos)
    extra += _padding(pos + LOCAL.size + len(name) + len(extra), alignment)
    header = LOCAL.pack(
        LOCAL_SIGNATURE, 0, _flags(record), record.method, 0, 0, 0, 0, 0, len(name), len(extra)
    )
    return header + name + extra


def _padding(start: int, alignment: int) -> bytes:
    count = -(start + _PAD_HEADER.size) % alignment
    return _PAD_HEADER.pack(b"FB", count) + b"Z" * count


def _zip64(nbytes: int, stored_nbytes: int | None, pos: int) -> bytes:
    """Return the Zip64 field with those of size, stored size and offset that need it."""
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
    name = record.name.encode("utf-8", "surrogateescape")
    extra = _zip64(record.nbytes, record.stored_nbytes, pos)
    sizes = min(record.stored_nbytes, _MOST32), min(record.nbytes, _MOST32)
    header = CENTRAL.pack(
        CENTRAL_SIGNATURE,
        *(0, 0, _flags(record), record.method, 0, 0, record.crc),
        *sizes,
        *(len(name), len(extra), 0, 0, 0, 0, min(pos, _MOST32)),
    )
    return header + name + extra


def _end(count: int, start: int, nbytes: int) -> bytes:
    end64 = END64.pack(END64_SIGNATURE, _END64_NBYTES, _MADE_BY, _NEEDED, 0, 0, count, count, nbytes, start)
    locator = LOCATOR64.pack(LOCATOR64_SIGNATURE, 0, start + nbytes, 1)
    few, start32, nbytes32 = min(count, _MOST16), min(start, _MOST32), min(nbytes, _MOST32)
    return end64 + locator + END.pack(END_SIGNATURE, 0, 0, few, few, nbytes32, start32, 0)


# ------------------------------------------------------------------------------------------------------------
# The records of a file that `torch.save` writes: their names and order, and the contents of the small ones.
#
# From `_save` in torch's `torch/serialization.py` and `writeEndOfFile` in its
# `caffe2/serialize/inline_container.cc`.

FOLDER = "archive"
"""The folder of all records where the file's own name cannot be used."""


def storage_name(key: str) -> str:
    """Return the name of a storage's record within the folder of all records."""
    return f"data/{key}"


def torch_records(
    folder: str,
    pickle: bytes,
    storages: Iterable[tuple[str, int, Contents]],
    *,
    byteorder: str,
    serialization_id: bytes,
    is_in_order_of_use: bool = True,
) -> Iterator[Record]:
    """Return all records of a file.

    Args:
        storages: Key, size and contents of each storage.
        serialization_id: Forty digits; torch reads them for its log alone.
        is_in_order_of_use: Whether the storages come in the order in which the pickle names them. That is
            what `.format_version` promises to those who compute where they lie.
    """
    head = [plain_record("data.pkl", pickle)]
    if is_in_order_of_use:
        head.append(plain_record(".format_version", b"1"))
    head += [
        plain_record(".storage_alignment", str(DEFAULT_ALIGNMENT).encode()),
        plain_record("byteorder", byteorder.encode()),
    ]
    tail = [plain_record("version", b"3\n"), plain_record(".data/serialization_id", serialization_id)]
    data = (Record(storage_name(key), nbytes, nbytes, contents) for key, nbytes, contents in storages)
    return (record._replace(name=f"{folder}/{record.name}") for record in chain(head, data, tail))
