"""The element types in the headers of NumPy's files: one type, or fields of several types, maybe nested.

What stands there is `dtype.descr` (`dtype_to_descr` in NumPy's `numpy/lib/_format_impl.py`): a text such as
`<f4`, or a list of (name, type) and (name, type, shape).
"""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from inspector.containers.arrays.dtypes import ElementType, element_type
from inspector.pickles.values import Call, Global
from inspector.units import cut_text

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
    """One element type.

    Attributes:
        nbytes: How long an element is.
        code: The code of a type without fields, without its byte order.
        element: torch's type of that; None where torch has none.
        shape: The sizes of an element that is an array itself.
        fields: What an element consists of, where it is no single thing.
        has_objects: Whether elements are Python's objects, or hold some.
    """

    nbytes: int
    code: str = ""
    element: ElementType | None = None
    shape: tuple[int, ...] = ()
    fields: tuple[Field, ...] = ()
    has_objects: bool = False


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


def array_call(kind: ArrayType, shape: tuple[int, ...], data: object) -> Call:
    """Return an array that torch cannot hold as NumPy would pickle it, with these bytes."""
    dtype = Call(Global("numpy", "dtype"), (cut_text(kind.code, 16) or "V0", False, True), "reduce")
    call = Call(Global("numpy._core.multiarray", "_reconstruct"), (_NDARRAY, (0,), b"b"), "reduce")
    call.state = (1, (*shape, *kind.shape), dtype, False, data)  # type: ignore[assignment]  # inert all the same
    return call
