"""A lock that one process holds, and that the kernel takes back from a process that is gone, however it went.

Not `QLockFile`, which asks whether the process with the number in the file still runs: a crashed program
whose parent does not collect it, or whose number another one has now, would keep the lock for good.
"""

from __future__ import annotations

import os
import sys


class ProcessLock:
    """Holds a file locked; the file stays, since removing it would let two processes lock two files."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle: int | None = None

    def try_lock(self) -> bool:
        """Lock without waiting; the time of the file says since when it has been locked."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return False
        try:
            _lock(handle)
        except OSError:
            os.close(handle)
            return False
        os.utime(self._path)
        self._handle = handle
        return True

    def unlock(self) -> None:
        """Let the next one have it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - each of the two is there on its own platform only

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # noqa: PLC0415

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
