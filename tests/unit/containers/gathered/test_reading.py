from __future__ import annotations

import pytest

from inspector.containers import gathered as reading
from inspector.containers.container import Chunk, Gathered
from inspector.containers.gathered import GatheredReader
from inspector.containers.source import BytesSource
from inspector.errors import DamagedError
from tests.builders.dcp import floats, saved_tensor


class Counted(BytesSource):
    """Bytes that count how often and how much is read of them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "part")
        self.reads: list[int] = []

    def read_at(self, offset: int, nbytes: int) -> bytes:
        self.reads.append(nbytes)
        return super().read_at(offset, nbytes)


WHOLE = floats((6, 8), (8, 1), 0)


def columns(packing: str = "") -> tuple[list[Counted], GatheredReader]:
    """A tensor of 6 x 8 whose columns are in two files."""
    chunks, parts = [], []
    for number, (first, count) in enumerate(((0, 3), (3, 5))):
        data = floats((6, count), (8, 1), first)
        if packing:
            data = saved_tensor(data, (6, count))
        parts.append(Counted(b"--" + data))
        chunks.append(Chunk((0, first), (6, count), number, 2, len(data), packing))
    gathered = Gathered("w", "float32", 4, (6, 8), tuple(chunks))
    return parts, GatheredReader(gathered, parts.__getitem__)


@pytest.mark.parametrize("packing", ["", "zip"])
def test_columns_are_read_as_rows(packing: str) -> None:
    _, reader = columns(packing)
    assert reader.read(0, 192) == WHOLE
    for start, end in ((0, 0), (5, 9), (31, 33), (100, 192)):
        assert reader.read(start, end - start) == WHOLE[start:end]
    assert reader.extents(0, 192) is None


def test_a_window_of_each_chunk_is_kept() -> None:
    parts, reader = columns()
    assert reader.read(0, 192) == WHOLE
    assert [part.reads for part in parts] == [[72], [120]]


def test_a_window_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_AHEAD_NBYTES", 16)
    monkeypatch.setattr(reading, "_LEAST_AHEAD_NBYTES", 16)
    parts, reader = columns()
    assert reader.read(0, 192) == WHOLE
    assert parts[0].reads == [16, 16, 16, 16, 16, 12]
    assert parts[1].reads == [20] * 6  # what is longer than a window is read as it is


def rows(*, strides: tuple[int, ...] = ()) -> GatheredReader:
    data = [floats((2, 4), (4, 1), 0), saved_tensor(floats((3, 4), (4, 1), 8), (3, 4), strides=strides)]
    chunks = (
        Chunk((0, 0), (2, 4), 0, 0, 32, ""),
        Chunk((2, 0), (3, 4), 1, 0, len(data[1]), "zip"),
    )
    parts = [BytesSource(one, "part") for one in data]
    return GatheredReader(Gathered("w", "float32", 4, (5, 4), chunks), parts.__getitem__)


def test_rows_are_copied_from_where_they_are() -> None:
    found = rows().extents(16, 48)
    assert found is not None
    copied = [source.read(offset, nbytes) for source, offset, nbytes in found]
    assert copied == [floats((4,), (1,), 4), floats((4,), (1,), 8)]
    one = GatheredReader(
        Gathered("w", "int8", 1, (4,), (Chunk((0,), (4,), 0, 1, 4),)), lambda _: BytesSource(b"-abcd", "p")
    )
    assert [(offset, nbytes) for _, offset, nbytes in one.extents(1, 3) or ()] == [(2, 2)]


def test_chunks_in_another_order_are_put_in_the_order_of_rows() -> None:
    reader = rows(strides=(1, 3))
    assert reader.extents(0, 80) is None
    stored = floats((3, 4), (4, 1), 8)
    by_columns = [stored[4 * at : 4 * at + 4] for at in range(12)]
    expected = b"".join(by_columns[row + 3 * column] for row in range(3) for column in range(4))
    assert reader.read(32, 48) == expected
    assert reader.read(40, 4) == expected[8:12]


def test_only_so_much_is_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_LINED", 47)
    with pytest.raises(DamagedError, match="too large to be put in order"):
        rows(strides=(1, 3)).read(32, 4)
    monkeypatch.setattr(reading, "_MOST_LINED", 60)
    reader = rows(strides=(1, 3))
    assert len(reader.read(0, 80)) == 80  # the window of the other chunk had to go


def test_a_chunk_that_is_nowhere_is_said() -> None:
    gathered = Gathered("w", "int8", 1, (4,), (Chunk((0,), (4,), -1, 0, 4),))
    with pytest.raises(DamagedError, match="a file is missing"):
        GatheredReader(gathered, lambda _: BytesSource(b"abcd", "part")).read(0, 4)
