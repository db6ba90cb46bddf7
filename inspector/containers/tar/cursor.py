"""Reads what stands in a member of a tar checkpoint: pickles and numbers, one behind the other."""

from __future__ import annotations

import struct
import time

from inspector.containers.source import Source
from inspector.containers.tar.members import Member
from inspector.errors import BrokenOffError, ContainerError, DamagedError
from inspector.limits import Limits
from inspector.pickles.machine import Machine, Stream
from inspector.progress import Progress

FETCH = "fetch or copy it again"
_FIRST_READ_NBYTES = 1 << 9
_NDIM = struct.Struct("<i4x")
_MOST_DIMENSIONS = 64


class Cursor:
    """Reads what stands in a member, one thing behind the other.

    Attributes:
        pos: Where the next thing stands in the file.
        streams: The pickles read.
    """

    def __init__(self, source: Source, member: Member, limits: Limits, progress: Progress) -> None:
        self._source = source
        self._member = member
        self._limits = limits
        self._progress = progress
        self.pos = member.payload
        self.streams: list[Stream] = []

    def breathe(self) -> None:
        """Count one thing more; the time and the number of pickles are bounded."""
        self._progress.advance(1)
        limits = self._limits
        if len(self.streams) > limits.storages or time.thread_time() > limits.ends_s:
            raise ContainerError("the tar file holds too much to read", where=f"byte {self.pos:,}")

    def pickle(self) -> Stream:
        """Read a pickle."""
        start = self.pos

        def extend(nbytes: int) -> bytes:
            return self._read_upto(start, min(2 * nbytes + _FIRST_READ_NBYTES, self._limits.pickle_nbytes))

        machine = Machine(
            self._read_upto(start, _FIRST_READ_NBYTES),
            name=f"{self._member.name} at byte {start:,}",
            limits=self._limits,
            progress=self._progress,
            extend=extend,
        )
        try:
            stream = self._source.programs.run(machine, self._member.name)
        except BrokenOffError as error:
            if self._source.reaches(self._member.end):
                raise
            raise self._short() from error
        self.pos = start + stream.end
        self.streams.append(stream)
        return stream

    def count(self) -> int:
        """Read a pickled number of things."""
        count = self.pickle().root
        if type(count) is not int or not 0 <= count <= self._member.nbytes:
            raise malformed(f"the number of {self._member.name}", self._member.payload)
        return count

    def take(self, nbytes: int) -> bytes:
        """Read so many bytes."""
        start = self.pos
        self.skip(nbytes)
        return self._source.read(start, nbytes)

    def skip(self, nbytes: int) -> None:
        """Pass over so many bytes, which must be there."""
        if self.pos + nbytes > self._member.end:
            raise malformed(f"the length of {self._member.name}", self.pos)
        self.pos += nbytes
        if not self._source.reaches(self.pos):
            raise self._short()

    def geometry(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Read the offset, sizes and strides of a tensor."""
        start = self.pos
        (ndim,) = _NDIM.unpack(self.take(_NDIM.size))
        if not 0 <= ndim <= _MOST_DIMENSIONS:
            raise malformed("the shape of a tensor", start)
        numbers = struct.unpack(f"<{2 * ndim + 1}q", self.take(8 * (2 * ndim + 1)))
        return numbers[-1], numbers[:ndim], numbers[ndim:-1]

    def _read_upto(self, start: int, nbytes: int) -> bytes:
        return self._source.read_upto(start, max(min(nbytes, self._member.end - start), 0))

    def _short(self) -> DamagedError:
        return DamagedError(
            f"the file is cut off within its {self._member.name}, and what is behind has no name",
            where=f"byte {self._source.nbytes:,}",
            remedy=FETCH,
        )


def malformed(what: str, pos: int) -> ContainerError:
    """Return the error for something that is not as torch 0.1 wrote it."""
    return ContainerError(f"{what} in the tar file is malformed", where=f"byte {pos:,}")
