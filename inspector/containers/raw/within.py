"""A part of a source as a source of its own: a file within a file."""

from __future__ import annotations

from inspector.containers.raw.codings import PLAIN, Spelled
from inspector.containers.source import Source
from inspector.overriding import override


class Within(Source):
    """A run of bytes of another source, as they are or spelled as a text."""

    def __init__(self, outer: Source, offset: int, nbytes: int, stored: int, spelling: int = PLAIN) -> None:
        """Read a part of `outer`, which stays open.

        Args:
            outer: What it is in.
            offset: Where it begins.
            nbytes: How many bytes it has.
            stored: How many its text has, where it is spelled.
            spelling: How it is spelled, see `codings`.
        """
        super().__init__(outer.path, nbytes)
        self._outer = outer
        self._offset = offset
        self._stored = stored
        self._spelled = None if spelling == PLAIN else Spelled(self._read_stored, spelling)

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        read = self._read_stored if self._spelled is None else self._spelled.read_upto
        return read(offset, nbytes)

    def stored_at(self, offset: int) -> int:
        """Return where a byte, or the text of it, begins in the outer source."""
        return self._offset + (offset if self._spelled is None else self._spelled.stored_at(offset))

    def _read_stored(self, offset: int, nbytes: int) -> bytes:
        return self._outer.read_upto(self._offset + offset, max(min(nbytes, self._stored - offset), 0))
