"""A file as it would be with other bytes at some places, read without writing any."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from inspector.containers.source import Source
from inspector.overriding import override
from inspector.remap.relabel.patches import Piece


class Overlay(Source):
    """A file with pieces laid over it, cut off at a size."""

    def __init__(self, path: str, pieces: Sequence[Piece], nbytes: int) -> None:
        """Open a file.

        Args:
            path: The file.
            pieces: What stands in it instead, in order and apart from each other.
            nbytes: The size that it has.

        Raises:
            ContainerError: It is missing, unreadable or no regular file.
        """
        super().__init__(path)
        self.nbytes = self.file_nbytes = min(nbytes, self.file_nbytes)
        self._pieces = pieces
        self._fetch = self._fetch_laid_over

    @override
    def skip_hole(self, offset: int) -> int:
        """Return the offset itself: where the file has nothing, a piece may stand."""
        return offset

    def _fetch_laid_over(self, offset: int, nbytes: int) -> bytes:
        data = bytearray(self._fetch_plain(offset, nbytes))
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
