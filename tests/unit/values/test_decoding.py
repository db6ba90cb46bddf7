"""Values of element types; tests/torch/test_values.py compares all of them with torch."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from inspector.containers.element_types import ITEMSIZES
from inspector.values.decoding import decode, is_decodable


def test_types_without_known_values_are_refused() -> None:
    unknown = {name for name in ITEMSIZES if not is_decodable(name)}
    assert unknown == {f"{sign}int{bits}" for bits in range(1, 8) for sign in ("", "u")}
    for name in (*unknown, "q4_0", "float6_e2m3"):
        with pytest.raises(ValueError, match="not known"):
            decode(b"\0", name)


def test_every_type_takes_its_bytes() -> None:
    for name, nbytes in ITEMSIZES.items():
        if is_decodable(name):
            assert decode(bytes(nbytes * 4), name).size in {4, 8, 16}, name


def test_the_first_byte_may_be_the_most_significant() -> None:
    cases = {
        "float32": struct.pack(">f", -2.5),
        "int64": struct.pack(">q", -3),
        "bfloat16": b"\xc0\x20",
        "complex32": struct.pack(">ee", 1, 2),
        "complex64": struct.pack(">ff", 1, 2),
        "uint8": b"\x07",
    }
    found = {name: decode(data, name, swapped=True).item() for name, data in cases.items()}
    expected = {
        "float32": -2.5,
        "int64": -3,
        "bfloat16": -2.5,
        "complex32": 1 + 2j,
        "complex64": 1 + 2j,
        "uint8": 7,
    }
    assert found == expected


def test_several_values_of_a_byte_come_from_its_lowest_bits_on() -> None:
    assert decode(b"\x21", "float4_e2m1fn_x2").tolist() == [0.5, 1.0]
    assert decode(b"\x9f", "float4_e2m1fn_x2").tolist() == [-6.0, -0.5]
    assert decode(b"\x21", "quint4x2").tolist() == [1, 2]
    assert decode(b"\xe4", "quint2x4").tolist() == [0, 1, 2, 3]


def test_values_keep_the_type_that_holds_them() -> None:
    kinds = {
        name: decode(bytes(16), name).dtype for name in ("float16", "bfloat16", "complex32", "bool", "uint64")
    }
    assert kinds == {
        "float16": np.float16,
        "bfloat16": np.float32,
        "complex32": np.complex64,
        "bool": np.bool_,
        "uint64": np.uint64,
    }
