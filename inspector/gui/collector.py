"""Keeps the garbage collector from stopping the window while a large file is read.

A full collection walks over every object and holds the interpreter's lock meanwhile: half a second at 100,000
tensors, whichever thread it began in. What a file becomes has no cycles, and goes when nobody refers to it.
"""

from __future__ import annotations

import gc
from threading import Lock
from types import TracebackType

_MANY = 10_000
"""So many new objects take the collector a millisecond; after fewer, nothing need be frozen."""
_FEW = 300_000
"""So many objects take the collector about 50 ms."""


class CollectorPause:
    """A context that pauses the collector; several threads may be in it at once.

    What was made meanwhile is frozen if it is much. So is everything else that is there by then, a window and
    its session too: these must not count on the collector, see `collect_closed`.
    """

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
                if gc.get_count()[0] > _MANY:
                    gc.freeze()
                gc.enable()


def collect_closed() -> None:
    """Collect what a closed window left behind, also what was frozen with it.

    Only where that takes no more than a moment: with a large file in another window the frozen rest of this
    one, some widgets and no part of its file, waits until that is closed too.
    """
    if gc.isenabled() and gc.get_freeze_count() < _FEW:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
