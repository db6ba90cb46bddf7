from __future__ import annotations

import struct

from inspector.diff.content import FORMS, differs_in_numbers

# Two spellings of NaN and two of zero, and a number, by type.
CODES = {
    "float64": ("<Q", 0x7FF8 << 48, 0xFFF8000000000001, 1 << 63, 0x3FF0 << 48),
    "float32": ("<I", 0x7FC00000, 0xFFC00001, 1 << 31, 0x3F800000),
    "float16": ("<H", 0x7E00, 0xFE01, 0x8000, 0x3C00),
    "bfloat16": ("<H", 0x7FC0, 0xFFC1, 0x8000, 0x3F80),
    "float8_e5m2": ("<B", 0x7D, 0xFF, 0x80, 0x3C),
    "float8_e4m3fn": ("<B", 0x7F, 0xFF, 0x80, 0x38),
}
INFINITY = {
    "float64": 0x7FF0 << 48,
    "float32": 0x7F800000,
    "float16": 0x7C00,
    "bfloat16": 0x7F80,
    "float8_e5m2": 0x7C,
}


def test_nan_is_nan_and_zero_is_zero_whatever_their_bits() -> None:
    for dtype, (code, nan, other_nan, zero, one) in CODES.items():
        size = struct.calcsize(code)
        largest = FORMS[dtype].largest

        def differs(left: int, right: int, code: str = code, size: int = size, dtype: str = dtype) -> bool:
            blocks = [bytes(size) + struct.pack(code, number) for number in (left, right)]
            return differs_in_numbers(*blocks, dtype)

        assert not differs(nan, other_nan), dtype
        assert not differs(0, zero), dtype
        assert differs(nan, one), dtype
        assert differs(one, nan), dtype
        assert differs(0, one), dtype
        assert differs(zero, one), dtype
        assert differs(one, one | zero), dtype
        assert differs(largest, nan), dtype  # infinity, or the largest number where there is none
        assert INFINITY.get(dtype, largest) == largest


def test_equal_elements_beside_a_difference_are_passed_over() -> None:
    one, other = struct.pack("<3f", 1, 0.0, 2), struct.pack("<3f", 1, -0.0, 3)
    assert differs_in_numbers(one, other, "float32")
    assert not differs_in_numbers(one[:8], other[:8], "float32")
    assert not differs_in_numbers(one[:8], other[:8], "complex64")


def test_two_numbers_in_a_byte_are_told_apart() -> None:
    def differs(left: int, right: int) -> bool:
        return differs_in_numbers(bytes([left]), bytes([right]), "float4_e2m1fn_x2")

    assert not differs(0x81, 0x01)
    assert not differs(0x18, 0x10)
    assert not differs(0x88, 0x00)
    assert differs(0x81, 0x82)
    assert differs(0x91, 0x11)
    assert differs(0x09, 0x01)


def test_other_types_have_one_spelling_of_each_number() -> None:
    assert differs_in_numbers(b"\x00", b"\x80", "int8")
    assert differs_in_numbers(b"\x00", b"\x80", "float8_e4m3fnuz")
