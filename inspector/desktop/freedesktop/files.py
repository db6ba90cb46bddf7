"""Small files of the desktop, replaced as a whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from inspector.containers.source import read_small
from inspector.errors import ContainerError

_MOST_NBYTES = 16 << 20
NEW_FILE_MODE = 0o644
"""What other programs of the desktop expect to be able to read; `mkstemp` alone would give 0600."""


def read_if_there(path: Path) -> bytes | None:
    """Read a small file; None when there is none."""
    if not path.exists():
        return None
    try:
        return read_small(path, _MOST_NBYTES)
    except ContainerError as error:
        raise OSError(errno.EINVAL, error.what, os.fspath(path)) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` in one step, so that no reader ever meets half of it.

    A symbolic link is followed: people keep `mimeapps.list` in a repository of their own and link to it.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else NEW_FILE_MODE
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
        temporary.replace(target)
    except OSError:
        temporary.unlink()
        raise


def restore(path: Path, content: bytes | None) -> None:
    """Put back what `read_if_there` gave."""
    if content is None:
        path.unlink(missing_ok=True)
    else:
        write_atomically(path, content)


def remove_empty_folders(folder: Path, *, below: Path) -> None:
    """Remove `folder` and its parents while they are empty; `below` itself stays."""
    while folder != below and below in folder.parents:
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            return  # something else lives there
        folder = folder.parent
