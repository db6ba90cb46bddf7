"""What a child process needs to know of a tensor to read its values: its elements, and where they are.

Nothing is read here. What has no values, or none that anybody understands, is refused in a sentence.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from functools import cached_property
from math import prod
from typing import Any

from inspector.containers.element_types import BLOCKS, ITEMSIZES
from inspector.containers.opening import open_path
from inspector.containers.source import Source
from inspector.errors import CancelledError, CheckpointError, ValuesError
from inspector.model.checkpoint import Checkpoint, Encoding, Storage, Tensor
from inspector.model.obstacles import packing
from inspector.model.tensors.views import contiguous
from inspector.progress import Progress

Request = dict[str, Any]

_PLAIN = Encoding()
_SPARSE = frozenset({"sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"})
_INNER = {"jagged": "values", "nested": "buffer"}
_LOCAL = "._local_tensor"
_NARROW = frozenset(f"{sign}int{bits}" for bits in range(1, 8) for sign in ("", "u"))
_FLOAT_NBYTES = 4
_NO_BYTES = "the file does not hold its bytes"


def _place_of(storage: Storage) -> Request:
    return {
        "key": storage.key,
        "nbytes": storage.nbytes,
        "part": _absolute(storage.part) if storage.part else "",
        "file_offset": None if storage.pieces else storage.file_offset,
    }


class Requests:
    """Words requests about the tensors of one checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Begin; nothing is looked up before it is needed."""
        self._checkpoint = checkpoint

    def prepare(self) -> None:
        """Look up now what all requests need."""
        self._storages, self._encodings  # noqa: B018 - both are worked out once

    @property
    def file(self) -> dict[str, Any]:
        """What every request says of the file."""
        stamp = self._checkpoint.stamp
        return {"path": _absolute(self._checkpoint.path), "stamp": None if stamp is None else list(stamp)}

    @cached_property
    def _storages(self) -> dict[str, Storage]:
        return {storage.key: storage for storage in self._checkpoint.storages}

    @cached_property
    def _encodings(self) -> dict[int, Encoding]:
        return dict(self._checkpoint.encodings)

    def of(self, row: int) -> Request:
        """Return the request about a tensor."""
        tensor = self._checkpoint.tensors[row]
        if tensor.problem is not None:
            raise ValuesError(f"what the file says of it cannot be true: {tensor.problem}", where=tensor.path)
        if tensor.device == "meta":
            raise ValuesError("it was saved from the meta device, which keeps no values", where=tensor.path)
        if tensor.storage is None:
            return self._of_parts(row, tensor)
        return self._of_view(row, tensor, tensor.storage)

    def _of_view(self, row: int, tensor: Tensor, key: str) -> Request:
        storage, itemsize = self._storages[key], ITEMSIZES.get(tensor.dtype)
        if storage.missing:
            raise ValuesError(_NO_BYTES, where=tensor.path)
        block = BLOCKS.get(tensor.dtype)
        if block is not None and self._has_whole_blocks(tensor, block.numel):
            return self._of_blocks(tensor, storage)
        if itemsize is None or tensor.dtype in _NARROW:
            raise ValuesError(f"the values of {tensor.dtype} elements are not known", where=tensor.path)
        encoding = self._encodings.get(row, _PLAIN)
        if not encoding.is_readable:
            what = "the file says in an unknown way how its values are encoded"
            raise ValuesError(what, where=tensor.path)
        request: Request = {
            "dtype": tensor.dtype,
            "itemsize": itemsize,
            "shape": list(tensor.shape),
            "stride": list(contiguous(tensor.shape) if tensor.stride is None else tensor.stride),
            "offset": tensor.storage_offset or 0,
            "swapped": ("byteorder", "big") in self._checkpoint.versions,
            "conj": encoding.conj,
            "neg": encoding.neg,
            "place": _place_of(storage),
        }
        return request | self._quantized(row, tensor, encoding)

    def _has_whole_blocks(self, tensor: Tensor, numel: int) -> bool:
        """Return whether gguf can be asked: rows are blocks, and their scales in the usual byte order."""
        is_big = any("big-endian" in version for _, version in self._checkpoint.versions)
        return not is_big and bool(tensor.shape) and tensor.shape[-1] % numel == 0

    def _of_blocks(self, tensor: Tensor, storage: Storage) -> Request:
        """Return the request about quantized blocks, as about the float32 that they stand for."""
        numbers = {"blocks": tensor.dtype, "numbers_nbytes": _FLOAT_NBYTES * prod(tensor.shape)}
        return {
            "dtype": "float32",
            "itemsize": _FLOAT_NBYTES,
            "shape": list(tensor.shape),
            "stride": list(contiguous(tensor.shape)),
            "offset": 0,
            "swapped": False,
            "conj": False,
            "neg": False,
            "scale": None,
            "zero_point": None,
            "place": _place_of(storage) | numbers,
        }

    def _quantized(self, row: int, tensor: Tensor, encoding: Encoding) -> Request:
        if encoding.axis is None:
            return {"scale": encoding.scale, "zero_point": encoding.zero_point}
        parts = self._parts(row)
        if not {"scales", "zero_points"} <= parts.keys():
            raise ValuesError("the scales of its channels are not tensors", where=tensor.path)
        return {
            "axis": encoding.axis,
            "scales": self.of(parts["scales"]),
            "zero_points": self.of(parts["zero_points"]),
        }

    def _parts(self, row: int) -> dict[str, int]:
        """Return the rows of what a tensor is made of, by name: they stand right below it."""
        tensors = self._checkpoint.tensors
        found: dict[str, int] = {}
        depth = len(tensors[row].keys)
        for number in range(row + 1, len(tensors)):
            keys = tensors[number].keys
            if len(keys) <= depth or keys[:depth] != tensors[row].keys:
                break
            if tensors[number].part_of == row and len(keys) == depth + 1:
                found[str(keys[-1])] = number
        return found

    def _of_parts(self, row: int, tensor: Tensor) -> Request:
        parts = self._parts(row)
        if tensor.layout in _SPARSE and "values" in parts:
            more: Request = {"layout": tensor.layout, "whole": list(tensor.shape)}
            if "indices" in parts:
                more["indices"] = self.of(parts["indices"])
            return {**self.of(parts["values"]), **more}
        name = _INNER.get(tensor.layout) or self._inner(tensor, parts)
        if name not in parts:
            raise ValuesError(
                "its values are those of its parts, which are listed below it" if parts else _NO_BYTES,
                where=tensor.path,
            )
        return {**self.of(parts[name]), "part": name}

    def _inner(self, tensor: Tensor, parts: dict[str, int]) -> str:
        """Return the name of the plain tensor that a wrapper is around; empty where that is not known."""
        if _LOCAL in parts:
            return _LOCAL
        tensors = self._checkpoint.tensors
        alike = [
            name
            for name, number in parts.items()
            if (tensors[number].shape, tensors[number].dtype) == (tensor.shape, tensor.dtype)
        ]
        return alike[0] if len(alike) == 1 else ""


def _absolute(path: str) -> str:
    """Return a path that means the same to the child, which works in another folder."""
    return os.path.abspath(path)  # noqa: PTH100 - a text that may be no UTF-8


def read_nbytes(request: Request) -> int:
    """Return how many bytes are read of a tensor: repeated elements once."""
    sizes = zip(request["shape"], request["stride"], strict=True)
    numel: int = prod(size if step else 1 for size, step in sizes)
    return numel * int(request["itemsize"])


# ------------------------------------------------------------------------------------------------------------
# The values of tensors of one element, such as step counters: a few bytes each, so no child is asked.
#
# What is packed or quantized, or has a type that Python does not, is left to those who ask a child.

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
    except CheckpointError:  # the tensor page says why
        return {}
    return found if is_same else {}


def _requests(checkpoint: Checkpoint) -> Iterator[tuple[int, Request]]:
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
