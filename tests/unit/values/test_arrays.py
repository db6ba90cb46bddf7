"""Arrays of views, whole and in part, as NumPy itself lays them over the same memory."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from inspector.errors import ValuesError
from inspector.values import arrays
from inspector.values.arrays import channels_of, read_array, view_of, whole_array
from inspector.values.tensor_bytes import StorageBytes


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


def some_index(chance: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    for size in shape[: chance.randint(0, len(shape))]:
        kind = chance.choice("isssn")
        if kind == "i" and size:
            found.append(chance.randrange(-size, size))
        elif kind == "n":
            found += [None, slice(None)]
        else:
            ends = [chance.choice([None, chance.randint(-size - 2, size + 2)]) for _ in range(2)]
            found.append(slice(*ends, chance.choice([None, 1, 2, 3, -1, -2])))
    if chance.random() < 0.3:
        found.append(...)
    return tuple(found)


def test_parts_of_views_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(2)
    numbers = np.arange(4000, dtype=np.int32)
    opened: Any = Bytes(**{"0": numbers.tobytes()})
    wrong, met = [], set()
    for turn in range(600):
        for name, small in (("_PIECE_NBYTES", 96), ("_GAP_NBYTES", 16), ("_STEP_NBYTES", 48)):
            monkeypatch.setattr(arrays, name, small if turn % 3 else 1 << 20)
        shape = tuple(chance.choice((0, 1, 2, 3, 5, 9)) for _ in range(chance.randint(0, 4)))
        stride = [chance.choice((0, 1, 2, 3, 7, 30, 90, 250)) for _ in shape]
        offset = chance.randint(0, 40)
        if offset + sum((max(size, 1) - 1) * step for size, step in zip(shape, stride, strict=True)) >= 4000:
            continue
        whole = as_strided(numbers[offset:], shape, [4 * step for step in stride])
        asked = request(dtype="int32", shape=shape) | {"stride": stride, "offset": offset}
        index = some_index(chance, shape)
        found, wanted = read_array(asked, opened, index), whole[index]
        met |= {type(found), found.size > 1}
        if type(found) is not type(wanted) or found.shape != wanted.shape or (found != wanted).any():
            wrong.append((asked, index))
    assert wrong == []
    assert met == {np.ndarray, np.int32, True, False}


def test_a_part_of_a_quantized_tensor_has_the_scales_of_its_channels() -> None:
    codes = np.arange(12, dtype=np.uint8)
    opened: Any = Bytes(q=codes.tobytes(), s=np.array([0.5, 0.25]).tobytes(), z=np.array([1, 2]).tobytes())
    scales, zeros = request("s", "float64"), request("z", "int64")
    whole = request("q", "quint8", (3, 2, 2), axis=1, scales=scales, zero_points=zeros)
    wanted = (codes.reshape(3, 2, 2) - np.array([[1], [2]])) * np.array([[0.5], [0.25]])
    for index in (..., (2,), (slice(None), 1), (0, slice(None, None, -1)), (..., 0), (1, 1, 1)):
        assert np.array_equal(read_array(whole, opened, index), wanted[index]), index


def test_nothing_is_read_before_or_behind_a_storage() -> None:
    storage = StorageBytes(4, lambda offset, nbytes: bytes(nbytes))
    for offset, nbytes in ((2, 3), (-1, 2), (5, 0)):
        with pytest.raises(ValuesError, match="past the 4 bytes"):
            storage.read(offset, nbytes)
        with pytest.raises(ValuesError, match="past the 4 bytes"):
            storage.read_into(offset, memoryview(bytearray(nbytes)))
    beyond = request(dtype="int32", shape=(3,))
    with pytest.raises(ValuesError, match="past the 8 bytes"):
        read_array(beyond, Bytes(**{"0": bytes(8)}), ...)  # type: ignore[arg-type]


def test_what_makes_no_array_is_refused() -> None:
    opened: Any = Bytes(**{"0": bytes(8)})
    for asked, why in (
        (request(layout="sparse_coo"), "a sparse tensor"),
        (request(dtype="quint4x2"), "share bytes"),
        (request(shape=(1 << 40,)) | {"stride": [0]}, "repeat 1 of the storage"),
    ):
        with pytest.raises(ValuesError, match=why):
            read_array(asked, opened)
