"""NumPy's arrays and scalars, and bytes, as pickles spell them.

An array is `_reconstruct(...)` with the state (version, shape, dtype, Fortran order, data) of
`array_reduce` in NumPy's `numpy/_core/src/multiarray/methods.c`, or since protocol 5
`_frombuffer(data, dtype, shape, order)`; a scalar is `scalar(dtype, data)`. Protocol 2 has no bytes:
Python 3 writes them as a text to be encoded in Latin-1.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from inspector.pickles.values import Call, Global, Value

_KINDS = {
    "f": "float",
    "i": "int",
    "u": "uint",
    "c": "complex",
    "b": "bool",
    "M": "datetime",
    "m": "timedelta",
}
_TEXT_KINDS = {"U": "str", "S": "bytes", "V": "void", "O": "object"}
_SMALL_VOIDS = {"V1": "void8", "V2": "void16"}  # what ml_dtypes has NumPy write
_FORMATS = {
    "f2": "e",
    "f4": "f",
    "f8": "d",
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
    "b1": "?",
    "c8": "ff",
    "c16": "dd",
}
_MOST_DIMENSIONS = 64
_MOST_HEAD_NBYTES = 200
_MOST_CODE = 4  # a letter and two digits are less
_ENCODE = "_codecs.encode"
_DTYPE = "numpy.dtype"
_BYTES = frozenset({_ENCODE, "builtins.bytes", "builtins.bytearray"})
# NumPy 2 renamed `numpy.core`. Whole names: `evil.multiarray.scalar` makes something else.
RECONSTRUCTS = frozenset({"numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"})
FROM_BUFFERS = frozenset({"numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer"})
_SCALARS = frozenset({"numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar"})
DATA_MAKERS = RECONSTRUCTS | FROM_BUFFERS | _SCALARS | _BYTES | {_DTYPE}
"""Functions whose arguments are data, and which do nothing but make a value of it."""
_LATIN_1 = ("latin1", "latin-1")


class Array(NamedTuple):
    """What a pickle tells of an array.

    Attributes:
        items: The elements of an array of objects, else None.
    """

    dtype: str
    shape: tuple[int, ...]
    items: list[Value] | None


class Bytes(NamedTuple):
    """Some bytes: how many, and the first of them."""

    nbytes: int
    head: bytes


class Scalar(NamedTuple):
    """One element: its type and, where that is a number, the number."""

    dtype: str
    number: bool | float | complex | None


def describe_array(value: Value) -> Array | None:
    """Read a value as a NumPy array; None if it is none."""
    name = _function_of(value)
    if not isinstance(value, Call) or not isinstance(value.args, tuple):
        return None
    if name in RECONSTRUCTS and isinstance(value.state, tuple) and len(value.state) == 5:
        _, shape, dtype, _, data = value.state
        return _array(dtype, shape, data)
    if name in FROM_BUFFERS and len(value.args) == 4:
        data, dtype, shape, _ = value.args
        return _array(dtype, shape, data)
    return None


def describe_scalar(value: Value) -> Scalar | None:
    """Read a value as a NumPy scalar; None if it is none."""
    if not isinstance(value, Call) or _function_of(value) not in _SCALARS:
        return None
    args = value.args
    if not isinstance(args, tuple) or len(args) != 2:
        return None
    code, order = _dtype(args[0])
    return Scalar(_name_of(code), _number(code, order, describe_bytes(args[1])))


def describe_bytes(value: Value) -> Bytes | None:
    """Read bytes in any of their spellings; None if they are none, or too long to be kept."""
    if isinstance(value, bytes):
        return Bytes(len(value), value[:_MOST_HEAD_NBYTES])
    name = _function_of(value)
    if not isinstance(value, Call) or value.state is not None or name not in _BYTES:
        return None
    args = value.args if isinstance(value.args, tuple) else (None, None)
    if len(args) == 2:
        text, encoding = args
        return _encoded(text) if isinstance(text, str) and encoding in _LATIN_1 else None
    first = args[0] if args else b""
    if isinstance(first, bytes) or (name != _ENCODE and _function_of(first) == _ENCODE):
        return describe_bytes(first)  # bytearray(bytes), the bytes themselves spelled out in protocol 2
    return None


def _encoded(text: str) -> Bytes:
    return Bytes(len(text), text[:_MOST_HEAD_NBYTES].encode("latin-1", "replace"))


def _function_of(value: Value) -> str:
    return value.func.present if isinstance(value, Call) and isinstance(value.func, Global) else ""


def _array(dtype: Value, shape: Value, data: Value) -> Array | None:
    if not isinstance(shape, tuple) or len(shape) > _MOST_DIMENSIONS:
        return None
    sizes = tuple(size for size in shape if type(size) is int and 0 <= size < 1 << 63)
    if len(sizes) < len(shape):
        return None
    return Array(_name_of(_dtype(dtype)[0]), sizes, data if isinstance(data, list) else None)


def _dtype(value: Value) -> tuple[str, str]:
    """Read `numpy.dtype('f4', False, True)` and its state (version, byte order, ...) as (code, order)."""
    if not isinstance(value, Call) or _function_of(value) != _DTYPE or not isinstance(value.args, tuple):
        return "", "<"
    code = value.args[0] if value.args else None
    order = value.state[1] if isinstance(value.state, tuple) and len(value.state) > 1 else None
    return (code if isinstance(code, str) else ""), (">" if order == ">" else "<")


def _name_of(code: str) -> str:
    kind = code[:1]
    if kind in _TEXT_KINDS:
        return _SMALL_VOIDS.get(code, _TEXT_KINDS[kind])
    size = code[1:_MOST_CODE]  # a file can write a million digits
    if kind not in _KINDS or not size.isascii() or not size.isdigit() or len(code) >= _MOST_CODE:
        return "?"
    return "bool" if kind == "b" else f"{_KINDS[kind]}{8 * int(size)}"


def _number(code: str, order: str, data: Bytes | None) -> bool | float | complex | None:
    form = _FORMATS.get(code)
    if form is None or data is None or struct.calcsize(order + form) != data.nbytes:
        return None
    parts = struct.unpack(order + form, data.head)
    return complex(*parts) if len(parts) == 2 else parts[0]
