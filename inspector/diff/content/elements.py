"""The bytes of a tensor's elements in the order of rows, little-endian, whatever file they are in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Literal, NamedTuple

from inspector.diff.side import Side
from inspector.errors import ContainerError
from inspector.model.checkpoint import Tensor
from inspector.model.tensors.dtypes import PLAIN_ITEMSIZES, stored_nbytes
from inspector.model.tensors.elements import is_contiguous
from inspector.model.tensors.row_blocks import PLAIN_NBYTES, View, row_blocks
from inspector.progress import Progress

_MOST_TIMES = 64
_COMPLEX = "complex"
_SIGNED = (_COMPLEX, "float", "bfloat")
_OTHER_SIGN = bytes(code ^ 0x80 for code in range(256))
Mark = Literal["conj", "neg"]
"""What a tensor can be only said to be: conjugated or negated, with the elements as they were before."""
Marks = frozenset[Mark]
MARKS: tuple[Mark, ...] = ("conj", "neg")
UNMARKED: Marks = frozenset()


class Elements(NamedTuple):
    """Where the elements of a tensor are.

    Attributes:
        storage: Key of the storage.
        itemsize: Bytes of an element; 1 where several share a byte.
        view: What it sees of the storage, in elements of that size.
        unit: Bytes of what is swapped where the file has its first byte last: half of a complex number.
        signs: Which bytes hold a sign that is to be turned: the first of them, and how far on the next is.
    """

    storage: str
    itemsize: int
    view: View
    unit: int
    signs: tuple[tuple[int, int], ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.view.numel * self.itemsize

    @property
    def is_plain(self) -> bool:
        """Whether they stand one behind the other in the order of rows."""
        return is_contiguous(self.view.shape, self.view.stride)

    @property
    def is_dense(self) -> bool:
        """Whether each byte between the first and the last belongs to one of them."""
        return self.view.reach == self.view.numel


def has_elements(row: Tensor) -> bool:
    """Return whether a row has bytes of its own: what is made of others, and what is on meta, has none."""
    return row.storage is not None and row.device != "meta"


def elements_of(row: Tensor, marks: Marks = UNMARKED) -> Elements:
    """Return where the elements of a row are.

    Args:
        row: The row.
        marks: What its elements are only said to be.
    """
    if row.problem is not None:
        raise ContainerError(row.problem, where=row.path)
    storage = row.storage or ""
    offset = row.storage_offset or 0
    size = PLAIN_ITEMSIZES.get(row.dtype)
    if size is None:  # several elements share a byte
        nbytes, first = (stored_nbytes(row.dtype, count) for count in (prod(row.shape), offset))
        return Elements(storage, 1, View((nbytes,), (1,), first), 1)
    unit = size // 2 if row.dtype.startswith(_COMPLEX) else size
    signs = tuple(_signs(row, size, unit, marks)) if marks else ()
    if row.stride is None:
        return Elements(storage, size, View((prod(row.shape),), (1,), offset), size, signs)
    return Elements(storage, size, View(row.shape, row.stride, offset), unit, signs)


def _signs(row: Tensor, size: int, unit: int, marks: Marks) -> Iterator[tuple[int, int]]:
    """Yield where the signs are that conjugating and negating turn."""
    if "conj" in marks and unit < size:
        yield size - 1, size
    if "neg" in marks:
        if not row.dtype.startswith(_SIGNED):
            raise ContainerError(f"the tensor is a negated view of {row.dtype} elements", where=row.path)
        yield unit - 1, unit


def read_elements(side: Side, elements: Elements, progress: Progress) -> Iterator[bytes]:
    """Yield the bytes of elements in the order of rows."""
    refuse_endless(elements)
    read = partial(side.reader.read, elements.storage)
    for block in row_blocks(elements.view, elements.itemsize, read, progress):
        yield as_meant(side, elements, block)


def read_span(side: Side, elements: Elements, progress: Progress) -> Iterator[bytes]:
    """Yield all bytes from the first to the last element as they stand; errors are those of the others."""
    start = elements.view.first * elements.itemsize
    end = start + elements.view.reach * elements.itemsize
    for pos in range(start, end, PLAIN_NBYTES):
        progress.advance()
        block = side.reader.read(elements.storage, pos, min(PLAIN_NBYTES, end - pos))
        yield as_meant(side, elements, block)


def as_meant(side: Side, elements: Elements, block: bytes) -> bytes:
    """Return whole elements of a file in the usual order of bytes, and with the signs that they have."""
    if side.is_swapped:
        block = swapped(block, elements.unit)
    if not elements.signs:
        return block
    out = bytearray(block)
    for first, step in elements.signs:
        out[first::step] = out[first::step].translate(_OTHER_SIGN)
    return bytes(out)


def refuse_endless(elements: Elements) -> None:
    """Refuse to go through a view that shows each byte again and again."""
    seen = max(elements.view.reach * elements.itemsize, PLAIN_NBYTES)
    if elements.nbytes > _MOST_TIMES * seen:
        raise ContainerError("the tensor shows the same few bytes too often to be read element by element")


def swapped(block: bytes, unit: int) -> bytes:
    """Return a block with the bytes of each unit in the other order."""
    if unit == 1:
        return block
    out = bytearray(len(block))
    for place in range(unit):
        out[place::unit] = block[unit - 1 - place :: unit]
    return bytes(out)
