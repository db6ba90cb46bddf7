"""Torch archives as torch itself lays them out: no sizes in front of a record, a descriptor behind it."""

from __future__ import annotations

import zlib

from inspector.containers.zip.directory import STORED, Entry
from inspector.remap.archive.zip_layout import Contents, Record, lay_out

TAIL = {"version": b"3\n", ".data/serialization_id": b"0" * 40}
HEAD = {".format_version": b"1", ".storage_alignment": b"64", "byteorder": b"little"}


def archive(
    pickle: bytes,
    storages: dict[str, bytes],
    *,
    folder: str = "archive/",
    checksums: bool = True,
    first: dict[str, bytes] | None = None,
    alignment: int = 64,
) -> bytes:
    """The bytes of a whole archive; `first` stands in front of data.pkl."""
    parts = {**(first or {}), "data.pkl": pickle, **HEAD}
    parts |= {f"data/{key}": data for key, data in storages.items()} | TAIL
    rows = []
    for name, data in parts.items():
        crc = zlib.crc32(data) if checksums else 0
        rows.append(
            Record(Entry(folder + name, 0, len(data), len(data), STORED, 0, 0, 0), crc, len(data), len(data))
        )
    contents = list(parts.values())
    return b"".join(
        contents[part.number] if isinstance(part, Contents) else part for part in lay_out(rows, alignment)
    )


def directory_of(data: bytes) -> int:
    """Where the directory of an archive starts."""
    return data.index(b"PK\x01\x02")
