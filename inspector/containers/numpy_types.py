"""NumPy's element types and arrays, in the headers of its files and in pickles; which of torch's each is.

In a header stands `dtype.descr` (`dtype_to_descr` in NumPy's `numpy/lib/_format_impl.py`): a text such as
`<f4`, or a list of (name, type) and (name, type, shape). In a pickle an array is `_reconstruct(...)` with the
state (version, shape, dtype, Fortran order, data), see `array_reduce` in NumPy's
`numpy/_core/src/multiarray/methods.c`, or since protocol 5 `_frombuffer(data, dtype, shape, order)`. joblib
pickles an object in its place, and writes the bytes behind the instruction that completes it
(`NumpyArrayWrapper` in joblib's `numpy_pickle.py`).
"""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from inspector.pickles.values import Call, Dict, Global, StoredTensor, Value
from inspector.units import cut_text

# By the code without its byte order: torch's name, bytes of an element, bytes of each number.
_DTYPES: dict[str, tuple[str, int, int]] = {
    "f1": ("float8_e5m2", 1, 1),  # of ml_dtypes, which gives this one alone the kind of a float
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


VOIDS = {
    "V2": "bfloat16",
    "V1": "a float of 8 bits or fewer, or an integer of 4 or fewer",
}
"""What elements without a type probably are: ml_dtypes, which JAX uses, has NumPy write its own so."""
UNKNOWN_TO_NUMPY = frozenset({"f1", "W4"})
"""Codes of ml_dtypes that `numpy.load` refuses in the header that `numpy.save` wrote."""


class ElementType(NamedTuple):
    """An element type that torch has, too."""

    dtype: str
    itemsize: int
    swap: int  # bytes of each number that stand the other way round; 1 where none do


def element_type(code: str, order: str) -> ElementType | None:
    """Return the element type of a code of NumPy's, such as `f4`; None where torch has none."""
    found = _DTYPES.get(code)
    if found is None:
        return None
    dtype, itemsize, number = found
    return ElementType(dtype, itemsize, number if order == ">" else 1)


def contiguous_stride(shape: tuple[int, ...], *, is_fortran: bool) -> tuple[int, ...] | None:
    """Return the steps of an array in elements; None for those of C's order, which need not be said."""
    return steps_of(shape, is_fortran=True) if is_fortran and len(shape) > 1 else None


def steps_of(shape: tuple[int, ...], step: int = 1, *, is_fortran: bool = False) -> tuple[int, ...]:
    """Return the steps of an array by dimension, the smallest of which is given."""
    steps = []
    for size in shape if is_fortran else shape[::-1]:
        steps.append(step)
        step *= max(size, 1)
    return tuple(steps if is_fortran else steps[::-1])


# --- in the headers of files --------------------------------------------------------------------------------


_CODE = re.compile(r"([<>|=]?)([a-zA-Z])([0-9]{1,9})?(\[[^\]]{0,20}\])?")
_NDARRAY = Global("numpy", "ndarray")
_WIDE = 4  # bytes of a character
_MOST_FIELDS = 10_000
_MOST_DEPTH = 16
_MOST_DIMENSIONS = 64
_MOST = (1 << 63) - 1


class Field(NamedTuple):
    """One field of an element: its name, where it begins in the element, and its type."""

    name: str
    offset: int
    type: ArrayType


class ArrayType(NamedTuple):
    """One element type."""

    nbytes: int
    code: str = ""  # the code of a type without fields, without its byte order
    element: ElementType | None = None
    shape: tuple[int, ...] = ()  # the sizes of an element that is an array itself
    fields: tuple[Field, ...] = ()
    has_objects: bool = False  # whether elements are Python's objects, or hold some


def parse_type(descr: object, depth: int = 0) -> ArrayType | None:
    """Return the type that a header describes; None for what NumPy does not write."""
    if isinstance(descr, str):
        return _plain(descr)
    if isinstance(descr, tuple) and len(descr) == 2:  # an array as an element
        inner = parse_type(descr[0], depth + 1) if depth < _MOST_DEPTH else None
        return None if inner is None else _shaped(inner, descr[1])
    if not isinstance(descr, list) or depth >= _MOST_DEPTH or len(descr) > _MOST_FIELDS:
        return None
    fields: list[Field] = []
    has_objects = False
    end = 0
    for row in descr:
        found = _field(row, end, depth)
        if found is None or found.offset + found.type.nbytes > _MOST:
            return None
        end = found.offset + found.type.nbytes
        has_objects = has_objects or found.type.has_objects  # also without a name: only plain void is padding
        if found.name:
            fields.append(found)
    return ArrayType(end, fields=tuple(fields), has_objects=has_objects)


def _plain(text: str) -> ArrayType | None:
    parts = _CODE.fullmatch(text)
    if parts is None:
        return None
    order, kind, digits, unit = parts.groups()
    if kind == "O":
        return ArrayType(8, code="O", has_objects=True)
    if digits is None:
        return None
    nbytes = int(digits) * (_WIDE if kind == "U" else 1)
    element = None if unit else element_type(kind + digits, order)
    return ArrayType(nbytes, code=kind + digits, element=element)


def _field(row: object, offset: int, depth: int) -> Field | None:
    if not isinstance(row, tuple) or len(row) not in {2, 3}:
        return None
    name = row[0][1] if isinstance(row[0], tuple) and len(row[0]) == 2 else row[0]  # behind its title
    kind = parse_type(row[1], depth + 1)
    if kind is not None and len(row) == 3:
        kind = _shaped(kind, row[2])
    return Field(name, offset, kind) if isinstance(name, str) and kind is not None else None


def _shaped(inner: ArrayType, shape: object) -> ArrayType | None:
    sizes = parse_shape(shape if isinstance(shape, tuple) else (shape,))
    if sizes is None or inner.nbytes * prod(sizes) > _MOST:
        return None
    return inner._replace(nbytes=inner.nbytes * prod(sizes), shape=sizes + inner.shape)


def parse_shape(shape: object) -> tuple[int, ...] | None:
    """Return sizes that can be ones; None for anything else."""
    if not isinstance(shape, tuple) or len(shape) > _MOST_DIMENSIONS:
        return None
    sizes = tuple(size for size in shape if type(size) is int and 0 <= size <= _MOST)
    return sizes if len(sizes) == len(shape) and prod(sizes) <= _MOST else None


def array_call(kind: ArrayType, shape: tuple[int, ...], data: Value) -> Call:
    """Return an array that torch cannot hold as NumPy would pickle it, with these bytes."""
    dtype = Call(Global("numpy", "dtype"), (cut_text(kind.code, 16) or "V0", False, True), "reduce")
    return _reconstruct(_NDARRAY, ((*shape, *kind.shape), dtype, False, data))


def _reconstruct(cls: Value, state: tuple[Value, ...]) -> Call:
    call = Call(Global("numpy._core.multiarray", "_reconstruct"), (cls, (0,), b"b"), "reduce")
    call.state = (1, *state)
    return call


# --- in pickles ---------------------------------------------------------------------------------------------


# NumPy 2 renamed `numpy.core`. Whole names: `evil.multiarray._reconstruct` makes something else.
RECONSTRUCTS = frozenset({"numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"})
FROM_BUFFERS = frozenset({"numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer"})
WRAPPER = "joblib.numpy_pickle.NumpyArrayWrapper"
DILL_ARRAY = "dill._dill._create_array"
_PLAIN = frozenset({"numpy.ndarray", "numpy.memmap"})


class Array(NamedTuple):
    """An array that torch could hold."""

    element: ElementType
    shape: tuple[int, ...]
    is_fortran: bool
    data: Value = None  # the value that its bytes are; None where they stand behind it

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.numel * self.element.itemsize

    def stored(self, key: str) -> StoredTensor:
        """Return it as the tensor that it would be."""
        stride = contiguous_stride(self.shape, is_fortran=self.is_fortran)
        return StoredTensor(key, self.element.dtype, self.shape, stride)


def reconstructed(call: Call) -> Array | None:
    """Read a call of `_reconstruct` whose state was set; None where torch has no such array."""
    state = call.state
    if call.name not in RECONSTRUCTS or not isinstance(state, tuple) or len(state) != 5:
        return None
    if not call.arguments or not _is_name(call.arguments[0], _PLAIN):
        return None
    _, shape, dtype, is_fortran, data = state
    return _array(dtype, shape, is_fortran is True, data)


def created(call: Call) -> Array | None:
    """Read dill's `_create_array(function, arguments, state, ...)`; None where torch has no such array."""
    args = call.arguments
    if call.name != DILL_ARRAY or len(args) < 3:
        return None
    inner = Call(args[0], args[1], "reduce")
    inner.state = args[2]
    return reconstructed(inner)


def from_buffer(call: Call) -> Array | None:
    """Read a call of `_frombuffer`; None where torch has no such array."""
    if call.name not in FROM_BUFFERS or len(call.arguments) != 4:
        return None
    data, dtype, shape, order = call.arguments
    return _array(dtype, shape, order == "F", data) if order in ("C", "F") else None


class Wrapped(NamedTuple):
    """What joblib says of an array whose bytes follow."""

    array: Array | None  # the array; None where torch has no such type
    nbytes: int | None  # how many bytes follow; None where nothing tells
    holds_objects: bool  # whether a pickle of its own follows instead
    is_aligned: bool  # whether a byte stands before the bytes that says how many of padding follow it
    # the class, the shape, the element type and the order as they stand in the pickle
    args: tuple[Value, Value, Value, bool]

    def described(self, data: Value) -> Call:
        """Return it as NumPy would pickle it, with these bytes."""
        cls, shape, dtype, is_fortran = self.args
        return _reconstruct(cls, (shape, dtype, is_fortran, data))


def wrapped(call: Call) -> Wrapped | None:
    """Read joblib's object in the place of an array, whose state was set; None for any other object."""
    if call.name != WRAPPER or not isinstance(call.state, Dict):
        return None
    state = {key: value for key, value in call.state.pairs if isinstance(key, str)}
    dtype, shape = state.get("dtype"), state.get("shape")
    sizes = parse_shape(shape)
    itemsize = dtype_itemsize(dtype)
    is_fortran, cls = state.get("order") == "F", state.get("subclass")
    array = _array(dtype, shape, is_fortran, None) if _is_name(cls, _PLAIN) else None
    return Wrapped(
        array,
        None if sizes is None or itemsize is None else prod(sizes) * itemsize,
        has_objects(dtype),
        state.get("numpy_array_alignment_bytes") is not None,
        (cls, shape, dtype, is_fortran),
    )


def dtype_itemsize(value: Value) -> int | None:
    """Return how many bytes an element of a `numpy.dtype(...)` has; None where that is not known."""
    code = _code(value)
    if code is None:
        return None
    digits = code[1:]
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        return None
    return int(digits) * (4 if code[0] == "U" else 1)


def has_objects(value: Value) -> bool:
    """Return whether elements of a `numpy.dtype(...)` are or hold Python's objects.

    A type of fields says so by its flags, the last but one part of its state or the one behind.
    """
    code = _code(value)
    if code is None or not isinstance(value, Call):
        return False
    flags = value.state[7] if isinstance(value.state, tuple) and len(value.state) > 7 else 0
    return code[:1] == "O" or (type(flags) is int and bool(flags & 1))


def _array(dtype: Value, shape: Value, is_fortran: bool, data: Value) -> Array | None:  # noqa: FBT001
    sizes, code = parse_shape(shape), _code(dtype)
    if sizes is None or code is None or not isinstance(dtype, Call):
        return None
    state = dtype.state
    if isinstance(state, tuple) and (len(state) < 5 or state[2:5] != (None, None, None)):
        return None  # of fields, or of arrays
    element = element_type(code, ">" if isinstance(state, tuple) and state[1] == ">" else "<")
    return None if element is None else Array(element, sizes, is_fortran, data)


def _code(dtype: Value) -> str | None:
    if not isinstance(dtype, Call) or dtype.name != "numpy.dtype" or not dtype.arguments:
        return None
    code = dtype.arguments[0]
    return code if isinstance(code, str) and code else None


def _is_name(value: Value, names: frozenset[str]) -> bool:
    return isinstance(value, Global) and value.present in names
