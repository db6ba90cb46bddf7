"""Small pieces of a file, such as headers and counts, of which those that stand close share one read."""

from __future__ import annotations

from inspector.containers.source import Source

_NEAR_NBYTES = 1 << 12
_AHEAD_NBYTES = 1 << 14


class NearReader:
    """Reads small pieces one behind the other; pieces that stand close share one read of the file.

    Attributes:
        window: The bytes read last.
    """

    def __init__(self, source: Source) -> None:
        """Prepare to read `source`."""
        self.window = b""
        self._source = source
        self._start = 0

    def seek(self, offset: int, nbytes: int) -> int:
        """Have `nbytes` bytes from `offset` on in the window, or fewer at the end; say where in it."""
        at = offset - self._start
        window = self.window
        if 0 <= at <= len(window) - nbytes:
            return at
        # Far jumps are those over large payloads, where the bytes read ahead would be in vain.
        is_near = 0 <= at <= len(window) + _NEAR_NBYTES
        self.window = self._source.read_upto(offset, _AHEAD_NBYTES if is_near else nbytes)
        self._start = offset
        return 0
