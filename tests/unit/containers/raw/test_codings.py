from __future__ import annotations

import pickle
import random
from array import array
from collections.abc import Callable

import pytest

from inspector.containers import codings as module
from inspector.containers.codings import LINE, PLAIN, TEXT, Spelled, coded, decoding, is_coded
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
