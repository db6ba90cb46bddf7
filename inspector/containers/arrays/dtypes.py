"""NumPy's element types: which of torch's each is, and how its bytes stand in a file."""

from __future__ import annotations

from typing import NamedTuple

# By the code without its byte order: torch's name, bytes of an element, bytes of each number.
_DTYPES: dict[str, tuple[str, int, int]] = {
    "f2": ("float16", 2, 2),
    "f4": ("float32", 4, 4),
    "f8": ("float64", 8, 8),
    "i1": ("int8", 1, 1),
    "i2": ("int16", 2, 2),
    "i4": ("int32", 4, 4),
    "i8": ("int64", 8, 8),
    "u1": ("uint8", 1, 1),
    "u2": ("uint16", 2, 2),
    "u4": ("uint32", 4, 4),
    "u8": ("uint64", 8, 8),
    "b1": ("bool", 1, 1),
    "c8": ("complex64", 8, 4),
    "c16": ("complex128", 16, 8),
}


class ElementType(NamedTuple):
    """An element type that torch has, too.

    Attributes:
        dtype: torch's name.
        itemsize: Bytes of an element.
        swap: Bytes of each number that stand the other way round; 1 where none do.
    """

    dtype: str
    itemsize: int
    swap: int


def element_type(code: str, order: str) -> ElementType | None:
    """Return the element type of a code of NumPy's, such as `f4`; None where torch has none.

    Args:
        code: The kind and the size.
        order: `>` for the most significant byte first.
    """
    found = _DTYPES.get(code)
    if found is None:
        return None
    dtype, itemsize, number = found
    return ElementType(dtype, itemsize, number if order == ">" else 1)


def contiguous_stride(shape: tuple[int, ...], *, is_fortran: bool) -> tuple[int, ...] | None:
    """Return the steps of an array in elements; None for those of C's order, which need not be said."""
    if not is_fortran or len(shape) < 2:
        return None
    steps, step = [], 1
    for size in shape:
        steps.append(step)
        step *= max(size, 1)
    return tuple(steps)
