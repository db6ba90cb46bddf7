"""NumPy's arrays and scalars and bytes, told from pickles that NumPy and Python really write."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from inspector.model.arrays import Array, Bytes, Scalar, describe_array, describe_bytes, describe_scalar
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call, Global, Value


def read(value: object, protocol: int = 2) -> Value:
    return read_pickle(pickle.dumps(value, protocol)).root


def call(name: str, *args: Value, state: Value = None) -> Call:
    module, _, short = name.rpartition(".")
    made = Call(Global(module, short), args, "reduce")
    made.state = state
    return made


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("array", "dtype", "shape"),
    [
        (np.zeros((2, 3), "float32"), "float32", (2, 3)),
        (np.zeros(4, ">i8"), "int64", (4,)),
        (np.array(["a", "bc"]), "str", (2,)),
        (np.array(True), "bool", ()),
    ],
)
def test_array(array: np.ndarray, dtype: str, shape: tuple[int, ...], protocol: int) -> None:
    assert describe_array(read(array, protocol)) == Array(dtype, shape, None)


def test_array_of_objects_has_items() -> None:
    found = describe_array(read(np.array([{"a": 1}, None], dtype=object)))
    assert found is not None
    assert found.dtype == "object"
    assert found.items is not None
    assert len(found.items) == 2


@pytest.mark.parametrize(
    ("scalar", "dtype"),
    [
        (np.float32(1.5), "float32"),
        (np.float64(-2.0), "float64"),
        (np.int16(-7), "int16"),
        (np.uint64(2**63), "uint64"),
        (np.bool_(True), "bool"),
        (np.complex64(1 + 2j), "complex64"),
    ],
)
def test_scalar(scalar: np.generic, dtype: str) -> None:
    assert describe_scalar(read(scalar)) == Scalar(dtype, scalar.item())


def test_scalar_of_another_byte_order() -> None:
    big = call("numpy.dtype", "i4", False, True, state=(3, ">", None, None, None, -1, -1, 0))
    assert describe_scalar(call("numpy.core.multiarray.scalar", big, b"\0\0\0\7")) == Scalar("int32", 7)


@pytest.mark.parametrize("data", [b"\0", "text", None])
def test_scalar_whose_data_does_not_fit_has_no_number(data: Value) -> None:
    dtype = call("numpy.dtype", "f4", False, True)
    assert describe_scalar(call("numpy.core.multiarray.scalar", dtype, data)) == Scalar("float32", None)


@pytest.mark.parametrize(
    "dtype",
    [
        None,
        call("numpy.dtype"),
        call("numpy.dtype", 4),
        call("numpy.other", "f4"),
        call("numpy.dtype", "f444"),
    ],
)
def test_scalar_of_an_unknown_type(dtype: Value) -> None:
    assert describe_scalar(call("numpy.core.multiarray.scalar", dtype, b"")) == Scalar("?", None)


@pytest.mark.parametrize(
    "value",
    [
        None,
        call("numpy.core.multiarray.scalar"),
        Call(Global("numpy.core.multiarray", "scalar"), None, "reduce"),
        Call(None, (1, 2), "reduce"),
    ],
)
def test_what_is_no_scalar(value: Value) -> None:
    assert describe_scalar(value) is None


def reconstruct(*state: Value) -> Call:
    return call("numpy._core.multiarray._reconstruct", None, (0,), b"b", state=state)


@pytest.mark.parametrize(
    "value",
    [
        None,
        Call(Global("numpy._core.multiarray", "_reconstruct"), None, "reduce"),
        call("numpy._core.multiarray._reconstruct"),
        reconstruct(1, (2,)),
        reconstruct(1, None, None, False, b""),
        reconstruct(1, (-1,), None, False, b""),
        reconstruct(1, (1 << 63,), None, False, b""),
        reconstruct(1, ("2",), None, False, b""),
        reconstruct(1, (1,) * 65, None, False, b""),
        call("numpy._core.numeric._frombuffer", b""),
        call("somewhere.numeric._frombuffer", b"", None, (1,), "C"),
    ],
)
def test_what_is_no_array(value: Value) -> None:
    assert describe_array(value) is None


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("data", [b"", b"abc\xff", bytes(1000)])
def test_bytes(data: bytes, protocol: int) -> None:
    assert describe_bytes(read(data, protocol)) == Bytes(len(data), data[:200])


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_bytearray(protocol: int) -> None:
    assert describe_bytes(read(bytearray(b"abc"), protocol)) == Bytes(3, b"abc")


@pytest.mark.parametrize(
    "value",
    [
        1,
        call("builtins.bytearray", 5),
        call("somewhere.bytes", b""),
        call("_codecs.encode", "a", "utf-8"),
        call("_codecs.encode", 1, "latin1"),
        Call(Global("builtins", "bytes"), None, "reduce"),
        call("builtins.bytearray", b"", state=1),
    ],
)
def test_what_is_no_bytes(value: Value) -> None:
    assert describe_bytes(value) is None


def test_bytes_that_latin_1_does_not_have_are_replaced() -> None:
    assert describe_bytes(call("_codecs.encode", "\u0416a", "latin1")) == Bytes(2, b"?a")
