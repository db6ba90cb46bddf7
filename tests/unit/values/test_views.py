"""Views as NumPy itself lays them over the same memory, and how little is read for them."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from inspector.errors import ValuesError
from inspector.values import views
from inspector.values.arrays import channels_of, view_of, whole_array
from inspector.values.tensor_bytes import StorageBytes
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


class Bytes:
    """Stands for an open file whose storages are given."""

    def __init__(self, **storages: bytes) -> None:
        self.storages = storages

    def storage(self, place: dict[str, Any]) -> StorageBytes:
        data = self.storages[place["key"]]
        return StorageBytes(len(data), lambda offset, nbytes: data[offset : offset + nbytes])

    def read_of(self, place: dict[str, Any]) -> Any:
        return self.storage(place).read


def request(
    key: str = "0", dtype: str = "float32", shape: tuple[int, ...] = (2,), **more: Any
) -> dict[str, Any]:
    itemsize = 8 if dtype.endswith("64") else 1 if dtype.endswith("8") else 4
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    plain = {
        "dtype": dtype,
        "itemsize": itemsize,
        "shape": shape,
        "stride": strides,
        "offset": 0,
        "swapped": False,
    }
    return {**plain, "place": {"key": key}, **more}


def test_what_cannot_be_true_is_refused() -> None:
    cases = (
        {"stride": [-1]},
        {"shape": [-2]},
        {"offset": -1},
        {"stride": [1, 1]},
        {"dtype": "int4"},
        {"dtype": "nothing"},
    )
    for wrong in cases:
        with pytest.raises(ValuesError, match=r"cannot be true|not known"):
            view_of(request() | wrong)


def test_small_tensors_are_read_in_the_order_of_rows() -> None:
    numbers = np.arange(6, dtype=np.float32)
    opened: Any = Bytes(**{"0": numbers.tobytes()})
    turned = request(shape=(3, 2)) | {"stride": [1, 3]}
    assert whole_array(turned, opened, 6).tolist() == [0, 3, 1, 4, 2, 5]
    assert whole_array(request(shape=(0,)), opened, 6).size == 0
    with pytest.raises(ValuesError, match="more than 5 elements"):
        whole_array(turned, opened, 5)


def test_each_channel_has_its_scale_and_its_place() -> None:
    opened: Any = Bytes(q=bytes(12), s=np.array([0.5, 0.25]).tobytes(), z=np.array([1, 2]).tobytes())
    scales, zeros = request("s", "float64"), request("z", "int64")
    whole = request("q", "quint8", (3, 2, 2), axis=1, scales=scales, zero_points=zeros)
    first, second = channels_of(whole, opened)
    assert (first.view.shape, first.view.offset, first.view.first) == ((3, 1, 2), 0, 0)
    assert (second.view.shape, second.view.offset, second.view.first) == ((3, 1, 2), 2, 2)
    assert second.coded is not None
    assert second.coded[:2] == (0.25, 2)
    with pytest.raises(ValuesError, match="3 channels, and 2 scales"):
        channels_of({**whole, "axis": 0}, opened)
    (all_,) = channels_of(request("q", "quint8", scale=0.5, zero_point=3), opened)
    assert all_.coded is not None
    assert channels_of(request(), opened)[0].coded is None
