"""A tensor in chunks: boxes of it, each in a file, which make up the whole."""

from __future__ import annotations

from math import prod
from typing import NamedTuple


class Chunk(NamedTuple):
    """One box of a tensor.

    Attributes:
        starts: Where it begins in the whole, by dimension.
        sizes: How large it is.
        part: The file that it is in, as a number of the container's parts; -1 where it is in none.
        offset: Where its first byte is in that file; of a packed one, where what it is packed in begins.
        length: How many bytes of the file it takes, with what it is packed in.
        packing: What it is packed in: a name of `gathered.unpacking.UNPACKERS`; empty for plain bytes.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    part: int
    offset: int
    length: int
    packing: str = ""

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return prod(self.sizes)


class Place(NamedTuple):
    """Where the elements of a chunk are.

    Attributes:
        offset: Where the first of them is in its file.
        strides: Its steps by dimension in elements; None where it is contiguous.
    """

    offset: int
    strides: tuple[int, ...] | None = None


class Gathered(NamedTuple):
    """A storage whose bytes are those of a contiguous tensor in chunks.

    Attributes:
        name: The name under which files know the tensor.
        dtype: torch's name of its element type.
        itemsize: Bytes of an element.
        shape: Its sizes.
        chunks: Its chunks, in the order of the file.
    """

    name: str
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    chunks: tuple[Chunk, ...]

    @property
    def nbytes(self) -> int:
        """How many bytes the whole has."""
        return prod(self.shape) * self.itemsize
