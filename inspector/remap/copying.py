"""Bytes from file to file by the kernel: shared blocks where the file system can, copied ones elsewhere.

Tensor bytes never pass through Python unless nothing better works. Each way is tried in turn; a way that the
file system refuses is left for good within one copy.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

from inspector.errors import ExportError
from inspector.progress import Progress

STEP_NBYTES = 32 << 20
_READ_NBYTES = 1 << 20
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
    """Copy a run of bytes to the target's position.

    Raises:
        ExportError: The source ended early, having changed since it was opened.
        OSError: The target cannot take them.
        CancelledError: The work was cancelled.
    """
    ways = _ways()
    while nbytes:
        progress.advance(0)
        try:
            count = ways[0](source, target, offset, min(nbytes, STEP_NBYTES))
        except OSError as error:
            if error.errno not in _REFUSALS or len(ways) == 1:
                raise
            del ways[0]
            continue
        if count == 0 and len(ways) > 1:  # some file systems say so of a way they do not support
            del ways[0]
            continue
        if count == 0:
            raise ExportError("the file ended while it was copied", remedy="try again once it is complete")
        offset += count
        nbytes -= count
        progress.advance(count)


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
    """Write all of these bytes at the target's position; gives their number.

    Raises:
        OSError: The target cannot take them.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
    return len(data)


def write_over(target: int, offset: int, data: bytes) -> None:
    """Write bytes over those that stand somewhere in the target.

    Raises:
        OSError: The target cannot take them.
    """
    os.lseek(target, offset, os.SEEK_SET)
    write_bytes(target, data)
