"""Elements that are the same number in other bits: NaN, of which there are many, and -0.0, which is 0.0."""

from __future__ import annotations

from typing import Literal, NamedTuple

Code = Literal["B", "H", "I", "Q"]


class Form(NamedTuple):
    """How a type of floating-point numbers is written.

    Attributes:
        code: Of a whole number of its size, as `memoryview.cast` takes it.
        size: Its bytes.
        magnitude: The bits without the sign.
        largest: The magnitude above which it is NaN.
    """

    code: Code
    size: int
    magnitude: int
    largest: int


_DOUBLE = Form("Q", 8, (1 << 63) - 1, 0x7FF << 52)
_SINGLE = Form("I", 4, (1 << 31) - 1, 0xFF << 23)
_HALF = Form("H", 2, 0x7FFF, 0x7C00)
FORMS: dict[str, Form] = {
    "float64": _DOUBLE,
    "complex128": _DOUBLE,
    "float32": _SINGLE,
    "complex64": _SINGLE,
    "float16": _HALF,
    "complex32": _HALF,
    "bfloat16": Form("H", 2, 0x7FFF, 0x7F80),
    "float8_e5m2": Form("B", 1, 0x7F, 0x7C),
    "float8_e4m3fn": Form("B", 1, 0x7F, 0x7E),
}
"""Types with several spellings of a number; of all others, other bits are another number."""
_PAIRS = "float4_e2m1fn_x2"
# Each byte of two numbers of 4 bits with 0.0 in the place of -0.0.
_UNSIGNED_ZEROS = bytes(
    (code & 0x0F if code & 0x0F != 0x08 else 0) | (code & 0xF0 if code & 0xF0 != 0x80 else 0)
    for code in range(256)
)


def differs_in_numbers(one: bytes, other: bytes, dtype: str) -> bool:
    """Return whether two blocks of elements, whose bytes differ, hold another number anywhere."""
    if dtype == _PAIRS:
        return one.translate(_UNSIGNED_ZEROS) != other.translate(_UNSIGNED_ZEROS)
    form = FORMS.get(dtype)
    if form is None:
        return True
    magnitude, largest = form.magnitude, form.largest
    pairs = zip(memoryview(one).cast(form.code), memoryview(other).cast(form.code), strict=True)
    for left, right in pairs:
        if left != right:
            size, other_size = left & magnitude, right & magnitude
            if not (size > largest and other_size > largest) and (size or other_size):
                return True
    return False
