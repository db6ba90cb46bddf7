"""Whole files copied by systems that do it by name: `clonefile` of macOS, `CopyFile2` of Windows.

Both let the copy share the blocks of the original where the file system can (APFS; ReFS and Dev Drives). They
make a new file, which then takes the place of the one that was opened for writing. See clonefile(2) and
CopyFile2 in Microsoft's documentation of winbase.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.files import OutFile

_AT_FDCWD = -2  # sys/fcntl.h of macOS
_CONTINUE, _CANCEL = 0, 1
_CHUNK_FINISHED = 2
_FAIL_IF_EXISTS = 0x1


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The file to copy: its descriptor for macOS, its name for Windows."""

    fd: int
    path: str


def clone_by_name(original: Original, out: OutFile, progress: Progress) -> bool:
    """Have the system copy a whole file into the one being written; False where it has no such way."""
    copy = _WAYS.get(sys.platform)
    if copy is None or out.part is None:
        return False
    made = out.part.with_name(f"{out.part.name}.whole")
    try:
        if not copy(original, made, progress):
            return False
        made.chmod(0o600)  # it came with the permissions of the original, which may be read-only
        fd = os.open(made, os.O_RDWR | getattr(os, "O_BINARY", 0))
    except OSError:
        return False
    else:
        os.dup2(fd, out.fd)
        os.close(fd)
        made, out.part, out.path = out.part, made, made  # what is removed below is the empty file
        return True
    finally:
        with contextlib.suppress(OSError):
            made.unlink(missing_ok=True)


def _by_clonefile(original: Original, made: Path, _progress: Progress) -> bool:
    system = ctypes.CDLL(None, use_errno=True)
    return bool(system.fclonefileat(original.fd, _AT_FDCWD, os.fsencode(made), 0) == 0)


class _Parameters(ctypes.Structure):
    """COPYFILE2_EXTENDED_PARAMETERS."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cancelled", ctypes.c_void_p),
        ("routine", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class _Message(ctypes.Structure):
    """COPYFILE2_MESSAGE, as it is for a chunk that is finished."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("padding", ctypes.c_uint32),
        ("stream", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("handles", ctypes.c_void_p * 2),
        ("figures", ctypes.c_uint64 * 5),  # chunk number and size, stream size and done, file size
        ("copied_nbytes", ctypes.c_uint64),
    )


def _by_copyfile2(original: Original, made: Path, progress: Progress) -> bool:
    def note(message: int, _context: int | None) -> int:
        told = _Message.from_address(message)
        if told.type == _CHUNK_FINISHED:
            progress.done = told.copied_nbytes
        return _CANCEL if progress.cancelled else _CONTINUE

    make: Callable[..., type[ctypes._FuncPointer]] = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)
    routine = make(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(note)
    address = ctypes.cast(routine, ctypes.c_void_p)
    parameters = _Parameters(ctypes.sizeof(_Parameters), _FAIL_IF_EXISTS, None, address, None)
    system = getattr(ctypes, "WinDLL", ctypes.CDLL)("kernel32")
    result: int = system.CopyFile2(original.path, str(made), ctypes.byref(parameters))  # an HRESULT
    if progress.cancelled:
        raise CancelledError
    progress.done = 0
    return result >= 0


_WAYS: dict[str, Callable[[Original, Path, Progress], bool]] = {
    "darwin": _by_clonefile,
    "win32": _by_copyfile2,
}
