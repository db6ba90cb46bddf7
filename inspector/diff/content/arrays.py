"""NumPy's arrays among the values of a pickle: compared like tensors, by what they are and number by number.

Formats that are pickles of arrays list them as tensors; in a file of torch they are values like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inspector.containers.numpy_types import ElementType, contiguous_stride, from_buffer, reconstructed
from inspector.diff.content.elements import swapped
from inspector.diff.content.equality import judge, side_by_side
from inspector.model.tensors.row_blocks import View, row_blocks
from inspector.model.values.embedded import contents_of
from inspector.pickles.values import Call, Value
from inspector.progress import Progress
from inspector.units import format_shape


class StoredArray(NamedTuple):
    """An array of numbers that torch has a type for.

    Attributes:
        element: The type of its elements, and whether their bytes are the other way round.
        shape: Sizes by dimension.
        stride: Steps by dimension, in elements; None where they stand in the order of rows.
        data: Their bytes.
    """

    element: ElementType
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    data: bytes

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return len(self.data) // self.element.itemsize

    @property
    def text(self) -> str:
        """What it is, in words."""
        order = "" if self.stride is None else ", Fortran order"
        end = ", big-endian" if self.element.swap > 1 else ""
        return f"{self.element.dtype} {format_shape(self.shape)}{order}{end}"

    def blocks(self, progress: Progress) -> Iterator[bytes]:
        """Yield its elements in the order of rows, little-endian."""
        view = View((self.numel,), (1,), 0) if self.stride is None else View(self.shape, self.stride, 0)
        for block in row_blocks(view, self.element.itemsize, self._read, progress):
            yield swapped(block, self.element.swap)

    def _read(self, offset: int, nbytes: int) -> bytes:
        return self.data[offset : offset + nbytes]


def array_of(value: Value, data: bytes) -> StoredArray | None:
    """Return the array that a value is; None for any other value, and where numbers or bytes are missing.

    Args:
        value: The value.
        data: What large values of its pickle are still in.
    """
    if type(value) is not Call:
        return None
    found = reconstructed(value) or from_buffer(value)
    if found is None:
        return None
    held = contents_of(found.data, data)
    if len(held) != found.nbytes:
        return None
    return StoredArray(
        found.element, found.shape, contiguous_stride(found.shape, is_fortran=found.is_fortran), held
    )


def compare_arrays(one: StoredArray, other: StoredArray) -> tuple[str, ...]:
    """Return what two arrays differ in, as tensors do: `bits` where the numbers are the same."""
    found = {
        "dtype": one.element != other.element,
        "shape": one.shape != other.shape,
        "stride": one.shape == other.shape and one.stride != other.stride,
    }
    facts = tuple(fact for fact, differs in found.items() if differs)
    if one.element.dtype != other.element.dtype or one.numel != other.numel:
        return facts
    progress = Progress()
    blocks = side_by_side(one.blocks(progress), other.blocks(progress))
    answers = {judge(block, another, one.element.dtype).answer for block, another in blocks}
    if "differs" in answers:
        return (*facts, "values")
    return (*facts, "bits") if "bits" in answers else facts
