"""`inspector.open`."""

from __future__ import annotations

import os

from inspector.library.checkpoint import Checkpoint
from inspector.library.opened import Opened
from inspector.library.sources import Path


def open(path: Path) -> Checkpoint:  # noqa: A001 - the library's word: inspector.open
    """Open a checkpoint: a file, or a folder that is one. Nothing in it is executed, and no weights are read.

    The file is closed when this returns.

    Args:
        path: The file or folder.

    Raises:
        CheckpointError: It is missing, no checkpoint, of a format that is not read, or damaged.
    """
    return Checkpoint(Opened(os.fsdecode(path)))
