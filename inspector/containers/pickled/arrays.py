"""NumPy's arrays in a pickle, and joblib's behind it: of what type and shape, and where their bytes stand.

An array is `_reconstruct(...)` with the state (version, shape, dtype, Fortran order, data), see
`array_reduce` in NumPy's `numpy/_core/src/multiarray/methods.c`, or since protocol 5
`_frombuffer(data, dtype, shape, order)`. joblib pickles an object in its place, and writes the bytes behind
the instruction that completes it (`NumpyArrayWrapper` in joblib's `numpy_pickle.py`).
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from inspector.containers.arrays.dtypes import ElementType, contiguous_stride, element_type
from inspector.pickles.values import Call, Dict, Global, StoredTensor, Value

# NumPy 2 renamed `numpy.core`. Whole names: `evil.multiarray._reconstruct` makes something else.
RECONSTRUCTS = frozenset({"numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"})
FROM_BUFFERS = frozenset({"numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer"})
WRAPPER = "joblib.numpy_pickle.NumpyArrayWrapper"
DILL_ARRAY = "dill._dill._create_array"
_PLAIN = frozenset({"numpy.ndarray", "numpy.memmap"})
_MOST_DIMENSIONS = 64
_MOST = (1 << 63) - 1


class Array(NamedTuple):
    """An array that torch could hold.

    Attributes:
        element: Its element type.
        shape: Sizes by dimension.
        is_fortran: Whether the first dimension varies fastest.
        data: The value that its bytes are; None where they stand behind it.
    """

    element: ElementType
    shape: tuple[int, ...]
    is_fortran: bool
    data: Value = None

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
    args, state = call.args, call.state
    if _name(call) not in RECONSTRUCTS or not isinstance(state, tuple) or len(state) != 5:
        return None
    if not isinstance(args, tuple) or not args or not _is_name(args[0], _PLAIN):
        return None
    _, shape, dtype, is_fortran, data = state
    return _array(dtype, shape, is_fortran is True, data)


def created(call: Call) -> Array | None:
    """Read dill's `_create_array(function, arguments, state, ...)`; None where torch has no such array."""
    args = call.args
    if _name(call) != DILL_ARRAY or not isinstance(args, tuple) or len(args) < 3:
        return None
    inner = Call(args[0], args[1], "reduce")
    inner.state = args[2]
    return reconstructed(inner)


def from_buffer(call: Call) -> Array | None:
    """Read a call of `_frombuffer`; None where torch has no such array."""
    if _name(call) not in FROM_BUFFERS or not isinstance(call.args, tuple) or len(call.args) != 4:
        return None
    data, dtype, shape, order = call.args
    return _array(dtype, shape, order == "F", data) if order in ("C", "F") else None


class Wrapped(NamedTuple):
    """What joblib says of an array whose bytes follow.

    Attributes:
        array: The array; None where torch has no such type.
        nbytes: How many bytes follow; None where nothing tells.
        holds_objects: Whether a pickle of its own follows instead.
        is_aligned: Whether a byte stands before the bytes that says how many of padding follow it.
        args: The class, the shape, the element type and the order as they stand in the pickle.
    """

    array: Array | None
    nbytes: int | None
    holds_objects: bool
    is_aligned: bool
    args: tuple[Value, Value, Value, bool]

    def described(self, data: Value) -> Call:
        """Return it as NumPy would pickle it, with these bytes."""
        cls, shape, dtype, is_fortran = self.args
        call = Call(Global("numpy._core.multiarray", "_reconstruct"), (cls, (0,), b"b"), "reduce")
        call.state = (1, shape, dtype, is_fortran, data)
        return call


def wrapped(call: Call) -> Wrapped | None:
    """Read joblib's object in the place of an array, whose state was set; None for any other object."""
    if _name(call) != WRAPPER or not isinstance(call.state, Dict):
        return None
    state = {key: value for key, value in call.state.pairs if isinstance(key, str)}
    dtype, shape = state.get("dtype"), state.get("shape")
    sizes = _sizes(shape)
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
    sizes, code = _sizes(shape), _code(dtype)
    if sizes is None or code is None or not isinstance(dtype, Call):
        return None
    state = dtype.state
    if isinstance(state, tuple) and (len(state) < 5 or state[2:5] != (None, None, None)):
        return None  # of fields, or of arrays
    element = element_type(code, ">" if isinstance(state, tuple) and state[1] == ">" else "<")
    return None if element is None else Array(element, sizes, is_fortran, data)


def _sizes(shape: Value) -> tuple[int, ...] | None:
    if not isinstance(shape, tuple) or len(shape) > _MOST_DIMENSIONS:
        return None
    sizes = tuple(size for size in shape if type(size) is int and 0 <= size <= _MOST)
    return sizes if len(sizes) == len(shape) and prod(sizes) <= _MOST else None


def _code(dtype: Value) -> str | None:
    if not isinstance(dtype, Call) or _name(dtype) != "numpy.dtype" or not isinstance(dtype.args, tuple):
        return None
    code = dtype.args[0] if dtype.args else None
    return code if isinstance(code, str) and code else None


def _name(call: Call) -> str:
    return call.func.present if isinstance(call.func, Global) else ""


def _is_name(value: Value, names: frozenset[str]) -> bool:
    return isinstance(value, Global) and value.present in names
