from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import pytest

from inspector.containers import inflated as module
from inspector.containers.inflated import Inflated
from tests.sweep import table

PLAIN = random.Random(1).randbytes(300_000) + bytes(3_000_000) + random.Random(2).randbytes(100_000)
ONE = gzip.compress(PLAIN, 1)
SEVERAL = b"".join(gzip.compress(part, 1) for part in (PLAIN[:9], b"", PLAIN[9:400_000], PLAIN[400_000:]))


def inside(packed: bytes, step: int | None = None) -> Inflated:
    """The inside of these bytes, of which a read gives at most `step`."""
    return Inflated(lambda offset, nbytes: packed[offset : offset + min(nbytes, step or nbytes)])


@table("packed", [ONE, SEVERAL, SEVERAL + bytes(512), ONE + b"trailing"], ids=len)
def test_any_place_in_any_order(packed: bytes) -> None:
    reader = inside(packed)
    rolls = random.Random(3)
    for _ in range(60):
        offset = rolls.randrange(len(PLAIN) + 1000)
        nbytes = rolls.choice([0, 1, 100, 100_000, 2_000_000])
        assert reader.read_upto(offset, nbytes) == PLAIN[offset : offset + nbytes]


@table("step", [1, 2, 7, 1000])
def test_pieces_of_any_size(step: int) -> None:
    packed = gzip.compress(b"a" * 1000) + gzip.compress(b"b" * 1000)
    assert inside(packed, step).read_upto(0, 3000) == b"a" * 1000 + b"b" * 1000


def test_reading_forwards_inflates_once() -> None:
    taken: list[int] = []

    def read(offset: int, nbytes: int) -> bytes:
        taken.append(offset)
        return ONE[offset : offset + nbytes]

    reader = Inflated(read)
    for offset in range(0, len(PLAIN), 10_000):
        assert reader.read_upto(offset, 8) == PLAIN[offset : offset + 8]
    assert taken == sorted(taken)
    assert len(taken) == len(set(taken))
    reader.read_upto(0, 8)
    assert taken[-1] == 0


@pytest.mark.wide
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


@table("nbytes", [0, 1, 5, 10, len(ONE) // 2, len(ONE) - 9])
def test_stream_that_is_cut_off_gives_what_is_there(nbytes: int) -> None:
    found = inside(ONE[:nbytes]).read_upto(0, len(PLAIN))
    assert PLAIN.startswith(found)
    assert inside(ONE[:nbytes]).read_upto(len(PLAIN), 10) == b""


def damaged(at: int) -> bytes:
    return ONE[:at] + bytes([ONE[at] ^ 0xFF]) + ONE[at + 1 :]


@table("at", [0, 2, len(ONE) // 2, len(ONE) - 6])
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
        Inflated(read).read_upto(0, 1)


def test_a_step_back_inflates_from_the_mark_before_it() -> None:
    inflated: list[int] = []
    nbytes = 60_000_000
    reader = Inflated(packed_reader(gzip.compress(bytes(nbytes), 1)), inflated.append)
    reader.read_upto(nbytes - 10, 10)
    once = sum(inflated)
    for offset in (nbytes // 2, nbytes - 10, 100, nbytes - 100) * 3:
        before = sum(inflated)
        assert reader.read_upto(offset, 10) == bytes(10)
        assert sum(inflated) - before < once / 4
    assert len(reader._marks) <= 1 + nbytes // (8 << 20)


def packed_reader(packed: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, nbytes: packed[offset : offset + nbytes]


@pytest.mark.wide
def test_marks_stand_within_any_member() -> None:
    parts = [random.Random(seed).randbytes(5_000_000) for seed in range(5)]
    plain = b"".join(parts)
    reader = Inflated(packed_reader(b"".join(gzip.compress(part, 1) for part in parts)))
    assert reader.read_upto(0, len(plain)) == plain
    for offset in (24_000_000, 17_000_000, 8_388_608, 9_000_000, 4_999_990, 24_999_999):
        assert reader.read_upto(offset, 100) == plain[offset : offset + 100]


def test_marks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_MARKS", 4)
    monkeypatch.setattr(module, "_MARK_NBYTES", 100_000)
    reader = inside(ONE)
    for offset in range(0, len(PLAIN), 50_000):
        assert reader.read_upto(offset, 50_000) == PLAIN[offset : offset + 50_000]
        assert len(reader._marks) == len(reader._places) <= 4
    for offset in (3_000_000, 200_000, 0):
        assert reader.read_upto(offset, 100) == PLAIN[offset : offset + 100]


def test_record_of_a_zip_has_no_headers_and_one_member() -> None:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = compressor.compress(PLAIN) + compressor.flush()
    for more in (b"", ONE):
        reader = Inflated(packed_reader(packed + more), is_gzip=False)
        assert reader.read_upto(len(PLAIN) - 10, 100) == PLAIN[-10:]
        assert reader.read_upto(5, 100) == PLAIN[5:105]
    assert len(Inflated(packed_reader(packed[:-5]), is_gzip=False).read_upto(0, len(PLAIN))) < len(PLAIN)
