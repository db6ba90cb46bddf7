"""Small files beside a checkpoint: records, profiles, lists of programs. They are as untrusted as itself."""

from __future__ import annotations

import os

from inspector.containers.source import FileSource
from inspector.errors import ContainerError


def read_small(path: str | os.PathLike[str], most_nbytes: int) -> bytes:
    """Return all bytes of a regular file; a FIFO or a device is refused, and never waited for."""
    with FileSource(os.fspath(path)) as source:
        if source.nbytes > most_nbytes:
            raise ContainerError(f"the file is larger than {most_nbytes:,} bytes", where=os.fspath(path))
        return source.read_upto(0, most_nbytes)
