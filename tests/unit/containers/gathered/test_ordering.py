from __future__ import annotations

from inspector.containers.gathered.ordering import in_rows
from tests.sweep import table


@table("itemsize", [1, 2, 4, 8, 16])
def test_columns_become_rows(itemsize: int) -> None:
    def element(number: int) -> bytes:
        return number.to_bytes(itemsize, "little")

    columns = b"".join(element(10 * row + column) for column in range(3) for row in range(4))
    rows = b"".join(element(10 * row + column) for row in range(4) for column in range(3))
    assert in_rows(columns, (4, 3), (1, 4), itemsize) == rows
    assert in_rows(rows, (4, 3), (3, 1), itemsize) == rows


def test_channels_last() -> None:
    stored = bytes(range(24))
    found = in_rows(stored, (1, 2, 3, 4), (24, 1, 8, 2), 1)
    assert list(found[:4]) == [0, 2, 4, 6]
    assert list(found[12:16]) == [1, 3, 5, 7]


def test_one_element() -> None:
    assert in_rows(b"ab", (1, 1), (7, 9), 2) == b"ab"
