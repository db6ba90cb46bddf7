"""Whether a file is still the one that it was when the work on it began."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from inspector.errors import ExportError

Work = Literal["copied", "read"]


def refuse_changed(path: str, before: os.stat_result, work: Work, fd: int | None = None) -> None:
    """Refuse to go on with a file that is not as it was.

    Args:
        path: The file.
        before: What the system said of it when the work began.
        work: What is done with it, for the message.
        fd: The descriptor to ask; None asks for what stands at the path now.

    Raises:
        ExportError: It was written to, replaced or removed.
    """
    try:
        after = Path(path).stat() if fd is None else os.fstat(fd)
    except OSError as error:
        raise changed(path, work) from error
    if _identity(after) != _identity(before):
        raise changed(path, work)


def changed(path: str, work: Work) -> ExportError:
    """Return the error for a file that changed."""
    return ExportError(f"the file changed while it was {work}", where=path, remedy="try again")


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
