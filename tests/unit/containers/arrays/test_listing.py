"""Arrays as tensors, against what NumPy reads of the same bytes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from inspector.containers.container import Extent
from inspector.containers.npy import Arrays, read_header
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import ExtentReader
from inspector.errors import ContainerError
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.values import Call, Dict, StoredTensor, Value
from inspector.records import replace


def listed(array: Any, limits: Any = DEFAULT_LIMITS, lost: int = 0) -> tuple[Value, Arrays, BytesSource]:
    out = io.BytesIO()
    np.save(out, array)
    source = BytesSource(out.getvalue(), "a.npy")
    header = read_header(source, lambda _: None)
    left = source.nbytes - header.start - lost
    arrays = Arrays(limits)
    return arrays.add("0", header, Extent(header.start, left, left, 0, 0)), arrays, source


def elements(found: StoredTensor, arrays: Arrays, source: BytesSource) -> np.ndarray:
    """The elements of a tensor as torch would view them."""
    place = arrays.stored["0"]
    extent = arrays.extents.get("0") or Extent(place.offset or 0, place.nbytes, place.nbytes, 0, 0)
    data = b"".join(ExtentReader(source).contents(extent))
    kind = np.dtype(found.dtype)
    flat = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
    stride = found.stride
    if stride is None:
        return flat[found.offset :][: int(np.prod(found.shape))].reshape(found.shape)
    steps = [step * kind.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(flat[found.offset :], found.shape, steps)


@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_are_those_that_numpy_reads(order: Any) -> None:
    for kind in ("<f4", ">f8", "<i2", ">u4", "|b1", "<c8", ">c16", "<f2"):
        for shape in ((), (3,), (2, 3), (2, 3, 4), (0, 3)):
            array = np.array(np.arange(np.prod(shape)).reshape(shape), kind, order=order)
            found, arrays, source = listed(array)
            assert isinstance(found, StoredTensor)
            assert found.shape == shape
            if array.size:
                assert np.array_equal(elements(found, arrays, source), array), (kind, shape)
            assert arrays.is_swapped == (kind[0] == ">")


def test_fields_are_views_where_torch_could_view_them() -> None:
    kind = [
        ("a", "<f8"),
        ("b", "<i8", (2, 2)),
        ("n", [("x", "<f4"), ("y", "<f4")]),
        ("s", "<U2"),
        ("big", ">f8"),
    ]
    for order in ("C", "F"):
        array = np.zeros((3, 2), kind, order=order)
        for name, values in (("a", 1.5), ("b", [[1, 2], [3, 4]])):
            array[name] = values
        array["n"]["y"][:] = np.arange(6).reshape(3, 2)
        found, arrays, source = listed(array)
        assert isinstance(found, Dict)
        values = dict(found.pairs)
        for name in ("a", "b"):
            value = values[name]
            assert isinstance(value, StoredTensor)
            assert np.array_equal(elements(value, arrays, source), array[name])
        nested = values["n"]
        assert isinstance(nested, Dict)
        inner = dict(nested.pairs)["y"]
        assert isinstance(inner, StoredTensor)
        assert np.array_equal(elements(inner, arrays, source), array["n"]["y"])
        assert isinstance(values["s"], Call)
        assert isinstance(values["big"], Call)
        assert arrays.storage_ids["0"].untyped
    packed, _, _ = listed(np.zeros(2, [("a", "|i1"), ("b", "<f4"), ("c", [("d", "<f8")], (2,))]))
    assert isinstance(packed, Dict)
    assert [type(value) for _, value in packed.pairs] == [StoredTensor, Call, Call]  # b stands across numbers


def test_arrays_of_arrays_keep_both_shapes() -> None:
    from inspector.containers.npy import Header
    from inspector.containers.numpy_types import parse_type

    kind = parse_type(("<f4", (2,)))
    assert kind is not None
    arrays = Arrays(DEFAULT_LIMITS)
    found = arrays.add("0", Header("1.0", kind, (3,), False, 0, False), Extent(0, 24, 24, 0, 0))
    assert isinstance(found, StoredTensor)
    assert (found.shape, found.stride, arrays.storage_ids["0"].numel) == ((3, 2), None, 6)


def test_what_torch_has_not_and_what_is_cut_has_no_bytes() -> None:
    found, arrays, _ = listed(np.array(["a", "bc"]))
    assert (isinstance(found, Call), arrays.storage_ids) == (True, {})
    _, arrays, _ = listed(np.ones(3), lost=1)
    assert (set(arrays.storage_ids), arrays.stored) == ({"0"}, {})
    with pytest.raises(ContainerError, match="more than 0 arrays"):
        listed(np.ones(3), replace(DEFAULT_LIMITS, storages=0))
