"""Keeps the garbage collector from stopping the window while a large file is read.

A full collection walks over every object and holds the interpreter's lock meanwhile: half a second at 100,000
tensors, whichever thread it began in. What a file becomes has no cycles, and goes when nobody refers to it.
"""

from __future__ import annotations

import gc
from threading import Lock
from types import TracebackType


class CollectorPause:
    """A context that pauses the collector; several threads may be in it at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0

    def __enter__(self) -> None:
        """Stop collecting."""
        with self._lock:
            self._inside += 1
            gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Collect again, without walking over what has been made meanwhile."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                gc.freeze()
                gc.enable()
