"""The inside of a gzip file, read at any offset: forwards, and from the start again after a step back."""

from __future__ import annotations

import zlib
from collections.abc import Callable

MAGIC = b"\x1f\x8b"
_PACKED_NBYTES = 1 << 18
_PLAIN_NBYTES = 1 << 20
_MOST_EMPTY_STEPS = 1000
_GZIP_ONLY = 16 + zlib.MAX_WBITS


class GzipInside:
    """Inflates a gzip file of one or several members, about a megabyte at a time.

    Memory holds what was asked for last and a megabyte; whoever reads bounds how far.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        """Prepare to inflate; `read(offset, nbytes)` gives bytes of the compressed file."""
        self._read = read
        self._rewind()

    def _rewind(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP_ONLY)
        self._taken = 0  # compressed bytes read
        self._packed = b""  # those of them not consumed yet
        self._start = 0  # inflated offset of the window
        self._window = b""

    def read_upto(self, offset: int, nbytes: int) -> bytes:
        """Give at most `nbytes` inflated bytes; fewer where the file ends.

        Raises:
            zlib.error: The stream is damaged.
            OSError: The file cannot be read.
        """
        if offset < self._start:
            self._rewind()
        if offset + nbytes > self._start + len(self._window):
            self._fill(offset, offset + nbytes)
        first = offset - self._start
        return self._window[first : first + nbytes] if first >= 0 else b""

    def _fill(self, offset: int, end: int) -> None:
        """Let the window begin at `offset`, or as near as the file goes, and reach to `end`."""
        reached = self._start + len(self._window)
        parts = [self._window[max(offset - self._start, 0) :]]
        while reached < end and (plain := self._inflate_some()):
            parts.append(plain[max(offset - reached, 0) :])
            reached += len(plain)
        self._window = b"".join(parts)
        self._start = reached - len(self._window)

    def _inflate_some(self) -> bytes:
        """Give the next bytes, or none at the end."""
        for _ in range(_MOST_EMPTY_STEPS):
            while len(self._packed) < len(MAGIC) and (more := self._read(self._taken, _PACKED_NBYTES)):
                self._taken += len(more)
                self._packed += more
            if not self._packed:
                break
            if self._inflate.eof:
                if not self._packed.startswith(MAGIC):
                    break
                self._inflate = zlib.decompressobj(_GZIP_ONLY)
            plain = self._inflate.decompress(self._packed, _PLAIN_NBYTES)
            self._packed = self._inflate.unconsumed_tail or self._inflate.unused_data
            if plain:
                return plain
        return b""
