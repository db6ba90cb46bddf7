"""A file as it would be with other bytes at some places, read without writing any."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from inspector.containers.source import Source
from inspector.overriding import override
from inspector.remap.relabel.patches import Patch


class Overlay(Source):
    """A source with pieces laid over it, cut off at a size."""

    def __init__(self, below: Source, pieces: Sequence[Patch], nbytes: int) -> None:
        """Lay pieces over a source.

        Args:
            below: The source, which stays open.
            pieces: What stands in it instead, in order and apart from each other.
            nbytes: The size that it has.
        """
        super().__init__(below.path, min(nbytes, below.nbytes))
        self._below = below
        self._pieces = pieces

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        data = bytearray(self._below.read_at(offset, nbytes))
        end = offset + len(data)
        first = max(bisect_right(self._pieces, offset, key=attrgetter("offset")) - 1, 0)
        for number in range(first, len(self._pieces)):
            start, piece = self._pieces[number]
            if start >= end:
                break
            low, high = max(start, offset), min(start + len(piece), end)
            if low < high:
                data[low - offset : high - offset] = piece[low - start : high - start]
        return bytes(data)
