"""Bytes that are not stored as they are read: spelled as a text, or with their elements the other way round.

Protocols 0 to 2 have no bytes, so Python 3 writes them as a text to be encoded in Latin-1 (`_reduce_ex` of
bytes in CPython's `Lib/pickle.py`): in UTF-8 with a length, or on a line with escapes. Arrays of big-endian
machines have the most significant byte first.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable
from itertools import islice

from inspector.containers.source import Source
from inspector.errors import DamagedError
from inspector.overriding import override

PLAIN, TEXT, LINE = 0, 1, 2
"""How bytes are spelled: as they are, as a text in UTF-8, as a line of protocol 0."""

Read = Callable[[int, int], bytes]
"""`read(offset, nbytes)` returns bytes, or fewer where they end."""

_STEP_NBYTES = 1 << 16
_MOST_ESCAPE = 10  # \U and eight digits
_FIRST_OF_TWO = 0xC0  # in UTF-8 the first byte of a character of Latin-1 that takes two
_SWAPS = (1, 2, 4, 8)
_TOKEN = re.compile(rb"\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|.", re.DOTALL)
_TYPES = {array(code).itemsize: code for code in "BHILQ"}


def coded(spelling: int, swap: int = 1) -> int:
    """Return the method of an extent, in the place of zip's numbers: 0 for bytes stored as they are."""
    return -(_SWAPS.index(swap) * 4 + spelling)


def is_coded(method: int) -> bool:
    """Return whether a method is one of these."""
    return -len(_SWAPS) * 4 < method < 0


def decoding(read: Read, method: int) -> Read:
    """Return what reads the bytes meant at any offset of them."""
    spelling, swap = -method % 4, _SWAPS[-method // 4]
    if spelling != PLAIN:
        read = Spelled(read, spelling).read_upto
    return read if swap == 1 else _swapping(read, swap)


class Spelled:
    """Bytes that are written as a text, read at any offset: forwards, and after a jump from a mark."""

    def __init__(self, read: Read, spelling: int) -> None:
        self._read = read
        self._is_line = spelling == LINE
        self._places = [0]  # of the bytes meant, one each step, in order ...
        self._stored = [0]  # ... and of those stored
        self._number = -1  # of the step whose bytes are held
        self._held = b""

    def read_upto(self, offset: int, nbytes: int) -> bytes:
        """Return at most `nbytes` bytes; fewer where the text ends."""
        parts = []
        while nbytes > 0:
            number = bisect_right(self._places, offset) - 1
            plain = self._step(number)
            skip = offset - self._places[number]
            if skip >= len(plain):
                if number + 1 == len(self._places):
                    break
                continue
            part = plain[skip : skip + nbytes]
            parts.append(part)
            offset += len(part)
            nbytes -= len(part)
        return b"".join(parts)

    def stored_at(self, offset: int) -> int:
        """Return where the text of a byte begins, within the text."""
        self.read_upto(offset, 1)
        number = bisect_right(self._places, offset) - 1
        skip, start = offset - self._places[number], self._stored[number]
        if not self._is_line:
            return start + len(self._step(number)[:skip].decode("latin-1").encode())
        raw = self._read(start, _STEP_NBYTES)
        return start + next((found.start() for found in islice(_TOKEN.finditer(raw), skip, None)), len(raw))

    def _step(self, number: int) -> bytes:
        """Return the bytes of one step, and note where the next one begins."""
        if number == self._number:
            return self._held
        raw = self._read(self._stored[number], _STEP_NBYTES)
        if len(raw) == _STEP_NBYTES:
            raw = raw[: _whole_of_line(raw) if self._is_line else _whole_of_text(raw)]
        try:
            plain = raw.decode("raw-unicode-escape" if self._is_line else "utf-8").encode("latin-1")
        except UnicodeError as error:
            raise DamagedError("the bytes of a tensor are not written as bytes", where=str(error)) from error
        self._number, self._held = number, plain
        if plain and number + 1 == len(self._places):
            self._places.append(self._places[number] + len(plain))
            self._stored.append(self._stored[number] + len(raw))
        return plain


def _whole_of_text(raw: bytes) -> int:
    return len(raw) - (raw[-1] >= _FIRST_OF_TWO)


def _whole_of_line(raw: bytes) -> int:
    """Return how many bytes of a line surely end no escape in its middle."""
    found = raw.rfind(b"\\", len(raw) - _MOST_ESCAPE)
    return len(raw) if found < 0 else found


def _swapping(read: Read, swap: int) -> Read:
    def read_swapped(offset: int, nbytes: int) -> bytes:
        first = offset - offset % swap
        end = -(-(offset + nbytes) // swap) * swap
        numbers = array(_TYPES[swap])
        raw = read(first, end - first)
        numbers.frombytes(raw[: len(raw) - len(raw) % swap])
        numbers.byteswap()
        return numbers.tobytes()[offset - first : offset - first + nbytes]

    return read_swapped


class Within(Source):
    """A run of bytes of another source, as they are or spelled as a text."""

    def __init__(self, outer: Source, offset: int, nbytes: int, stored: int, spelling: int = PLAIN) -> None:
        """Read a part of `outer`, which stays open; `stored` is how many bytes its text has."""
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
