"""Where bytes come from: a local file, the inside of a gzip file, memory, or anything else that can be read.

A `Source` is opened once and handed to whatever needs it, so that all of a job reads one and the same file,
also where its path leads elsewhere meanwhile. `pread` is used rather than a memory map, because a file that
shrinks under a map ends the process with SIGBUS. Every read returns exactly what was asked for or raises a
`ContainerError`.
"""

from __future__ import annotations

import errno
import os
import stat
from _thread import allocate_lock  # `threading` would take 3 ms of every start
from collections.abc import Callable
from typing import Literal, Self

from inspector.containers.programs import Programs
from inspector.errors import (
    ContainerError,
    DamagedError,
    ExportError,
    ForbiddenFileError,
    MissingFileError,
)
from inspector.overriding import override
from inspector.progress import Progress

_STEP_NBYTES = 1 << 20

_seeking = allocate_lock()

Stamp = tuple[int, int, int]
"""Time of the last change in nanoseconds, size and inode: they tell two states of a path apart."""


Work = Literal["copied", "read"]


def stamp_of(status: os.stat_result) -> Stamp:
    """Return what tells one state of a file from another."""
    return status.st_mtime_ns, status.st_size, status.st_ino


class Source:
    """Something to read bytes from at any offset.

    A source of another kind implements `read_at`, and overrides what it can do better than by reading.

    Attributes:
        nbytes: Its size when it was opened; for a gzip file unknown and given as the inflated limit.
        file_nbytes: Its size when it was opened, as it is stored.
        stamp: Its identity when it was opened, before anything of it was read.
        is_cut: Whether it is one with more files than are listed.
        kept: What was read to tell its format, for the reader of that format, which takes it away.
    """

    gzipped = False
    is_folder = False
    is_cut = False
    packing = ""
    kept: object = None

    def __init__(self, path: str, nbytes: int, status: os.stat_result | None = None) -> None:
        self.path = path
        self.nbytes = self.file_nbytes = nbytes
        self.status = status
        self.programs = Programs()
        self.stamp = self.identity()

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return `nbytes` bytes from an offset on, or fewer where the source ends."""
        raise NotImplementedError  # the one method that every kind of source brings

    def part_at(self, _path: str) -> Source:
        """Return the source of one of the files that it consists of: itself, unless it is a folder."""
        return self

    def identity(self) -> Stamp | None:
        """Return what tells the source as it is now from what it was before; None where nothing does."""
        return None

    def copy_to(self, target: int, offset: int, nbytes: int, progress: Progress) -> None:
        """Copy a run of bytes to the position of the descriptor `target`."""
        from inspector.containers.copying import write_bytes  # noqa: PLC0415 - only copies need it

        for done in range(0, nbytes, _STEP_NBYTES):
            data = self.read(offset + done, min(_STEP_NBYTES, nbytes - done))
            progress.advance(write_bytes(target, data))

    def clone_to(self, _target: int) -> bool:
        """Let the file `target` share all blocks of the source; return False where that cannot be."""
        return False

    def fileno(self) -> int | None:
        """Return the descriptor for system calls that take one; None where there is none."""
        return None

    def close(self) -> None:
        """Close the source; reading afterwards is an error."""

    def __enter__(self) -> Self:
        """Use the source in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the source."""
        self.close()

    def refuse_changed(self, done: Work) -> None:
        """Raise an error if the source is not what it was when it was opened."""
        if self.identity() != self.stamp:
            raise self.changed(done)

    def changed(self, done: Work) -> ExportError:
        """Return the error for a source that changed while this was done with it."""
        return ExportError(f"the file changed while it was {done}", where=self.path, remedy="try again")

    def read(self, offset: int, nbytes: int) -> bytes:
        """Read exactly `nbytes` bytes."""
        data = self.read_upto(offset, nbytes)
        if len(data) < nbytes:
            raise DamagedError(
                "the file ends too early",
                where=f"byte {offset + len(data):,} of {nbytes:,} bytes wanted from byte {offset:,} on",
                remedy="the file is incomplete: fetch or copy it again",
            )
        return data

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill a buffer of bytes."""
        for done in range(0, len(buffer), _STEP_NBYTES):
            part = buffer[done : done + _STEP_NBYTES]
            part[:] = self.read(offset + done, len(part))

    def read_upto(self, offset: int, nbytes: int) -> bytes:
        """Read at most `nbytes` bytes; fewer where the file ends."""
        if offset < 0 or nbytes < 0:
            raise ContainerError("the file points outside itself", where=f"byte {offset:,}")
        if not nbytes:
            return b""
        room = min(nbytes, self.nbytes - offset)
        try:
            return self.read_at(offset, nbytes) if room == nbytes else self._read_last(offset, max(room, 0))
        except OSError as error:
            raise ContainerError("the file cannot be read", where=f"byte {offset:,}: {error}") from error

    def _read_last(self, offset: int, nbytes: int) -> bytes:
        """Read what is left, where more was asked for."""
        return self.read_at(offset, nbytes) if nbytes else b""

    def reaches(self, end: int) -> bool:
        """Return whether there is a byte for every offset below `end`."""
        return end <= self.nbytes

    def skip_hole(self, offset: int) -> int:
        """Return the first offset from `offset` on that may hold data; what is skipped was never written."""
        return offset

    def measure(self) -> None:
        """Find out how large what is read is, for formats that are read from their end."""


def _read_by_seeking(fd: int, nbytes: int, offset: int) -> bytes:
    """Read as `os.pread` does, where a system lacks it (Windows)."""
    with _seeking:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, nbytes)


_pread: Callable[[int, int, int], bytes] = getattr(os, "pread", _read_by_seeking)


class FileSource(Source):
    """A regular file of this machine."""

    def __init__(self, path: str, fd: int | None = None) -> None:
        """Open a file, or take over the descriptor of one that is open."""
        self._fd = _open(path) if fd is None else fd
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise _refusal(path, status.st_mode)
        super().__init__(path, status.st_size, status)

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        data = _pread(self._fd, nbytes, offset)
        while len(data) < nbytes:  # a read may stop early at 2 GiB, or where the file was cut off meanwhile
            more = _pread(self._fd, nbytes - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    @override
    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Have the kernel fill it: bytes that are copied once more take half as long again."""
        done = 0
        if 0 <= offset <= self.nbytes - len(buffer) and hasattr(os, "preadv"):
            try:
                while count := os.preadv(self._fd, [buffer[done:]], offset + done):
                    done += count
                    if done == len(buffer):
                        return
            except OSError as error:
                where = f"byte {offset + done:,}: {error}"
                raise ContainerError("the file cannot be read", where=where) from error
        super().read_into(offset + done, buffer[done:])

    @override
    def identity(self) -> Stamp:
        return stamp_of(os.fstat(self._fd))

    @override
    def copy_to(self, target: int, offset: int, nbytes: int, progress: Progress) -> None:
        """Have the kernel copy, which keeps the holes of a sparse file; otherwise as above."""
        from inspector.containers.copying import copy_bytes  # noqa: PLC0415 - only copies need it

        copy_bytes(self._fd, target, offset, nbytes, progress)

    @override
    def clone_to(self, target: int) -> bool:
        from inspector.containers.copying import clone_file  # noqa: PLC0415 - only copies need it

        return clone_file(self._fd, target)

    @override
    def skip_hole(self, offset: int) -> int:
        """Ask the file system, which knows where data is, see lseek(2).

        A download that made room first, or a copy that stopped, leaves gigabytes of nothing.
        """
        if not hasattr(os, "SEEK_DATA"):
            return offset
        try:
            return max(os.lseek(self._fd, offset, os.SEEK_DATA), offset)
        except OSError as error:  # no data behind, or a file system that cannot tell
            return self.nbytes if error.errno == errno.ENXIO else offset

    @override
    def fileno(self) -> int:
        return self._fd

    @override
    def close(self) -> None:
        os.close(self._fd)


class BytesSource(Source):
    """Bytes in memory."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        super().__init__(path, len(data))

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        return self._data[offset : offset + nbytes]


def _open(path: str) -> int:
    try:
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        if not isinstance(error, (FileNotFoundError, PermissionError)):
            why = f": {error.strerror}" if isinstance(error, OSError) else ""
            raise ContainerError(f"the file cannot be opened{why}", where=path) from error
        refused: MissingFileError | ForbiddenFileError
        if isinstance(error, FileNotFoundError):
            refused = MissingFileError("no such file", where=path, remedy=_of_pattern(path))
        else:
            refused = ForbiddenFileError("the file may not be read", where=path)
        refused.errno, refused.filename = error.errno, error.filename
        raise refused from error


def _of_pattern(path: str) -> str | None:
    if not any(char in path for char in "*?["):
        return None
    from glob import iglob  # noqa: PLC0415 - few names are patterns

    matches = next(iglob(path), None) is not None  # noqa: PTH207 - a text, as it was given
    return "name one of the files that match" if matches else "no file matches this pattern"


def _refusal(path: str, mode: int) -> ContainerError:
    if stat.S_ISDIR(mode):
        from inspector.containers.lookalikes import name_folder  # noqa: PLC0415 - few give a folder

        return name_folder(path)
    return ContainerError(
        "this is not a regular file", where=path, remedy="give the path of a checkpoint file"
    )


class Window(Source):
    """Some bytes of another source, which stays open elsewhere."""

    def __init__(self, whole: Source, offset: int, nbytes: int) -> None:
        if offset < 0 or nbytes < 0 or offset + nbytes > whole.nbytes:
            raise DamagedError(
                "the file ends too early",
                where=f"{whole.path}: {nbytes:,} bytes wanted from byte {offset:,} of {whole.nbytes:,} on",
                remedy="the file is incomplete: fetch or copy it again",
            )
        self._whole = whole
        self._offset = offset
        super().__init__(whole.path, nbytes)

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        return self._whole.read_at(self._offset + offset, nbytes)


_NEAR_NBYTES = 1 << 12
_AHEAD_NBYTES = 1 << 14


class NearReader:
    """Reads small pieces one behind the other; pieces that stand close share one read of the file."""

    def __init__(self, source: Source) -> None:
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


def read_small(path: str | os.PathLike[str], most_nbytes: int) -> bytes:
    """Return all bytes of a regular file; a FIFO or a device is refused, and never waited for."""
    with FileSource(os.fspath(path)) as source:
        if source.nbytes > most_nbytes:
            raise ContainerError(f"the file is larger than {most_nbytes:,} bytes", where=os.fspath(path))
        return source.read_upto(0, most_nbytes)
