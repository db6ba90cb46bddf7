"""Tensors as arrays of NumPy, whole or in part: what a request describes, read from just the bytes it takes.

The elements of a view are read in the order in which they stand in the storage, in one run where they fill
it, and laid out in the order of its dimensions afterwards, which copies nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from inspector.errors import ValuesError
from inspector.progress import Progress
from inspector.values.decoding import PACKED, Array, codes_of, is_decodable, native_order, value_of_codes
from inspector.values.tensor_bytes import StorageBytes, TensorBytes
from inspector.values.views import FEW, MOST_OVERLAP, QUANTIZED_PACKED, View

Request = dict[str, Any]
"""What a tensor is and where its bytes are, see `inspector.values.request`."""

MOST_CHANNELS = 1 << 17
_GAP_NBYTES = 1 << 12  # what is not wanted between two runs is read with them up to here: a page of memory
_PIECE_NBYTES = 4 << 20
_STEP_NBYTES = 16 << 20


# --- what a request describes -------------------------------------------------------------------------------


def view_of(request: Request) -> View:
    """Return the view that a request describes."""
    dtype = request["dtype"]
    if not is_decodable(dtype):
        raise ValuesError(f"the values of {dtype} elements are not known")
    shape, stride = tuple(request["shape"]), tuple(request["stride"])
    if len(shape) != len(stride) or min((*shape, *stride, request["offset"])) < 0:  # NumPy checks nothing
        raise ValuesError("its sizes and strides cannot be true")
    return View(dtype, request["itemsize"], shape, stride, request["offset"], request["swapped"])


class Coded(NamedTuple):
    """How quantized elements become numbers; None where they are what they are."""

    scale: float
    zero_point: float
    is_channel: bool = False

    def numbers(self, codes: Array) -> Array:
        """Return the numbers as torch computes them: in float32, but the scale of a channel is a double."""
        if self.is_channel:
            found: Array = codes.astype(np.float32) - np.float32(self.zero_point)
            return (found.astype(np.float64) * self.scale).astype(np.float32)
        apart = codes.astype(np.float64) - self.zero_point  # exact: codes have 32 bits at most
        return apart.astype(np.float32) * np.float32(self.scale)


def converted(request: Request, values: Array) -> Array:
    """Return the numbers that values stand for where they have one scale, or none."""
    if request.get("scale") is not None:
        return Coded(request["scale"], request["zero_point"]).numbers(values)
    values = np.conj(values) if request.get("conj") else values
    return np.negative(values) if request.get("neg") else values


class Channel(NamedTuple):
    """A part of a quantized tensor that has one scale: all of it, or what stands at one index of a dimension.

    Attributes:
        coded: What its elements stand for; None where they are numbers themselves.
    """

    view: View
    coded: Coded | None


def channels_of(request: Request, opened: TensorBytes) -> list[Channel]:
    """Return the parts of a tensor that have one scale each."""
    view = view_of(request)
    if request.get("scale") is not None:
        return [Channel(view, Coded(request["scale"], request["zero_point"]))]
    axis = request.get("axis")
    if axis is None:
        return [Channel(view, None)]
    scales, zeros = scales_of(request, opened)
    inner = prod(view.shape[axis + 1 :])
    return [
        Channel(
            view._replace(
                shape=(*view.shape[:axis], 1, *view.shape[axis + 1 :]),
                offset=view.offset + index * view.stride[axis],
                whole=view.shape,
                first=index * inner,
            ),
            Coded(float(scales[index]), float(zeros[index]), is_channel=True),
        )
        for index in range(scales.size)
    ]


def scales_of(request: Request, opened: TensorBytes) -> tuple[Array, Array]:
    """Return the scales and zero points of the channels of a tensor."""
    scales = whole_array(request["scales"], opened, MOST_CHANNELS)
    zeros = whole_array(request["zero_points"], opened, MOST_CHANNELS)
    count = request["shape"][request["axis"]]
    if not scales.size == zeros.size == count:
        raise ValuesError(f"it has {count:,} channels, and {scales.size:,} scales")
    return scales, zeros


# --- which elements are wanted ------------------------------------------------------------------------------


class Box(NamedTuple):
    """What an index asks for.

    Attributes:
        axes: What is read along each dimension, forwards.
        rest: The index that makes what was asked for of what was read.
    """

    axes: tuple[range, ...]
    rest: tuple[Any, ...]


def box_of(shape: Sequence[int], index: object = ...) -> Box:
    """Return what an index of integers, slices, `...` and None asks for, as NumPy understands it.

    Raises:
        IndexError: It is out of bounds, or has too many dimensions.
        TypeError: It is of another kind, such as a list or a mask.
    """
    items = index if isinstance(index, tuple) else (index,)
    count = sum(item is not None and item is not ... for item in items)
    if count > len(shape):
        raise IndexError(
            f"too many indices: the tensor has {len(shape)} dimensions, but {count} were indexed"
        )
    if sum(item is ... for item in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    axes: list[range] = []
    rest: list[Any] = []
    for item in items:
        if item is ...:
            axes += map(range, shape[len(axes) : len(axes) + len(shape) - count])
            rest.append(...)
        elif item is None:
            rest.append(None)
        elif isinstance(item, slice):
            taken = range(*item.indices(shape[len(axes)]))
            axes.append(taken if taken.step > 0 else taken[::-1])
            rest.append(slice(None, None, 1 if taken.step > 0 else -1))
        else:
            axes.append(_single(item, len(axes), shape[len(axes)]))
            rest.append(0)
    return Box((*axes, *map(range, shape[len(axes) :])), tuple(rest))


def _single(item: Any, axis: int, size: int) -> range:  # noqa: ANN401 - whatever somebody writes in brackets
    if isinstance(item, bool | np.bool_) or not hasattr(item, "__index__") or np.ndim(item):
        kind = type(item).__name__
        raise TypeError(
            f"a tensor of a file is indexed by integers, slices, ... and None, not by {kind}: "
            "read it with .numpy() first"
        )
    at = operator.index(item)
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of bounds for axis {axis} with size {size}")
    return range(at % size, at % size + 1)


# --- reading them -------------------------------------------------------------------------------------------


def read_array(
    request: Request, opened: TensorBytes, index: object = ..., progress: Progress | None = None
) -> Array:
    """Return the numbers of a tensor, or of a part of it; the array is the caller's own.

    Raises:
        ValuesError: They make no array, or the file repeats them beyond measure.
    """
    view = _dense_view(request, apart=PACKED)
    box = box_of(view.shape, index)
    codes = _read_box(view, box.axes, opened.storage(request["place"]), progress or Progress())
    values = value_of_codes(codes, view.dtype)
    if request.get("axis") is not None:
        values = _by_channel(request, opened, box, values)
    found: Array = converted(request, values)[box.rest]
    return found


def read_codes(
    request: Request, opened: TensorBytes, index: object = ..., progress: Progress | None = None
) -> Array:
    """Return elements as what NumPy has of their size: values where it has the type, else their bits.

    A byte of `float4_e2m1fn_x2` is one element of torch.
    """
    view = _dense_view(request, apart=QUANTIZED_PACKED)
    box = box_of(view.shape, index)
    codes = _read_box(view, box.axes, opened.storage(request["place"]), progress or Progress())
    found: Array = codes[box.rest]
    return found


def whole_array(request: Request, opened: TensorBytes, most: int) -> Array:
    """Return all values of a small tensor, one behind the other in the order of rows."""
    view = view_of(request)
    if view.numel > most:
        raise ValuesError(f"it has more than {most:,} elements")
    axes = tuple(map(range, view.shape))
    codes = _read_box(view, axes, opened.storage(request["place"]), Progress())
    return value_of_codes(codes, view.dtype).reshape(-1)


def _dense_view(request: Request, *, apart: Container[str]) -> View:
    view = view_of(request)
    if "layout" in request:
        raise ValuesError("a sparse tensor is no array: its values are a part of it, below it")
    if view.dtype in apart:
        raise ValuesError(f"elements of {view.dtype} share bytes, and are not read one by one")
    return view


def _by_channel(request: Request, opened: TensorBytes, box: Box, codes: Array) -> Array:
    axis = request["axis"]
    shape = [1] * codes.ndim
    shape[axis] = -1
    scales, zeros = (part[list(box.axes[axis])].reshape(shape) for part in scales_of(request, opened))
    apart = codes.astype(np.float32) - zeros.astype(np.float32)
    found: Array = (apart.astype(np.float64) * scales).astype(np.float32)
    return found


class _Axis(NamedTuple):
    number: int
    size: int
    step: int


def _read_box(view: View, taken: Sequence[range], storage: StorageBytes, progress: Progress) -> Array:
    """Return the codes of some elements, in the order of the tensor's dimensions."""
    shape = [len(one) for one in taken]
    kind = codes_of(b"", view.dtype).dtype
    try:
        nothing = np.empty(shape if not prod(shape) else [0] * len(shape), kind)
    except ValueError:  # by its dimensions, or by what stands beside a 0
        raise ValuesError("NumPy has no array of its shape") from None
    if not prod(shape):
        return nothing
    strides = zip(taken, view.stride, strict=True)
    axes = [_Axis(number, len(one), one.step * step) for number, (one, step) in enumerate(strides)]
    moving = sorted((axis for axis in axes if axis.size > 1 and axis.step), key=lambda axis: -axis.step)
    offset = view.offset + sum(one.start * step for one, step in zip(taken, view.stride, strict=True))
    if prod(shape) > max(MOST_OVERLAP * _span(moving), FEW):
        what = f"its {prod(shape):,} elements repeat {_span(moving):,} of the storage"
        raise ValuesError(what, remedy="read a part of it: tensor[:10]")
    found = np.empty([axis.size for axis in moving] or [1], kind)
    for nbytes in _fill(found, moving, offset, view.itemsize, storage):
        progress.advance(nbytes)
    if view.swapped:
        found = native_order(found, view.dtype)
    return _laid_out(found, moving, shape)


def _laid_out(found: Array, moving: list[_Axis], shape: list[int]) -> Array:
    """Return what was read in the order of the file in the order of the tensor, repeated where that is."""
    places = {axis.number: place for place, axis in enumerate(moving)}
    order = [places[number] for number in sorted(places)]
    found = found.transpose(order) if moving else found.reshape(())
    found = found[tuple(slice(None) if number in places else None for number in range(len(shape)))]
    return found if list(found.shape) == shape else np.broadcast_to(found, shape).copy()


def _span(axes: Sequence[_Axis]) -> int:
    """Return how many elements lie between the first and the last, both counted."""
    return 1 + sum((axis.size - 1) * axis.step for axis in axes)


def _fill(out: Array, axes: list[_Axis], offset: int, itemsize: int, storage: StorageBytes) -> Iterator[int]:
    """Fill an array with elements, by the longest steps first; yield how many bytes were read each time."""
    span = _span(axes)
    if span == prod(axis.size for axis in axes) == out.size and _is_dense(axes):
        buffer = out.reshape(-1).view(np.uint8).data
        for start in range(0, len(buffer), _STEP_NBYTES):
            part = buffer[start : start + _STEP_NBYTES]
            storage.read_into(offset * itemsize + start, part)
            yield len(part)
        return
    outer, inner = axes[0], axes[1:]
    is_near = (outer.step - _span(inner)) * itemsize <= _GAP_NBYTES
    if is_near and span * itemsize <= _PIECE_NBYTES:
        whole = np.frombuffer(storage.read(offset * itemsize, span * itemsize), out.dtype)
        out[...] = as_strided(whole, out.shape, [axis.step * itemsize for axis in axes], writeable=False)
        yield span * itemsize
        return
    count = 1
    if is_near and outer.step:
        count = max((_PIECE_NBYTES // itemsize - _span(inner)) // outer.step + 1, 1)
    for start in range(0, outer.size, count):
        size = min(count, outer.size - start)
        begin = offset + start * outer.step
        if size > 1:
            yield from _fill(
                out[start : start + size], [outer._replace(size=size), *inner], begin, itemsize, storage
            )
        else:
            one = out[start : start + 1].reshape(out.shape[1:])  # a view, of a single element too
            yield from _fill(one, inner, begin, itemsize, storage)


def _is_dense(axes: list[_Axis]) -> bool:
    """Return whether elements follow one another without gaps or overlaps, in this order of dimensions."""
    step = 1
    for axis in reversed(axes):
        if axis.step != step:
            return False
        step *= axis.size
    return True
