"""Keeps the garbage collector from stopping the window while a large file is read.

A full collection walks over every object and holds the interpreter's lock meanwhile: half a second at 100,000
tensors, in whichever thread it starts. A checkpoint in memory has no cycles, and is freed with its last
reference. (`inspector.containers.collector` only pauses the collector, to read faster.)
"""

from __future__ import annotations

import gc
from threading import Lock
from types import TracebackType

_MANY = 10_000
"""This many new objects take the collector a millisecond; fewer are not frozen."""
_FEW = 300_000
"""This many objects take the collector about 50 ms."""
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})


class FreezingPause:
    """A context that pauses the collector; several threads may be in it at once.

    When the last one leaves, all objects are frozen if many were made, or long ones. That includes windows
    and their sessions, so these must not rely on the collector: see `collect_closed`.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Resume collecting, without walking over what was made meanwhile."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                if gc.get_count()[0] > _MANY or _has_long_ones():
                    gc.freeze()
                gc.enable()


def _has_long_ones() -> bool:
    return any(len(one) > _MANY for one in gc.get_objects(generation=0) if type(one) in _CONTAINERS)


def collect_closed() -> None:
    """Collect what a closed window left behind, frozen objects included.

    Only if that is quick: with a large file in another window, the frozen rest of this one (some widgets, no
    part of its file) stays until that is closed too.
    """
    if gc.isenabled() and gc.get_freeze_count() < _FEW:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
