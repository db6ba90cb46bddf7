"""The only reader of bytes: positioned, bounded reads of one regular file.

`pread` is used rather than a memory map, because a file that shrinks under a map ends the process with
SIGBUS. Every read gives exactly what was asked for or raises a `ContainerError`.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from _thread import allocate_lock  # `threading` would take 3 ms of every start
from collections.abc import Callable
from typing import Self

from inspector.containers.gzip_inside import MAGIC, GzipInside
from inspector.containers.programs import Programs
from inspector.errors import ContainerError, DamagedError, NotACheckpointError, TooLargeError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.overriding import override

_NEAR_NBYTES = 1 << 12
_AHEAD_NBYTES = 1 << 14

_seeking = allocate_lock()

Stamp = tuple[int, int, int]
"""Time of the last change in nanoseconds, size and inode: they tell two states of a path apart."""


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what tells one state of a file from another."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read_by_seeking(fd: int, nbytes: int, offset: int) -> bytes:
    """Read as `os.pread` does, where a system lacks it (Windows)."""
    with _seeking:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, nbytes)


_pread: Callable[[int, int, int], bytes] = getattr(os, "pread", _read_by_seeking)


class Source:
    """One regular file, open for reading.

    Attributes:
        path: The file as it was named.
        nbytes: Its size when it was opened; for a gzip file unknown and given as the inflated limit.
        file_nbytes: Its size when it was opened.
        stamp: What the file looked like when it was opened, before anything of it was read.
        fd: The file descriptor, for those who let the kernel copy.
        gzipped: Whether `read` inflates.
        programs: The pickles that were read of the file and that loading it runs.
    """

    gzipped = False

    def __init__(self, path: str) -> None:
        """Open a file.

        Raises:
            ContainerError: It is missing, unreadable or no regular file.
        """
        self.path = path
        self.fd = _open(path)
        status = os.fstat(self.fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self.fd)
            raise _refusal(path, status.st_mode)
        self.nbytes = status.st_size
        self.file_nbytes = status.st_size
        self.programs = Programs()
        self.stamp = stamp_of(status)
        self._fetch: Callable[[int, int], bytes] = self._fetch_plain

    def __enter__(self) -> Self:
        """Use the source in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; reading afterwards is an error."""
        os.close(self.fd)

    def read(self, offset: int, nbytes: int) -> bytes:
        """Read exactly `nbytes` bytes.

        Raises:
            DamagedError: The file ends before.
            ContainerError: It cannot be read.
        """
        data = self.read_upto(offset, nbytes)
        if len(data) < nbytes:
            raise DamagedError(
                "the file ends too early",
                where=f"byte {offset + len(data):,} of {nbytes:,} bytes wanted from byte {offset:,} on",
                remedy="the file is incomplete: fetch or copy it again",
            )
        return data

    def read_upto(self, offset: int, nbytes: int) -> bytes:
        """Read at most `nbytes` bytes; fewer where the file ends.

        Raises:
            ContainerError: The file cannot be read.
        """
        if offset < 0 or nbytes < 0:
            raise ContainerError("the file points outside itself", where=f"byte {offset:,}")
        room = min(nbytes, self.nbytes - offset)
        if room <= 0 and not (nbytes and self.gzipped):
            return b""
        try:
            return self._fetch(offset, room) if room == nbytes else self._fetch_last(offset, max(room, 0))
        except zlib.error as error:
            raise DamagedError(
                "the gzip stream is damaged",
                where=f"byte {offset:,}: {error}",
                remedy="fetch or copy the file again",
            ) from error
        except OSError as error:
            raise ContainerError("the file cannot be read", where=f"byte {offset:,}: {error}") from error

    def reaches(self, end: int) -> bool:
        """Say whether there is a byte for every offset below `end`.

        Raises:
            ContainerError: The file cannot be read.
        """
        return bool(self.read_upto(end - 1, 1)) if self.gzipped else end <= self.nbytes

    def skip_hole(self, offset: int) -> int:
        """Give the first offset from `offset` on that may hold data; what is skipped was never written.

        A download that made room first, or a copy that stopped, leaves gigabytes of nothing: the file system
        knows where, see lseek(2).
        """
        if self.gzipped or not hasattr(os, "SEEK_DATA"):
            return offset
        try:
            return max(os.lseek(self.fd, offset, os.SEEK_DATA), offset)
        except OSError as error:  # no data behind, or a file system that cannot tell
            return self.nbytes if error.errno == errno.ENXIO else offset

    def _fetch_last(self, offset: int, nbytes: int) -> bytes:
        """Read what is left, where more was asked for."""
        return self._fetch(offset, nbytes)

    def _fetch_plain(self, offset: int, nbytes: int) -> bytes:
        data = _pread(self.fd, nbytes, offset)
        while len(data) < nbytes:  # a read may stop early at 2 GiB, or where the file was cut off meanwhile
            more = _pread(self.fd, nbytes - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data


class BytesSource(Source):
    """Bytes in memory, read as a file is."""

    def __init__(self, data: bytes, path: str) -> None:  # no file is opened
        """Read `data`, which `path` names in errors."""
        self.path = path
        self.fd = -1
        self.nbytes = self.file_nbytes = len(data)
        self.programs = Programs()
        self._fetch = lambda offset, nbytes: data[offset : offset + nbytes]

    @override
    def close(self) -> None:
        """Do nothing: no file is open."""


class GzipSource(Source):
    """The inside of a gzip file.

    torch.load does not open gzip files by their path, but people compress checkpoints and hand them on.
    """

    gzipped = True

    def __init__(self, path: str, limits: Limits = DEFAULT_LIMITS) -> None:
        """Open a gzip file; its inside is read up to `limits.inflated_nbytes`, and not taken to end there."""
        super().__init__(path)
        self.nbytes = limits.inflated_nbytes
        look = None if limits.work is None else limits.work.look
        self._fetch = GzipInside(lambda offset, nbytes: _pread(self.fd, nbytes, offset), look).read_upto

    @override
    def _fetch_last(self, offset: int, nbytes: int) -> bytes:
        data = self._fetch(offset, nbytes) if nbytes else b""
        if len(data) == nbytes and self._fetch(self.nbytes, 1):
            raise TooLargeError(
                f"the file holds more than {self.nbytes:,} bytes once unpacked, and no more are read",
                where=self.path,
                remedy="unpack it with gunzip first",
            )
        return data


def open_source(path: str, limits: Limits = DEFAULT_LIMITS) -> Source:
    """Open a file for reading, looking through gzip.

    Raises:
        ContainerError: It is missing, unreadable or no regular file.
    """
    source = Source(path)
    try:
        is_packed = source.read_upto(0, len(MAGIC)) == MAGIC
    except BaseException:
        source.close()
        raise
    if not is_packed:
        return source
    source.close()
    return GzipSource(path, limits)


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
        """Have `nbytes` bytes from `offset` on in the window, or fewer where the file ends; say where in it.

        Raises:
            ContainerError: The file cannot be read.
        """
        at = offset - self._start
        window = self.window
        if 0 <= at <= len(window) - nbytes:
            return at
        # Far jumps are those over large payloads, where the bytes read ahead would be in vain.
        is_near = 0 <= at <= len(window) + _NEAR_NBYTES
        self.window = self._source.read_upto(offset, _AHEAD_NBYTES if is_near else nbytes)
        self._start = offset
        return 0


def _open(path: str) -> int:
    try:
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        code = getattr(error, "errno", None)
        what = {
            errno.ENOENT: "there is no such file",
            errno.EACCES: "the file may not be read",
        }.get(code or 0, "the file cannot be opened")
        raise ContainerError(what, where=path) from error


def _refusal(path: str, mode: int) -> ContainerError:
    if stat.S_ISDIR(mode):
        what = "this is a folder, and this version reads single files"
        return NotACheckpointError(what, where=path, remedy="give the path of a file in it")
    return ContainerError("this is no regular file", where=path, remedy="give the path of a checkpoint file")
