from __future__ import annotations

from inspector.containers.dcp import ends_in_row, find_row
from inspector.containers.source import BytesSource
from tests.builders.dcp import saved_value
from tests.builders.pickles import number, text

ONE, TWO, THREE = (saved_value(push) for push in (number(1), text("PK\x05\x06" * 30), number(3)))


def count_nothing(_parts: int) -> None:
    """Count nothing."""


def spans(data: bytes) -> list[bytes]:
    source = BytesSource(data, "a.distcp")
    row = find_row(source, count_nothing)
    assert row.lost == len(data) - sum(span.nbytes for span in row.spans)
    return [source.read(span.offset, span.nbytes) for span in row.spans]


def test_zips_are_found_one_behind_the_other() -> None:
    assert spans(ONE + TWO + THREE) == [ONE, TWO, THREE]
    assert spans(ONE) == [ONE]
    assert spans(b"") == []


def test_what_is_lost_is_told() -> None:
    assert spans(ONE + TWO + THREE[:-1]) == [ONE, TWO]
    assert spans(ONE + TWO + THREE[:-22]) == [ONE, TWO]
    assert spans(b"lost " + TWO + THREE) == [TWO, THREE]
    assert spans(b"lost " + TWO[:-1]) == []
    assert spans(b"no zip") == []
    assert spans(ONE[:10] + ONE[11:]) == []
    assert spans(ONE + bytes(99)) == [ONE]


def test_a_row_is_told_by_its_last_two() -> None:
    for data, is_row in (
        (ONE + TWO, True),
        (ONE, False),
        (b"x" + ONE, False),
        (b"", False),
        (ONE + TWO[:-1], False),
    ):
        assert ends_in_row(BytesSource(data, "a")) == is_row


def test_searching_is_bounded() -> None:
    looked: list[int] = []
    find_row(BytesSource(bytes(3 << 20), "a"), looked.append)
    assert looked == [1, 2048, 2048, 2048]
