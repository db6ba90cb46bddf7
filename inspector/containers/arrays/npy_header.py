"""The header of a `.npy` file: a literal of Python that says type, order and shape of the bytes behind it.

See `_read_array_header` in NumPy's `numpy/lib/_format_impl.py`. It is parsed as a literal and never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import NamedTuple

from inspector.containers.arrays.npy_types import ArrayType, parse_shape, parse_type
from inspector.containers.source import Source
from inspector.errors import DamagedError, UnsupportedFormatError
from inspector.units import cut_text, escape_text

MAGIC = b"\x93NUMPY"
_LENGTHS = {1: 2, 2: 4, 3: 4}
"""How many bytes the length of the header takes, by version."""
_KEYS = {"descr", "fortran_order", "shape"}
_MOST_NBYTES = 1 << 20
_MOST_TAKEN_NBYTES = 10_000
"""Longer headers are refused by `numpy.load`, which parses them with more than it trusts."""
_LONG = re.compile(r"(?<=[0-9])L\b")  # as Python 2 wrote its integers
_MOST_CHARS = 60
_FETCH = "fetch or copy the file again"


class Header(NamedTuple):
    """What a header says.

    Attributes:
        version: The version of the format.
        type: The element type.
        shape: The sizes.
        is_fortran: Whether the first dimension varies fastest.
        start: Where the elements begin.
        is_long: Whether `numpy.load` refuses it for its length.
    """

    version: str
    type: ArrayType
    shape: tuple[int, ...]
    is_fortran: bool
    start: int
    is_long: bool


def read_header(source: Source, look: Callable[[int], None]) -> Header:
    """Read the header of a source that begins with the magic string.

    Args:
        source: The file, or a record of a zip.
        look: Counts what is parsed, as parts looked at.
    """
    head = source.read_upto(0, 12)
    version = (head[6], head[7]) if len(head) >= 10 and head.startswith(MAGIC) else (0, 0)
    width = _LENGTHS.get(version[0])
    if width is None or version[1]:
        raise UnsupportedFormatError(
            f"this is a NumPy array of version {version[0]}.{version[1]}, and 1.0, 2.0 and 3.0 are read",
            where=source.path,
            remedy=_FETCH,
        )
    start = 8 + width
    nbytes = int.from_bytes(head[8:start], "little")
    if nbytes > _MOST_NBYTES:
        raise DamagedError(f"the header of an array says that it has {nbytes:,} bytes", remedy=_FETCH)
    raw = source.read(start, nbytes)
    look(nbytes >> 1)
    literal = _parsed(raw.decode("latin-1" if version[0] < 3 else "utf-8", "replace"), version[0])
    if not isinstance(literal, dict) or set(literal) != _KEYS or type(literal["fortran_order"]) is not bool:
        raise _broken("it does not say type, order and shape")
    shape = parse_shape(literal["shape"])
    if shape is None:
        raise _broken(f"its shape is {_shown(literal['shape'])}")
    kind = parse_type(literal["descr"])
    if kind is None:
        raise UnsupportedFormatError(
            f"the element type of an array is not known here: {_shown(literal['descr'])}", where=source.path
        )
    is_long = nbytes > _MOST_TAKEN_NBYTES
    number = f"{version[0]}.{version[1]}"
    return Header(number, kind, shape, literal["fortran_order"], start + nbytes, is_long)


def _parsed(text: str, version: int) -> object:
    try:
        return ast.literal_eval((_LONG.sub("", text) if version < 3 else text).strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise _broken(str(error)) from None


def _broken(why: str) -> DamagedError:
    shown = escape_text(cut_text(why, 2 * _MOST_CHARS))
    return DamagedError(f"the header of an array cannot be read: {shown}", remedy=_FETCH)


def _shown(found: object) -> str:
    return escape_text(cut_text(repr(found)[: 4 * _MOST_CHARS], _MOST_CHARS))
