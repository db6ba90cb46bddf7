"""Compressed bytes read at any offset: forwards, and after a jump from the next mark before it.

A mark is the state of zlib at some place, 40 KB each few megabytes. Without any, a file of half a megabyte
whose storages lie about themselves could have a gigabyte inflated again for each of them.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable

MAGIC = b"\x1f\x8b"
_PACKED_NBYTES = 1 << 18
_PLAIN_NBYTES = 1 << 20
_MOST_EMPTY_STEPS = 1000
_GZIP_ONLY = 16 + zlib.MAX_WBITS
_MARK_NBYTES = 8 << 20
_MOST_MARKS = 512
PART_SHIFT = 9  # inflating so many bytes (2 to this power) takes as long as looking at a part of a pickle


class Inflated:
    """Inflates a gzip file of one or several members, or a record of a zip, about a megabyte at a time.

    Memory holds what was asked for last, a megabyte, and some marks; the caller bounds how far is read.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        look: Callable[[int], None] | None = None,
        *,
        is_gzip: bool = True,
        wbits: int = 0,
    ) -> None:
        """Prepare to inflate what `read(offset, nbytes)` returns; `look` counts it, as parts looked at.

        Bytes with gzip's headers are told from those of a zip's records, which have none, and from others by
        `wbits`, which is handed to zlib.
        """
        self._read = read
        self._look = look
        self._is_gzip = is_gzip and not wbits
        self._inflate = zlib.decompressobj(wbits or (_GZIP_ONLY if is_gzip else -zlib.MAX_WBITS))
        self._mark_nbytes = _MARK_NBYTES
        self._taken = 0  # compressed bytes read
        self._packed = b""  # those of them not consumed yet
        self._start = 0  # inflated offset of the window
        self._window = b""
        # Places of the inside, in order, and for each the state there and the compressed bytes consumed.
        self._places = [0]
        self._marks = [(self._inflate.copy(), 0)]

    def _jump(self, offset: int) -> None:
        """Go on from the last mark that is not behind `offset`, unless what was read last is nearer."""
        number = bisect_right(self._places, offset) - 1
        place = self._places[number]
        if offset >= self._start and place <= self._start + len(self._window):
            return
        inflate, self._taken = self._marks[number]
        self._inflate = inflate.copy()
        self._packed = self._window = b""
        self._start = place

    def _mark(self, place: int) -> None:
        """Remember the state at a place, if the last one remembered is far before it."""
        if place - self._places[-1] < self._mark_nbytes:
            return
        self._places.append(place)
        self._marks.append((self._inflate.copy(), self._taken - len(self._packed)))
        if len(self._places) > _MOST_MARKS:
            del self._places[1::2], self._marks[1::2]
            self._mark_nbytes *= 2

    def read_upto(self, offset: int, nbytes: int) -> bytes:
        """Return at most `nbytes` inflated bytes; fewer where the stream ends."""
        self._jump(offset)
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
            self._mark(reached)
            if self._look is not None:
                self._look(len(plain) >> PART_SHIFT)
        self._window = b"".join(parts)
        self._start = reached - len(self._window)

    def _inflate_some(self) -> bytes:
        for _ in range(_MOST_EMPTY_STEPS):
            while len(self._packed) < len(MAGIC) and (more := self._read(self._taken, _PACKED_NBYTES)):
                self._taken += len(more)
                self._packed += more
            if not self._packed:
                break
            if self._inflate.eof:
                if not self._is_gzip or not self._packed.startswith(MAGIC):
                    break
                self._inflate = zlib.decompressobj(_GZIP_ONLY)
            plain = self._inflate.decompress(self._packed, _PLAIN_NBYTES)
            self._packed = self._inflate.unconsumed_tail or self._inflate.unused_data
            if plain:
                return plain
        return b""
