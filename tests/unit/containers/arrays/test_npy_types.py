"""Element types, against NumPy itself."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from inspector.containers.numpy_types import ArrayType, array_call, parse_shape, parse_type
from inspector.model.tensors.numpy_arrays import describe_array

WRITTEN: list[Any] = [
    *("<f4", ">f8", "<c16", "|b1", "|i1", "<u8", "<U7", "|S5", "<M8[ns]", "<m8[10us]", "|V4", "<f16", "|O"),
    *("<U0", "|S0"),
    [("a", "<f4"), ("b", "<i4", (2, 3)), ("c", "|O")],
    [(("a title", "a"), ">f8"), ("n", [("x", "<i2"), ("y", "|V3"), ("z", [("w", "<f8", (2,))], (3,))])],
    np.dtype({"names": ["a"], "formats": ["<f4"], "offsets": [4], "itemsize": 12}),
]


def sizes(kind: ArrayType) -> tuple[Any, ...]:
    fields = tuple((field.name, field.offset, sizes(field.type)) for field in kind.fields)
    return kind.nbytes, kind.has_objects, kind.shape, fields


def truth(dtype: np.dtype[Any]) -> tuple[Any, ...]:
    base, shape = dtype.subdtype or (dtype, ())
    fields = tuple(
        (name, base.fields[name][1], truth(base.fields[name][0])) for name in base.names or () if base.fields
    )
    return dtype.itemsize, dtype.hasobject, shape, fields


def test_what_numpy_writes_is_read_as_numpy_reads_it() -> None:
    for written in WRITTEN:
        dtype = np.dtype(written)
        found = parse_type(np.lib.format.dtype_to_descr(dtype))
        assert found is not None, written
        assert sizes(found) == truth(dtype), written


def test_torch_has_some_of_them() -> None:
    for text, dtype, swap in (("<f4", "float32", 1), (">f8", "float64", 8), ("|b1", "bool", 1)):
        found = parse_type(text)
        assert found is not None
        assert found.element is not None
        assert (found.element.dtype, found.element.swap) == (dtype, swap)
    for text in ("<U7", "<M8[ns]", "|V4", "<f16"):
        found = parse_type(text)
        assert found is not None
        assert found.element is None


def test_what_numpy_does_not_write_is_no_type() -> None:
    deep: Any = "<f4"
    for _ in range(40):
        deep = [("x", deep)]
    pairs: Any = "<f4"
    for _ in range(40):
        pairs = (pairs, (1,))
    for wrong in (
        *("", "f", "<f", "<f99999999999", "float32 evil", "<f4]", 3, None, {}, b"<f4"),
        *([("a",)], [("a", "<f4", (2,), 3)], ["a"], [(3, "<f4")], [("a", "nope")], [("a", "<f4", (-1,))]),
        *(deep, pairs, [("a", "<f4")] * 10_001, ("<f4", "x"), ("nope", (2,)), ("<f8", (1 << 62,))),
        [("a", "|V9", (1 << 59,)), ("b", "|V9", (1 << 59,))],
    ):
        assert parse_type(wrong) is None, repr(wrong)[:80]


def test_shapes() -> None:
    assert parse_shape((2, 0, 3)) == (2, 0, 3)
    assert parse_shape(()) == ()
    for wrong in ([2], (True,), (-1,), (1 << 63,), (1 << 40, 1 << 40), (1,) * 65, (2.0,), None):
        assert parse_shape(wrong) is None


def test_arrays_that_torch_has_not_are_shown_as_numpy_pickles_them() -> None:
    for text, shape, said in (("<M8[ns]", (3,), "datetime64"), ("<U7", (), "str"), ("|V4", (2,), "void")):
        kind = parse_type(text)
        assert kind is not None
        found = describe_array(array_call(kind, shape, None))
        assert found is not None
        assert (found.dtype, found.shape) == (said, shape)
    nested = parse_type((([("a", "<f4")]), (2,)))
    assert nested is not None
    assert prod(nested.shape) == 2
    assert describe_array(array_call(nested, (3,), None)) is not None
