"""From what is asked for to arrays: the views, the scales and the indices that a request describes."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from inspector.errors import ValuesError
from inspector.worker.decoding import Array, is_decodable, value_of_codes
from inspector.worker.tensor_bytes import TensorBytes
from inspector.worker.values.summary import Coded
from inspector.worker.values.views import View, pieces

Request = dict[str, Any]
"""What a tensor is and where its bytes are, see `inspector.values.request`."""
_MOST_CHANNELS = 1 << 17


def view_of(request: Request) -> View:
    """Return the view that a request describes."""
    dtype = request["dtype"]
    if not is_decodable(dtype):
        raise ValuesError(f"the values of {dtype} elements are not known")
    shape, stride = tuple(request["shape"]), tuple(request["stride"])
    if len(shape) != len(stride) or min((*shape, *stride, request["offset"])) < 0:  # NumPy checks nothing
        raise ValuesError("its sizes and strides cannot be true")
    return View(dtype, request["itemsize"], shape, stride, request["offset"], request["swapped"])


def whole_array(request: Request, opened: TensorBytes, most: int) -> Array:
    """Return all values of a small tensor, one behind the other in the order of rows."""
    view = view_of(request)
    if view.numel > most:
        raise ValuesError(f"it has more than {most:,} elements")
    found: Array | None = None
    for piece in pieces(view, opened.read_of(request["place"])):
        if found is None:
            found = np.zeros(view.numel, piece.codes.dtype)
        found[piece.places()] = piece.codes
    return np.zeros(0) if found is None else value_of_codes(found, view.dtype)


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
    scales = whole_array(request["scales"], opened, _MOST_CHANNELS)
    zeros = whole_array(request["zero_points"], opened, _MOST_CHANNELS)
    if not scales.size == zeros.size == view.shape[axis]:
        raise ValuesError(f"it has {view.shape[axis]:,} channels, and {scales.size:,} scales")
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
