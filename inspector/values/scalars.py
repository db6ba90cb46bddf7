"""The values of tensors of one element, such as step counters: a few bytes each, so no child is asked.

What is packed or quantized, or has a type that Python does not, is left to those who ask a child.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from inspector.containers.opening import open_path
from inspector.containers.source import Source
from inspector.errors import CancelledError, CheckpointError, ValuesError
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import packing
from inspector.progress import Progress
from inspector.values.request import Request, Requests

MOST_SCALARS = 1000
"""More are not read unasked: each is a read of its own."""
_ONE = frozenset({(), (1,), (1, 1)})
_FORMATS = {
    "float64": "d",
    "float32": "f",
    "float16": "e",
    "int64": "q",
    "int32": "i",
    "int16": "h",
    "int8": "b",
    "uint64": "Q",
    "uint32": "I",
    "uint16": "H",
    "uint8": "B",
    "bool": "B",
}
_MOST_DIGITS = 9


def read_scalars(checkpoint: Checkpoint, progress: Progress) -> dict[int, str]:
    """Return the values of the first tensors of one element as texts, by row, as far as they are read."""
    asked = (
        [] if packing(checkpoint) else list(_requests(checkpoint))
    )  # packed, each would unpack all before it
    if not asked:
        return {}
    found: dict[int, str] = {}
    try:
        with open_path(Requests(checkpoint).file["path"]) as source:
            for row, request in asked if source.stamp == checkpoint.stamp else ():
                progress.advance()
                found[row] = _text(_read(source, request), request)
            is_same = source.identity() == source.stamp
    except CancelledError:
        raise
    except CheckpointError:  # the values page says why
        return {}
    return found if is_same else {}


def _requests(checkpoint: Checkpoint) -> Iterator[tuple[int, Request]]:
    """Yield the tensors whose values can be had with one small read."""
    requests, count = Requests(checkpoint), 0
    for row, tensor in enumerate(checkpoint.tensors):
        if tensor.shape not in _ONE or tensor.dtype not in _FORMATS or tensor.part_of is not None:
            continue
        try:
            request = requests.of(row)
        except ValuesError:
            continue
        place = request["place"]
        start = request["offset"] * request["itemsize"]
        is_plain = place["file_offset"] is not None and "scales" not in request and request["scale"] is None
        if is_plain and "layout" not in request and 0 <= start <= place["nbytes"] - request["itemsize"]:
            yield row, request
            count += 1
            if count == MOST_SCALARS:
                return


def _read(source: Source, request: Request) -> bytes:
    place = request["place"]
    part = source.part_at(place["part"]) if place["part"] else source
    return part.read(place["file_offset"] + request["offset"] * request["itemsize"], request["itemsize"])


def _text(data: bytes, request: Request) -> str:
    """Return a value as Python writes it, with as few digits as tell it from all others of its type."""
    dtype = request["dtype"]
    form = (">" if request["swapped"] else "<") + _FORMATS[dtype]
    value = struct.unpack(form, data)[0]
    if dtype == "bool":
        return str(bool(value))
    value = -value if request["neg"] else value
    if not isinstance(value, float) or not math.isfinite(value) or dtype == "float64":
        return str(value)
    shorter = (float(f"{value:.{digits}g}") for digits in range(1, _MOST_DIGITS))
    return repr(next((one for one in shorter if _is_same(form, one, value)), value))


def _is_same(form: str, one: float, value: float) -> bool:
    try:
        return struct.pack(form, one) == struct.pack(form, value)
    except OverflowError:  # rounded up beyond the largest of its type
        return False
