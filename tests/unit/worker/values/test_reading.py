"""Requests that cannot be true are refused before memory is laid out by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inspector.errors import ValuesError
from inspector.worker.values.reading import channels_of, view_of, whole_array


class Bytes:
    """Stands for an open file whose storages are given."""

    def __init__(self, **storages: bytes) -> None:
        self.storages = storages

    def read_of(self, place: dict[str, Any]) -> Any:
        data = self.storages[place["key"]]
        return lambda offset, nbytes: data[offset : offset + nbytes]


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
