"""Bytes from file to file by the kernel: shared blocks where the file system can, copied ones elsewhere.

Tensor bytes never pass through Python unless nothing better works. Each way is tried in turn; a way that the
file system refuses is left for good within one copy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator

from inspector.errors import ExportError
from inspector.progress import Progress

STEP_NBYTES = 32 << 20
_READ_NBYTES = 1 << 20
_BLOCK_NBYTES = 512  # what st_blocks counts, see stat(2)
_ENDED = "the file ended while it was copied"
_FICLONE = 0x40049409  # linux/fs.h
_REFUSALS = frozenset(
    {
        errno.EXDEV,
        errno.EINVAL,
        errno.ENOSYS,
        errno.EOPNOTSUPP,
        errno.EBADF,
        errno.EPERM,
        errno.EACCES,
        errno.ENOTTY,
        errno.ETXTBSY,
    }
)

Way = Callable[[int, int, int, int], int]
"""`way(source, target, offset, count)` copies up to `count` bytes to where the target is, gives how many."""


def clone_file(source: int, target: int) -> bool:
    """Let a whole file share the blocks of another (btrfs, XFS, bcachefs); False where that cannot be."""
    if sys.platform != "linux":
        return False
    import fcntl  # noqa: PLC0415 - exists on Unix only

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in _REFUSALS:
            return False
        raise
    return True


def copy_bytes(source: int, target: int, offset: int, nbytes: int, progress: Progress) -> None:
    """Copy a run of bytes to the target's position; holes of a sparse file stay holes."""
    ways = _ways()
    for start, end, is_hole in _extents(source, offset, offset + nbytes):
        if is_hole:
            progress.advance(end - start)
            os.ftruncate(target, os.lseek(target, end - start, os.SEEK_CUR))
        else:
            _copy_run(ways, (source, target), (start, end), progress)


def _copy_run(ways: list[Way], files: tuple[int, int], run: tuple[int, int], progress: Progress) -> None:
    """Copy bytes that are there; ways that the system refuses are taken out of the list."""
    source, target = files
    offset, end = run
    while offset < end:
        progress.advance(0)
        try:
            count = ways[0](source, target, offset, min(end - offset, STEP_NBYTES))
        except OSError as error:
            if error.errno not in _REFUSALS or len(ways) == 1:
                raise
            del ways[0]
            continue
        if count == 0 and len(ways) > 1:  # some file systems say so of a way they do not support
            del ways[0]
            continue
        if count == 0:
            raise ExportError(_ENDED, remedy="try again once it is complete")
        offset += count
        _write_out(target, count)
        progress.advance(count)


def _write_out(target: int, count: int) -> None:
    """Let the disk begin with what was copied last, so that the last sync is short: it cannot be cancelled.

    Linux writes dirty pages out when told that they are not needed (`generic_fadvise` in mm/fadvise.c). It
    drops clean ones only, so the copy stays in memory for the check and for the program that loads it next.
    """
    if hasattr(os, "posix_fadvise"):
        end = os.lseek(target, 0, os.SEEK_CUR)
        with contextlib.suppress(OSError):  # advice
            os.posix_fadvise(target, end - count, count, os.POSIX_FADV_DONTNEED)


def _extents(source: int, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Divide a run into what is there and what is a hole, as (start, end, whether it is a hole)."""
    status = os.fstat(source)
    if not hasattr(os, "SEEK_DATA") or getattr(status, "st_blocks", 0) * _BLOCK_NBYTES >= status.st_size:
        yield start, end, False
        return
    while start < end:
        data = _seek(source, start, os.SEEK_DATA, end)
        if start < data:
            if data > os.fstat(source).st_size:
                raise ExportError(_ENDED, remedy="try again once it is complete")
            yield start, data, True
        hole = _seek(source, data, os.SEEK_HOLE, end) if data < end else end
        if data < hole:
            yield data, hole, False
        start = hole


def _seek(source: int, start: int, what: int, end: int) -> int:
    """Return where data or a hole begins, at most `end`; data is everywhere if nothing tells."""
    try:
        return min(os.lseek(source, start, what), end)
    except OSError as error:
        return end if what == os.SEEK_HOLE or error.errno == errno.ENXIO else start


def _ways() -> list[Way]:
    ways: list[Way] = [_by_reading]
    if hasattr(os, "sendfile") and sys.platform == "linux":
        ways.insert(0, _by_sendfile)
    if hasattr(os, "copy_file_range"):
        ways.insert(0, _by_copy_file_range)
    return ways


def _by_copy_file_range(source: int, target: int, offset: int, count: int) -> int:
    return os.copy_file_range(source, target, count, offset_src=offset)


def _by_sendfile(source: int, target: int, offset: int, count: int) -> int:
    return os.sendfile(target, source, offset, count)


def _by_reading(source: int, target: int, offset: int, count: int) -> int:
    os.lseek(source, offset, os.SEEK_SET)  # Windows has no pread
    return write_bytes(target, os.read(source, min(count, _READ_NBYTES)))


def write_bytes(target: int, data: bytes) -> int:
    """Write all of these bytes at the target's position; return their number."""
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
    return len(data)


def write_over(target: int, offset: int, data: bytes) -> None:
    """Write bytes over those that stand somewhere in the target."""
    os.lseek(target, offset, os.SEEK_SET)
    write_bytes(target, data)
