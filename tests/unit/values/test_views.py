"""Views as NumPy itself lays them over the same memory, and how little is read for them."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from inspector.errors import ValuesError
from inspector.values import views
from inspector.values.views import View, pieces


class Memory:
    """A storage that counts what is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def __call__(self, offset: int, nbytes: int) -> bytes:
        assert 0 <= offset <= offset + nbytes <= len(self.data)
        self.reads.append((offset, nbytes))
        return self.data[offset : offset + nbytes]

    @property
    def nbytes(self) -> int:
        return sum(nbytes for _, nbytes in self.reads)


def gathered(view: View, memory: Memory) -> np.ndarray:
    """All elements at their places; where an element is repeated, only the first is filled in."""
    out = np.full(view.numel, -1, np.int64)
    for piece in pieces(view, memory):
        places = piece.places()
        assert sorted(piece.flat.tolist()) == sorted(piece.codes.reshape(-1).tolist())
        assert (out[places] == -1).all(), "no element is met twice"
        out[places] = piece.codes
    return out.reshape(view.shape)


def test_every_element_is_met_once_and_at_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "PIECE_NBYTES", 96)
    monkeypatch.setattr(views, "_GAP_NBYTES", 16)
    chance = random.Random(1)
    numbers = np.arange(4000, dtype=np.int32)
    memory = Memory(numbers.tobytes())
    wrong = []
    for _ in range(150):
        shape = tuple(chance.choice((0, 1, 2, 3, 5, 9)) for _ in range(chance.randint(0, 4)))
        steps = [1, 2, 3, 7, 30, 90, 250]
        stride = tuple(chance.choice((*steps, 0)) for _ in shape)
        offset = chance.randint(0, 40)
        if offset + sum((max(size, 1) - 1) * step for size, step in zip(shape, stride, strict=True)) >= 4000:
            continue
        view = View("int32", 4, shape, stride, offset)
        expected = as_strided(numbers[offset:], shape, [4 * step for step in stride]).astype(np.int64)
        once = tuple(slice(None) if step else slice(0, 1) for step in stride)
        if prod(shape) and not np.array_equal(gathered(view, memory)[once], expected[once]):
            wrong.append(view)
    assert not wrong


def test_what_lies_far_apart_is_not_read() -> None:
    memory = Memory(bytes(1 << 20))
    column = View("uint8", 1, (16,), (1 << 16,), 5)
    assert sum(piece.flat.size for piece in pieces(column, memory)) == 16
    assert memory.nbytes == 16


def test_what_lies_in_one_piece_is_read_at_once() -> None:
    memory = Memory(bytes(1 << 20))
    for view in (
        View("uint8", 1, (1 << 10, 1 << 10), (1, 1 << 10), 0),
        View("uint8", 1, (1 << 10, 1 << 9), (1 << 10, 2), 0),
    ):
        memory.reads.clear()
        assert sum(piece.flat.size for piece in pieces(view, memory)) == view.numel
        assert len(memory.reads) == 1


def test_a_part_counts_its_places_in_the_whole() -> None:
    part = View("uint8", 1, (3, 1, 4), (20, 4, 1), 8, whole=(3, 5, 4), first=8)
    places = [place for piece in pieces(part, Memory(bytes(range(60)))) for place in piece.places().ravel()]
    assert sorted(places) == [8, 9, 10, 11, 28, 29, 30, 31, 48, 49, 50, 51]


def test_elements_that_share_bytes_are_taken_apart() -> None:
    found = [piece.flat.tolist() for piece in pieces(View("quint4x2", 1, (3,), (1,), 1), Memory(b"\x21\x43"))]
    assert found == [[2, 3, 4]]
    assert [
        piece.flat.tolist()
        for piece in pieces(View("float4_e2m1fn_x2", 1, (1,), (1,), 1), Memory(b"..\x21"[1:]))
    ] == [[1, 2]]
    with pytest.raises(ValuesError, match="order of rows"):
        list(pieces(View("quint4x2", 1, (3,), (2,), 0), Memory(bytes(9))))


def test_elements_that_overlap_without_end_are_refused() -> None:
    view = View("uint8", 1, (1 << 20, 1 << 20), (1, 1), 0)
    with pytest.raises(ValuesError, match="overlap"):
        list(pieces(view, Memory(bytes(1 << 21))))
    repeated = View("float32", 4, (10**9, 10**9), (0, 0), 0)
    assert repeated.repeats == 10**18
    assert [piece.flat.size for piece in pieces(repeated, Memory(bytes(4)))] == [1]
