from __future__ import annotations

import pickle
import random
from array import array
from collections.abc import Callable

import pytest

from inspector.containers import codings as module
from inspector.containers.codings import LINE, PLAIN, TEXT, Spelled, Within, coded, decoding, is_coded
from inspector.containers.source import BytesSource
from inspector.errors import DamagedError
from tests.sweep import table

BYTES = random.Random(1).randbytes(3000) + bytes(range(256)) + b"\\u0041\\\\n\n\0\r" + bytes(500)
TEXT_OF = BYTES.decode("latin-1").encode()
LINE_OF = pickle.dumps(BYTES.decode("latin-1"), 0)[1:].partition(b"\n")[0]


def reads(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, nbytes: data[offset : offset + nbytes]


@pytest.mark.parametrize(("spelling", "text"), [(TEXT, TEXT_OF), (LINE, LINE_OF)])
@pytest.mark.parametrize("step", [64, 1 << 16])
def test_spelled_bytes_at_any_place(
    spelling: int, text: bytes, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_STEP_NBYTES", step)
    spelled = Spelled(reads(text), spelling)
    rolls = random.Random(2)
    for _ in range(40):
        offset, nbytes = rolls.randrange(len(BYTES) + 20), rolls.choice([0, 1, 70, 5000])
        assert spelled.read_upto(offset, nbytes) == BYTES[offset : offset + nbytes]
    for offset in (0, 1, 63, 64, 3000, 3100, len(BYTES) - 1, len(BYTES)):
        behind = Spelled(reads(text[spelled.stored_at(offset) :]), spelling)
        assert behind.read_upto(0, len(BYTES)) == BYTES[offset:]


@pytest.mark.parametrize("text", ["\u0416".encode(), b"\xff\xfe"])
def test_what_is_no_text_of_bytes_is_damage(text: bytes) -> None:
    with pytest.raises(DamagedError, match="not written as bytes"):
        Spelled(reads(text), TEXT).read_upto(0, 1)


@table("swap", [2, 4, 8])
def test_numbers_the_other_way_round(swap: int) -> None:
    numbers = array({2: "H", 4: "I", 8: "Q"}[swap], range(50))
    plain = numbers.tobytes()
    numbers.byteswap()
    for spelling, data in ((PLAIN, numbers.tobytes()), (TEXT, numbers.tobytes().decode("latin-1").encode())):
        read = decoding(reads(data), coded(spelling, swap))
        for offset in range(20):
            for nbytes in range(20):
                assert read(offset, nbytes) == plain[offset : offset + nbytes]
        assert read(len(plain) - 3, 100) == plain[-3:]


def test_methods_are_told_from_those_of_zips() -> None:
    assert coded(PLAIN) == 0
    methods = {coded(spelling, swap) for spelling in (PLAIN, TEXT, LINE) for swap in (1, 2, 4, 8)} - {0}
    assert len(methods) == 11
    assert all(map(is_coded, methods))
    assert not any(map(is_coded, (0, 8, 12, -1000)))


OUTER = BytesSource(b"head" + b"inside" + b"tail", "a.pkl")


def test_a_part_ends_where_it_ends() -> None:
    part = Within(OUTER, 4, 6, 6)
    assert (part.nbytes, part.path) == (6, "a.pkl")
    assert part.read(1, 3) == b"nsi"
    assert part.read_upto(4, 100) == b"de"
    assert part.stored_at(2) == 6


def test_a_part_that_is_spelled_as_a_text() -> None:
    text = "a\xe9b\xff".encode()
    part = Within(BytesSource(b"XX" + text + b"!", "a.pkl"), 2, 4, len(text), TEXT)
    assert part.read(0, 4) == b"a\xe9b\xff"
    assert [part.stored_at(place) for place in range(5)] == [2, 3, 5, 6, 8]
    assert Within(OUTER, 4, 6, 2).read_upto(0, 6) == b"in"
