"""Views: where in a storage a tensor lies, as pickles say it, and why it may not be true.

A view is what torch's `_rebuild_tensor` is called with: a storage, an offset, sizes and strides, all of them
numbers that anybody can have written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, NamedTuple, cast

from inspector.containers.element_types import is_of_unknown_size
from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.model.checkpoint import Encoding, Tensor
from inspector.model.tensors.dtypes import PLAIN_ITEMSIZES, element_nbytes, known_dtype, stored_nbytes
from inspector.model.values.text import device_label, int_text
from inspector.pickles.values import Call, Global, PersistentId, StoredTensor, Value

Geometry = tuple[Any, ...]
"""Offset, sizes and strides, as they stand in the arguments of a rebuild function."""

_MOST = (1 << 63) - 1  # torch counts elements and steps in 64 bits with a sign
_MOST_DIMENSIONS = 1024
_FEW_DIMENSIONS = 8
_ONES = (1,)
_NO_NUMBER, _NEGATIVE, _HUGE = "no whole number", "negative", "too large"
PAST = "it runs past its storage"
_COUNTLESS, _UNEVEN = "it has more elements than 64 bits can count", "sizes but"
CANNOT_GROW = "RuntimeError: Trying to resize storage that is not resizable"
"""What torch says where a tensor needs more than its storage has; on the meta device they grow."""
# By a part of the problem.
_WORDS = {
    PAST: CANNOT_GROW,
    _COUNTLESS: "RuntimeError: numel: integer multiplication overflow",
    _UNEVEN: "RuntimeError: unequal size length",
    f"offset is {_NEGATIVE}": "RuntimeError: Tensor: invalid storage offset",
    f"offset is {_HUGE}": "ValueError: Overflow when unpacking long long",
    _NEGATIVE: "RuntimeError",
    _HUGE: "TypeError: set_()",
    _NO_NUMBER: "TypeError: set_()",
}
_MOST_LAID = 256
_MOST_NESTED = 8  # a parameter of a wrapper of a quantized tensor ...


def _count_nothing(parts: int) -> None:
    """Count nothing: few tensors are read."""


class Known(NamedTuple):
    """What is known before a tensor is read.

    Attributes:
        storages: The first persistent id of each storage. torch believes only that one, so it counts for
            every tensor; of a storage that is not among them, a tensor's own id is taken.
        room: How many more tensors may be nested in one another; a file can nest them without end.
        look: Counts the parts looked at, where a file decides how many there are.
    """

    storages: Mapping[str, StorageId]
    room: int = _MOST_NESTED
    look: Callable[[int], None] = _count_nothing


NOTHING_KNOWN = Known({})


class TensorFacts(NamedTuple):
    """What a rebuild call says of its tensor.

    Attributes:
        span: First byte viewed and the one behind the last, holes of a strided view included.
        parts: Tensors it is made of, by torch's names for them.
        state: Attributes set on it, to be looked through for more tensors.
    """

    device: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    offset: int | None = None
    layout: str = "strided"
    requires_grad: bool = False
    nbytes: int = 0
    storage: StorageId | None = None
    span: tuple[int, int] = (0, 0)
    parts: tuple[tuple[str, Value], ...] = ()
    state: Value = None
    is_parameter: bool = False
    problem: str | None = None
    encoding: Encoding | None = None


class NoTensorError(Exception):
    """The arguments are not those of a tensor: another generation's, or a deceiver's. Stays in the model."""


# --- storages -----------------------------------------------------------------------------------------------


def storage_of(value: Value, known: Known) -> StorageId:
    """Return the storage that a persistent id means."""
    own = parse_storage_id(value) if type(value) is PersistentId else None
    if own is None:
        raise NoTensorError
    if own.view is not None:
        own = own.viewed()
    first = known.storages.get(own.key)
    # torch remembers a storage by its address; those without bytes or on meta have none, so each id counts.
    if first is None or not first.numel or not own.numel or first.location == "meta":
        return own
    return first


def bare_storage(storage: StorageId) -> TensorFacts:
    """Describe a storage that is saved as such: one dimension, no geometry."""
    facts = strided(storage, storage.dtype, (0, (storage.numel,), (1,)), requires_grad=False)
    return facts._replace(stride=None, offset=None, layout="storage")


def stored_tensor(value: StoredTensor, known: Known) -> TensorFacts:
    """Describe a tensor that its format wrote down itself."""
    storage = known.storages.get(value.key)
    if storage is None:
        raise NoTensorError
    dtype, shape = value.dtype, value.shape
    if is_of_unknown_size(dtype):
        nbytes = storage.numel * storage.itemsize
        facts = TensorFacts(device_label(storage.location), dtype, shape, contiguous(shape), 0)
        return facts._replace(nbytes=nbytes, storage=storage, span=(0, nbytes))
    if value.stride is None and not value.offset and value.layout == "strided":
        laid = _laid_out(shape, dtype)
        if 0 <= laid.nbytes <= storage.numel * storage.itemsize:
            device, grad = device_label(storage.location), value.requires_grad
            place = (device, dtype, shape, laid.stride, 0, "strided", grad, laid.nbytes, storage, laid.span)
            return tuple.__new__(TensorFacts, (*place, (), None, False, None, None))
    stride = contiguous(shape) if value.stride is None else value.stride
    geometry = (value.offset, shape, stride)
    facts = strided(storage, value.dtype, geometry, requires_grad=value.requires_grad)
    return facts if value.layout == facts.layout else facts._replace(layout=value.layout)


# --- views --------------------------------------------------------------------------------------------------


def strided(storage: StorageId, dtype: str, geometry: Geometry, *, requires_grad: bool) -> TensorFacts:
    """Describe a view of a storage."""
    if len(geometry) != 3:
        raise NoTensorError
    offset, shape, stride = geometry
    itemsize = PLAIN_ITEMSIZES.get(dtype)
    if itemsize and type(offset) is int and type(shape) is tuple and type(stride) is tuple:
        numel, reach = _extent(shape, stride)
        start = offset * itemsize
        end = start + (reach + 1) * itemsize if numel else start
        if 0 <= numel <= _MOST and start >= 0 and end <= storage.numel * storage.itemsize:
            device, nbytes, span = device_label(storage.location), numel * itemsize, (start, end)
            place = (device, dtype, shape, stride, offset, "strided", requires_grad, nbytes, storage, span)
            # TensorFacts(...) would take thrice as long.
            return tuple.__new__(TensorFacts, (*place, (), None, False, None, None))
    return _doubtful(storage, dtype, geometry, requires_grad=requires_grad)


def _extent(shape: tuple[Any, ...], stride: tuple[Any, ...]) -> tuple[int, int]:
    """Return the number of elements (-1 if the numbers are none) and the way from the first to the last."""
    if len(shape) != len(stride) or len(shape) > _MOST_DIMENSIONS:
        return -1, 0
    numel, reach = 1, 0
    for size, step in zip(shape, stride, strict=False):
        if type(size) is not int or type(step) is not int or not (0 <= size <= _MOST and 0 <= step <= _MOST):
            return -1, 0
        numel *= size
        reach += (size - 1) * step
    return numel, reach


def _doubtful(storage: StorageId, dtype: str, geometry: Geometry, *, requires_grad: bool) -> TensorFacts:
    """Describe a view that is not plain, and say why it cannot be true if it cannot."""
    offset = geometry[0]
    shape, problem = shape_of(geometry[1])
    stride, stride_problem = sizes_of(_steps(shape, geometry[2]))
    if (
        not stride and not stride_problem and not dtype.startswith("q")
    ):  # torch takes missing strides for those of a contiguous tensor
        stride = contiguous(shape)
    problem = problem or stride_problem
    odd = _odd_number(offset)
    if odd:
        offset, problem = 0, problem or f"its offset is {odd}"
    problem = problem or _misfit(storage, dtype, offset, shape, stride)
    return TensorFacts(
        device_label(storage.location),
        dtype,
        shape,
        stride,
        offset,
        requires_grad=requires_grad,
        nbytes=nbytes_of(dtype, shape),
        storage=storage,
        span=(0, storage.nbytes) if problem else _span(dtype, offset, shape, stride),
        problem=problem,
    )


def _steps(shape: tuple[int, ...], steps: Value) -> Value:
    """Return strides with 0 for what is negative where no step is taken: torch does not mind it there."""
    if not isinstance(steps, tuple | list) or len(steps) != len(shape):
        return () if steps is None else steps
    is_empty = 0 in shape
    return tuple(
        0 if type(step) is int and step < 0 and (is_empty or size == 1) else step
        for size, step in zip(shape, steps, strict=True)
    )


class _Laid(NamedTuple):
    """A tensor without holes at the beginning of its storage; its size is -1 where it cannot be one.

    Many tensors have one shape, and readers of formats share it: so they share all of this.
    """

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...]
    nbytes: int
    span: tuple[int, int]


_LAID: dict[int, _Laid] = {}


def _laid_out(shape: tuple[int, ...], dtype: str) -> _Laid:
    """Lay a tensor out; shapes are told apart by identity, since a file can make their hashes collide."""
    known = _LAID.get(id(shape))
    if known is not None and known.shape is shape and known.dtype == dtype:
        return known
    if len(_LAID) >= _MOST_LAID:
        _LAID.clear()
    stride = contiguous(shape)
    numel, _ = _extent(shape, stride)
    itemsize = PLAIN_ITEMSIZES.get(dtype, 0)
    nbytes = numel * itemsize if itemsize and 0 <= numel <= _MOST else -1
    laid = _LAID[id(shape)] = _Laid(shape, dtype, stride, nbytes, (0, nbytes))
    return laid


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a tensor without holes, as torch counts them: a size of 0 counts as 1."""
    if len(shape) < 3:  # nearly all, and without a loop
        return (max(shape[1], 1), 1) if len(shape) == 2 else _ONES[: len(shape)]
    step = mul if len(shape) <= _FEW_DIMENSIONS else _bounded_product
    steps = accumulate((max(size, 1) for size in shape[:0:-1]), step, initial=1)
    return tuple(steps)[::-1][: len(shape)]


def _bounded_product(one: int, other: int) -> int:
    """Return a product, or a number that is too large as well: that of a thousand sizes would fill pages."""
    return min(one * other, _MOST + 1)


def _misfit(
    storage: StorageId, dtype: str, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]
) -> str | None:
    """Return why a view cannot lie within its storage, or None if it can."""
    if len(shape) != len(stride):
        return f"it has {len(shape)} {_UNEVEN} {len(stride)} strides"
    _, end = _span(dtype, offset, shape, stride)
    if end > storage.nbytes:
        return shared_text(f"{PAST}: {int_text(end)} of {int_text(storage.nbytes)} bytes")
    return None


def shared_text(text: str) -> str:
    """Return a text, the same object for many that are equal: a million tensors may have one problem."""
    if len(_TEXTS) >= _MOST_TEXTS:
        _TEXTS.clear()
    return _TEXTS.setdefault(text, text)


_TEXTS: dict[str, str] = {}
_MOST_TEXTS = 64


def end_of(row: Tensor) -> int:
    """Return how many bytes of its storage a tensor needs."""
    return _span(row.dtype, row.storage_offset or 0, row.shape, row.stride or ())[1]


def _span(dtype: str, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, int]:
    if 0 in shape:
        return 0, 0
    last = offset + sum(map(mul, shape, stride)) - sum(stride)
    return stored_nbytes(dtype, offset), stored_nbytes(dtype, last + 1)


# --- their parts --------------------------------------------------------------------------------------------


def sizes_of(value: Value) -> tuple[tuple[int, ...], str | None]:
    """Read sizes or strides: the numbers, and why they cannot be true if they cannot."""
    if isinstance(value, Call) and is_call_to(value, "torch", "Size"):
        value = value.args[0] if isinstance(value.args, tuple) and value.args else ()
    if not isinstance(value, tuple | list):
        raise NoTensorError
    if len(value) > _MOST_DIMENSIONS:
        return (), f"it has {len(value):,} dimensions, and {_MOST_DIMENSIONS:,} at most are read"
    if bool in map(type, value[1:]):  # but for the first, True is a number to torch
        value = (value[0], *(int(size) if type(size) is bool else size for size in value[1:]))
    sizes = tuple(size for size in value if type(size) is int and 0 <= size <= _MOST)
    if len(sizes) < len(value):
        return (), f"one of its sizes or strides is {next(filter(None, map(_odd_number, value)))}"
    return (cast("tuple[int, ...]", value) if type(value) is tuple else sizes), None  # shared as in the file


def _odd_number(value: Value) -> str:
    """Return what keeps a value from being a size or a place; empty where nothing does."""
    if type(value) is not int:
        return _NO_NUMBER
    return "" if 0 <= value <= _MOST else _NEGATIVE if value < 0 else _HUGE


def torch_words(problem: str) -> str:
    """Return what torch raises on making a tensor with that problem, or its beginning; empty for none.

    See `set_` of `ATen/native/TensorShape.cpp` and `resize_bytes_nocuda` of `ATen/native/Resize.cpp`: the
    storage of a record cannot grow.
    """
    return next((words for end, words in _WORDS.items() if end in problem), "")


def shape_of(value: Value) -> tuple[tuple[int, ...], str | None]:
    """Read sizes as `sizes_of` does, and see whether their product can be counted."""
    shape, problem = sizes_of(value)
    if prod(shape) > _MOST:
        return shape, _COUNTLESS
    return shape, problem


def nbytes_of(dtype: str, shape: tuple[int, ...]) -> int:
    """Return elements times item size, or 0 if nobody could count the elements."""
    numel = prod(shape)
    return element_nbytes(dtype, numel) if numel <= _MOST else 0


def dtype_of(value: Value) -> str:
    """Read a dtype."""
    name = known_dtype(value.name) if isinstance(value, Global) and value.module == "torch" else None
    if name is None:
        raise NoTensorError
    return name


def is_call_to(value: Value, module: str, name: str) -> bool:
    """Return whether a value is a call of that global."""
    if not isinstance(value, Call) or not isinstance(value.func, Global):
        return False
    return value.func.name == name and value.func.module == module
