"""Torch archives as torch itself lays them out: no sizes in front of a record, a descriptor behind it."""

from __future__ import annotations

from inspector.remap.zip_layout import plain_record, write_zip

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
    rows = [plain_record(folder + name, data, has_crc=checksums) for name, data in parts.items()]
    written: list[bytes] = []
    write_zip(rows, alignment, written.append)
    return b"".join(written)


def directory_of(data: bytes) -> int:
    """Where the directory of an archive starts."""
    return data.index(b"PK\x01\x02")
