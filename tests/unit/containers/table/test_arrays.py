from __future__ import annotations

from inspector.containers.source import BytesSource
from inspector.containers.table.arrays import ARRAY_ROWS


def test_gguf_is_told_by_its_first_bytes() -> None:
    (row,) = ARRAY_ROWS
    assert row.matches(BytesSource(b"GGUF\3\0\0\0", "a"))
    assert not row.matches(BytesSource(b"GGU", "a"))
    assert row.loader == "gguf.GGUFReader"
