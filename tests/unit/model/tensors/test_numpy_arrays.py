"""NumPy's arrays and scalars, as NumPy pickles them."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest

from inspector.model.tensors.numpy_arrays import describe_array, describe_bytes, describe_scalar
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Blob, Call, Global, Value
from tests.sweep import table
from tests.unit.model.making import saved

np = pytest.importorskip("numpy")


def inert(value: Any, protocol: int) -> Value:
    return read_pickle(pickle.dumps(value, protocol)).root


@table("protocol", range(2, 6))
@table(
    "dtype",
    ["?", "i1", "<i2", ">i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", ">f8", "c8", "c16", "M8[s]", "m8[D]"],
)
def test_arrays(dtype: str, protocol: int) -> None:
    array = np.zeros((2, 3), dtype)
    found = describe_array(inert(array, protocol))
    assert (found.shape, found.items) == ((2, 3), None)
    assert found.dtype == array.dtype.name.partition("[")[0]


@table("protocol", range(2, 6))
@table(
    ("values", "name"),
    [(["a", "bc"], "str"), ([b"a"], "bytes"), ([(1, 2.0)], "void"), ([1, "x", None], "object")],
)
def test_other_elements(values: list[Any], name: str, protocol: int) -> None:
    dtype = {"void": [("a", "f4"), ("b", "i8")], "object": object}.get(name)
    found = describe_array(inert(np.array(values, dtype), protocol))
    assert (found.dtype, found.shape) == (name, (len(values),))
    assert found.items == (values if name == "object" else None)


@table("protocol", [2, 4])
@table("kind", ["float64", "float32", "float16", "int64", "int8", "uint8", "bool", "complex128"])
def test_scalars_show_their_number(kind: str, protocol: int) -> None:
    number = np.dtype(kind).type(1)
    found = describe_scalar(inert(number, protocol))
    assert (found.dtype, found.number) == (kind, 1)


def test_scalars_without_a_number() -> None:
    for value, name in ((np.datetime64("2026-01-01"), "datetime64"), (np.str_("x"), "str")):
        found = describe_scalar(inert(value, 2))
        assert (found.dtype, found.number) == (name, None)


def test_big_endian_numbers() -> None:
    big = np.zeros(1, ">i4")
    big[0] = 258
    found = describe_scalar(inert(big[0], 2))
    assert found.number == 258


@pytest.mark.torch
def test_leaves_of_a_checkpoint(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    value = {
        "array": np.zeros((2, 3), np.float32),
        "scalar": np.float64(0.25),
        "objects": np.array([torch.zeros(2), "x"], object),
        "words": np.array(["x"], object),
        "state": np.random.default_rng(0).bit_generator.state,
    }
    checkpoint = saved(tmp_path, value)
    values = {leaf.path: (leaf.type, leaf.text) for leaf in checkpoint.values}
    assert values["array"] == ("numpy.ndarray", "float32 2 \u00d7 3")
    assert values["scalar"] == ("numpy.float64", "0.25")
    assert values["words"] == ("numpy.ndarray", "object 1")
    assert values["objects/1"] == ("str", "x")
    assert [tensor.path for tensor in checkpoint.tensors] == ["objects/0"]
    assert not [path for path in values if "numpy" in path]


# --- bytes --------------------------------------------------------------------------------------------------


@table("protocol", range(2, 6))
@table("value", [b"", b"abc\0\xff", bytearray(b"xyz"), bytearray(), b"long" * 100])
def test_bytes_in_any_spelling(value: Any, protocol: int) -> None:
    found = describe_bytes(inert(value, protocol))
    assert (found.nbytes, found.head) == (len(value), bytes(value[:200]))


def call(dotted: str, *args: Value) -> Call:
    module, _, name = dotted.rpartition(".")
    return Call(Global(module, name), args, "reduce")


NO_BYTES: list[Value] = [
    1,
    "text",
    call("mine.encode", "x", "latin1"),
    call("_codecs.encode", "x", "utf-7"),
    call("_codecs.encode", 5, "latin1"),
    call("_codecs.encode", Blob("text", 0, 5), "latin1"),
    call("builtins.bytearray", 7),
    call("builtins.bytearray", Blob("bytes", 0, 5)),
    Call(Global("_codecs", "encode"), "x", "reduce"),
]


@table("value", NO_BYTES)
def test_what_is_no_bytes(value: Value) -> None:
    assert describe_bytes(value) is None


def test_bytes_that_are_given_a_state_are_an_object() -> None:
    value = call("_codecs.encode", "x", "latin1")
    value.state = 1
    assert describe_bytes(value) is None


# --- malformed arrays ---------------------------------------------------------------------------------------

DTYPE = call("numpy.dtype", "f4", False, True)


def array(*state: Value) -> Call:
    value = call("numpy.core.multiarray._reconstruct", Global("numpy", "ndarray"), (0,), b"b")
    value.state = state
    return value


@table(
    "value",
    [
        call("numpy.core.multiarray._reconstruct"),
        array(1, (2,), DTYPE),
        array(1, 2, DTYPE, False, b""),
        array(1, (-2,), DTYPE, False, b""),
        array(1, (1 << 63,), DTYPE, False, b""),
        array(1, ("x",), DTYPE, False, b""),
        array(1, (1,) * 65, DTYPE, False, b""),
        call("numpy._core.numeric._frombuffer", b"", DTYPE),
        Call(Global("numpy._core.multiarray", "_reconstruct"), None, "reduce"),
        1,
    ],
)
def test_malformed_arrays_are_none(value: Value) -> None:
    assert describe_array(value) is None


@table(
    "dtype",
    [
        1,
        call("numpy.dtype"),
        call("numpy.dtype", 1),
        call("numpy.dtype", "f٣"),
        call("x.dtype", "f4"),
        call("numpy.dtype", "q8"),
        call("numpy.dtype", "f123"),
        Call(Global("numpy", "dtype"), 1, "reduce"),
    ],
)
def test_unknown_types_of_elements(dtype: Value) -> None:
    found = describe_array(array(1, (2,), dtype, False, b""))
    assert found.dtype == "?"


def test_malformed_scalars() -> None:
    assert describe_scalar(call("numpy.core.multiarray.scalar", DTYPE)) is None
    assert describe_scalar(Call(Global("numpy.core.multiarray", "scalar"), 1, "reduce")) is None
    short = describe_scalar(call("numpy.core.multiarray.scalar", DTYPE, b"xx"))
    assert short.number is None
    lost = describe_scalar(call("numpy.core.multiarray.scalar", DTYPE, Blob("bytes", 0, 4)))
    assert lost.number is None


def test_protocol_five_is_used_by_numpy() -> None:
    assert b"_frombuffer" in pickle.dumps(np.zeros(3), 5)
    assert io.BytesIO(pickle.dumps(np.zeros(3), 2)).read(2) == b"\x80\x02"
