from __future__ import annotations

from inspector.containers.source import BytesSource
from inspector.containers.table.arrays import ARRAY_ROWS


def test_gguf_is_told_by_its_first_bytes() -> None:
    row = ARRAY_ROWS[0]
    assert row.matches(BytesSource(b"GGUF\3\0\0\0", "a"))
    assert not row.matches(BytesSource(b"GGU", "a"))
    assert row.loader == "gguf.GGUFReader"


def test_arrays_of_numpy_are_told_by_theirs_or_by_their_names() -> None:
    _, npy, npz = ARRAY_ROWS
    assert npy.matches(BytesSource(b"\x93NUMPY\1\0", "a"))
    assert not npy.matches(BytesSource(b"\x93NUMP", "a"))
    assert not npz.matches(BytesSource(b"PK\3\4", "a"))  # `containers.zip.kinds` does
    assert {row.loader for row in (npy, npz)} == {"numpy.load"}
