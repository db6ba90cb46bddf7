"""Zip files made by hand: every field of every header may lie."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

from inspector.containers.zip.directory import (
    CENTRAL,
    CENTRAL_SIGNATURE,
    DEFLATED,
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

FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record; what is None is told truthfully. Methods 0 and 8 are carried out, others only declared.

    `crc`, `nbytes`, `stored_nbytes`, `offset` and `attributes` are declared, `extra` is in the local header.
    """

    name: str | bytes
    data: bytes = b""
    method: int = STORED
    flags: int = 0
    crc: int | None = None
    nbytes: int | None = None
    stored_nbytes: int | None = None
    local_name: str | bytes | None = None
    local_signature: bytes = LOCAL_SIGNATURE
    extra: bytes = b""
    central_extra: bytes = b""
    offset: int | None = None
    zip64: bool = False
    comment: bytes = b""
    time: int = 0
    disk: int = 0
    attributes: int = 0


@dataclass(slots=True)
class ZipBuilder:
    """Collects the bytes of a zip and of its directory."""

    body: bytearray = field(default_factory=bytearray)
    central: bytearray = field(default_factory=bytearray)
    count: int = 0

    def add(self, record: Record) -> None:
        """Append a record and its entry in the directory."""
        packed = _deflate(record.data) if record.method == DEFLATED else record.data
        crc = zlib.crc32(record.data) if record.crc is None else record.crc
        nbytes = len(record.data) if record.nbytes is None else record.nbytes
        stored = len(packed) if record.stored_nbytes is None else record.stored_nbytes
        offset = len(self.body) if record.offset is None else record.offset
        local_name = _encoded(record.name if record.local_name is None else record.local_name)
        self.body += LOCAL.pack(
            record.local_signature,
            20,
            record.flags,
            record.method,
            0,
            0,
            crc,
            min(stored, FULL32),
            min(nbytes, FULL32),
            len(local_name),
            len(record.extra),
        )
        self.body += local_name + record.extra + packed
        self._add_central(record, crc, nbytes, stored, offset)

    def _add_central(self, record: Record, crc: int, nbytes: int, stored: int, offset: int) -> None:
        name = _encoded(record.name)
        extra = record.central_extra
        if record.zip64:
            extra += struct.pack("<2H3Q", 1, 24, nbytes, stored, offset)
            nbytes = stored = offset = FULL32
        self.central += CENTRAL.pack(
            CENTRAL_SIGNATURE,
            0,
            20,
            record.flags,
            record.method,
            record.time,
            0,
            crc,
            stored,
            nbytes,
            len(name),
            len(extra),
            len(record.comment),
            record.disk,
            0,
            record.attributes,
            offset,
        )
        self.central += name + extra + record.comment
        self.count += 1

    def finish(self, *, comment: bytes = b"", zip64: bool = False, start: int | None = None) -> bytes:
        """Append the directory and the end; `start` is where the directory is said to be."""
        start = len(self.body) if start is None else start
        nbytes, count = len(self.central), self.count
        parts = [bytes(self.body), bytes(self.central)]
        if zip64:
            at = len(self.body) + nbytes
            parts.append(END64.pack(END64_SIGNATURE, 44, 45, 45, 0, 0, count, count, nbytes, start))
            parts.append(LOCATOR64.pack(LOCATOR64_SIGNATURE, 0, at, 1))
            count, nbytes, start = FULL16, FULL32, FULL32
        parts.append(END.pack(END_SIGNATURE, 0, 0, count, count, nbytes, start, len(comment)))
        return b"".join([*parts, comment])


def build_zip(*records: Record, comment: bytes = b"", zip64: bool = False, start: int | None = None) -> bytes:
    builder = ZipBuilder()
    for record in records:
        builder.add(record)
    return builder.finish(comment=comment, zip64=zip64, start=start)


def checkpoint(
    pickle: bytes,
    storages: dict[str, bytes] | None = None,
    *more: Record,
    folder: str = "archive/",
    version: bytes | None = b"3\n",
) -> bytes:
    records = [Record(name=f"{folder}data.pkl", data=pickle)]
    records += [Record(name=f"{folder}data/{key}", data=data) for key, data in (storages or {}).items()]
    if version is not None:
        records.append(Record(name=f"{folder}version", data=version))
    return build_zip(*records, *more)


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def _encoded(name: str | bytes) -> bytes:
    return name.encode() if isinstance(name, str) else name
