from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import pytest

from inspector.containers.raw.gzip_inside import GzipInside

PLAIN = random.Random(1).randbytes(300_000) + bytes(3_000_000) + random.Random(2).randbytes(100_000)
ONE = gzip.compress(PLAIN, 1)
SEVERAL = b"".join(gzip.compress(part, 1) for part in (PLAIN[:9], b"", PLAIN[9:400_000], PLAIN[400_000:]))


def inside(packed: bytes, step: int | None = None) -> GzipInside:
    """The inside of these bytes, of which a read gives at most `step`."""
    return GzipInside(lambda offset, nbytes: packed[offset : offset + min(nbytes, step or nbytes)])


@pytest.mark.parametrize("packed", [ONE, SEVERAL, SEVERAL + bytes(512), ONE + b"trailing"], ids=len)
def test_any_place_in_any_order(packed: bytes) -> None:
    reader = inside(packed)
    rolls = random.Random(3)
    for _ in range(60):
        offset = rolls.randrange(len(PLAIN) + 1000)
        nbytes = rolls.choice([0, 1, 100, 100_000, 2_000_000])
        assert reader.read_upto(offset, nbytes) == PLAIN[offset : offset + nbytes]


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_pieces_of_any_size(step: int) -> None:
    packed = gzip.compress(b"a" * 1000) + gzip.compress(b"b" * 1000)
    assert inside(packed, step).read_upto(0, 3000) == b"a" * 1000 + b"b" * 1000


def test_reading_forwards_inflates_once() -> None:
    taken: list[int] = []

    def read(offset: int, nbytes: int) -> bytes:
        taken.append(offset)
        return ONE[offset : offset + nbytes]

    reader = GzipInside(read)
    for offset in range(0, len(PLAIN), 10_000):
        assert reader.read_upto(offset, 8) == PLAIN[offset : offset + 8]
    assert taken == sorted(taken)
    assert len(taken) == len(set(taken))
    reader.read_upto(0, 8)
    assert taken[-1] == 0


def test_memory_is_what_was_asked_for_and_a_step() -> None:
    reader = inside(gzip.compress(bytes(50_000_000)))
    assert reader.read_upto(49_000_000, 10) == bytes(10)
    assert len(reader._window) <= 1 << 20


def test_long_read_joins_its_parts_once() -> None:
    reader = inside(gzip.compress(bytes(30_000_000), 1))
    fills = []
    fill = reader._fill
    reader._fill = lambda offset, end: (fills.append(end), fill(offset, end))
    assert len(reader.read_upto(0, 30_000_000)) == 30_000_000
    assert fills == [30_000_000]


@pytest.mark.parametrize("nbytes", [0, 1, 5, 10, len(ONE) // 2, len(ONE) - 9])
def test_stream_that_is_cut_off_gives_what_is_there(nbytes: int) -> None:
    found = inside(ONE[:nbytes]).read_upto(0, len(PLAIN))
    assert PLAIN.startswith(found)
    assert inside(ONE[:nbytes]).read_upto(len(PLAIN), 10) == b""


def damaged(at: int) -> bytes:
    return ONE[:at] + bytes([ONE[at] ^ 0xFF]) + ONE[at + 1 :]


@pytest.mark.parametrize("at", [0, 2, len(ONE) // 2, len(ONE) - 6])
def test_damage_is_an_error(at: int) -> None:
    with pytest.raises(zlib.error):
        inside(damaged(at)).read_upto(0, len(PLAIN) + 1)


def test_endless_empty_members_end() -> None:
    assert inside(gzip.compress(b"") * 3000 + ONE).read_upto(0, 10) == b""
    assert inside(gzip.compress(b"") * 300 + ONE).read_upto(0, 10) == PLAIN[:10]


def test_read_error_passes() -> None:
    def read(offset: int, nbytes: int) -> bytes:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        GzipInside(read).read_upto(0, 1)


def test_a_step_back_inflates_from_the_mark_before_it() -> None:
    inflated: list[int] = []
    nbytes = 60_000_000
    reader = GzipInside(packed_reader(gzip.compress(bytes(nbytes), 1)), inflated.append)
    reader.read_upto(nbytes - 10, 10)
    once = sum(inflated)
    for offset in (nbytes // 2, nbytes - 10, 100, nbytes - 100) * 3:
        before = sum(inflated)
        assert reader.read_upto(offset, 10) == bytes(10)
        assert sum(inflated) - before < once / 4
    assert len(reader._marks) <= 1 + nbytes // (8 << 20)


def packed_reader(packed: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, nbytes: packed[offset : offset + nbytes]


def test_marks_stand_within_any_member() -> None:
    parts = [random.Random(seed).randbytes(5_000_000) for seed in range(5)]
    plain = b"".join(parts)
    reader = GzipInside(packed_reader(b"".join(gzip.compress(part, 1) for part in parts)))
    assert reader.read_upto(0, len(plain)) == plain
    for offset in (24_000_000, 17_000_000, 8_388_608, 9_000_000, 4_999_990, 24_999_999):
        assert reader.read_upto(offset, 100) == plain[offset : offset + 100]
