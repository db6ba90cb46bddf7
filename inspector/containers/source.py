"""The only reader of bytes: positioned, bounded reads of one regular file.

`pread` is used rather than a memory map, because a file that shrinks under a map ends the process with
SIGBUS. Every read gives exactly what was asked for or raises a `ContainerError`.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from types import TracebackType
from typing import Self

from inspector.errors import ContainerError
from inspector.limits import DEFAULT_LIMITS, Limits

_GZIP_STEP_NBYTES = 1 << 18


class Source:
    """One regular file, open for reading.

    Attributes:
        path: The file as it was named.
        nbytes: Its size when it was opened; for a gzip file unknown and given as the inflated limit.
        fd: The file descriptor, for those who let the kernel copy.
        gzipped: Whether `read` inflates.
    """

    gzipped = False

    def __init__(self, path: str) -> None:
        """Open a file.

        Raises:
            ContainerError: It is missing, unreadable, empty or no regular file.
        """
        self.path = path
        self.fd = _open(path)
        status = os.fstat(self.fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self.fd)
            raise ContainerError(
                "this is no regular file", where=path, remedy="give the path of a checkpoint file"
            )
        self.nbytes = status.st_size
        self.file_nbytes = status.st_size

    def __enter__(self) -> Self:
        """Use the source in a `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; reading afterwards is an error."""
        os.close(self.fd)

    def read(self, offset: int, nbytes: int) -> bytes:
        """Read exactly `nbytes` bytes.

        Raises:
            ContainerError: The file ends before, or cannot be read.
        """
        data = self.read_upto(offset, nbytes)
        if len(data) < nbytes:
            raise ContainerError(
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
        try:
            data = os.pread(self.fd, min(nbytes, max(self.nbytes - offset, 0)), offset)
            while len(data) < min(nbytes, self.nbytes - offset):
                more = os.pread(self.fd, nbytes - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except (OSError, OverflowError) as error:
            raise ContainerError("the file cannot be read", where=f"byte {offset:,}: {error}") from error
        return data


class GzipSource(Source):
    """The inside of a gzip file, read forwards; stepping back starts over.

    torch.load does not open gzip files by their path, but people compress checkpoints and hand them on.
    """

    gzipped = True

    def __init__(self, path: str, limits: Limits = DEFAULT_LIMITS) -> None:
        """Open a gzip file; its inside is bounded by `limits.inflated_nbytes`."""
        super().__init__(path)
        self.nbytes = limits.inflated_nbytes
        self._rewind()

    def _rewind(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self._taken = 0  # compressed bytes consumed
        self._start = 0  # inflated offset of the window
        self._window = b""

    def read_upto(self, offset: int, nbytes: int) -> bytes:
        """Read at most `nbytes` inflated bytes."""
        if offset < self._start:
            self._rewind()
        while offset + nbytes > self._start + len(self._window):
            if not self._inflate_step(keep_from=offset):
                break
        first = offset - self._start
        return self._window[first : first + nbytes] if first >= 0 else b""

    def _inflate_step(self, keep_from: int) -> bool:
        if self._inflate.eof or self._start + len(self._window) > self.nbytes:
            return False
        try:
            packed = self._inflate.unconsumed_tail or os.pread(self.fd, _GZIP_STEP_NBYTES, self._taken)
            fresh = not self._inflate.unconsumed_tail
            plain = self._inflate.decompress(packed, 4 * _GZIP_STEP_NBYTES)
        except (OSError, zlib.error) as error:
            raise ContainerError(
                "the gzip stream is damaged", where=f"byte {self._taken:,}: {error}"
            ) from error
        self._taken += len(packed) if fresh else 0
        drop = min(max(keep_from - self._start, 0), len(self._window) + len(plain))
        self._window = (self._window + plain)[drop:]
        self._start += drop
        return bool(packed)


def _open(path: str) -> int:
    try:
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        code = getattr(error, "errno", None)
        what = {
            errno.ENOENT: "there is no such file",
            errno.EACCES: "the file may not be read",
            errno.EISDIR: "this is a folder",
        }.get(code or 0, "the file cannot be opened")
        raise ContainerError(what, where=path) from error
