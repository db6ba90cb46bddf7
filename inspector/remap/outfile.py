"""A file that appears whole or not at all: written beside its place, synced, then renamed into it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inspector.errors import ExportError


@dataclass(slots=True)
class OutFile:
    """The file being written.

    Attributes:
        fd: Its descriptor.
        path: Its temporary path.
    """

    fd: int
    path: Path


@contextlib.contextmanager
def writing(destination: Path, *, like: os.stat_result, overwrite: bool) -> Iterator[OutFile]:
    """Give a file to write; on leaving without an error it takes its place, otherwise it is gone.

    Args:
        destination: Where the file shall stand.
        like: Whose permissions it gets.
        overwrite: Whether a file that stands there may be replaced.

    Raises:
        ExportError: It cannot be written there; the reason is the operating system's.
    """
    part = destination.with_name(f".{destination.name[:100]}.{secrets.token_hex(4)}.part")
    with _explained(destination):
        fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with _explained(destination):
            try:
                yield OutFile(fd, part)
                os.fchmod(fd, stat.S_IMODE(like.st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
                os.fsync(fd)
            finally:
                os.close(fd)
            _put_in_place(part, destination, overwrite=overwrite)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _put_in_place(part: Path, destination: Path, *, overwrite: bool) -> None:
    if overwrite or not _link(part, destination):
        part.replace(destination)
    else:
        part.unlink()
    folder = os.open(destination.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _link(part: Path, destination: Path) -> bool:
    """Put the file in place unless something came there meanwhile; False where there are no hard links."""
    try:
        os.link(part, destination)
    except OSError as error:
        if error.errno in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}:
            return False
        raise
    return True


@contextlib.contextmanager
def _explained(destination: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportError(f"the copy cannot be written: {reason}", where=str(destination)) from error
