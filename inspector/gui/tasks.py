"""Work that does not hold the window up: in threads, or on the main thread in slices.

The results of threads come back to the main thread through one queued signal.

Python's threads rather than a `QThreadPool`, whose threads coverage does not see; one for each job: no job
waits for another, however long that takes, and a pool takes longer to import than it would save. Only a bound
method of a `QObject` is called in that object's own thread: a lambda would run in the worker.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial
from threading import Lock, Thread
from types import TracebackType
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from inspector.progress import Progress

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


T = TypeVar("T")
_END = object()
Tell = Callable[[Any], None]
_PAUSE = FreezingPause()
TURN_S = 0.0005
"""How long a thread may go on in Python while another waits for the interpreter's lock: each call of Qt lets
go of it, so with Python's 5 ms the main thread would stand for 5 ms at each of hundreds of calls."""
_ALIVE: set[ThreadRunner] = set()
"""Runners that are not closed, or whose work has not ended yet: a thread must not tell one that is gone."""


def _raise(error: Exception) -> None:
    raise error


class ThreadRunner(QObject):
    """Runs `work(progress)` in a thread and calls one of two callbacks on the main thread.

    The callbacks stay on the main thread: they refer to the window, which must not be let go of in a thread.
    """

    _ended = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[Progress, tuple[Tell, Tell]] = {}
        self._running = 0
        self._closed = False
        self._ended.connect(self._on_ended, Qt.ConnectionType.QueuedConnection)
        _ALIVE.add(self)

    def run(
        self,
        work: Callable[[Progress], T],
        progress: Progress,
        on_done: Callable[[T], None],
        on_failed: Callable[[Exception], None] = _raise,
    ) -> None:
        """Start `work(progress)`; call exactly one of the two callbacks on the main thread."""
        if self._closed:
            return
        self._waiting[progress] = on_done, on_failed
        self._running += 1
        sys.setswitchinterval(TURN_S)
        Thread(target=self._work, args=(work, progress), name="checkpoint-work").start()

    def close(self) -> None:
        """Cancel all jobs and wait for none: a disk that hangs must not keep the window from closing.

        No callback is called afterwards. What still runs ends by itself, before the interpreter does.
        """
        self._closed = True
        for progress in self._waiting:
            progress.cancel()
        self._waiting.clear()
        self._leave()

    def _work(self, work: Callable[[Progress], T], progress: Progress) -> None:
        try:
            with _PAUSE:
                answer: T | Exception = work(progress)
                failed = False
        except Exception as error:  # noqa: BLE001  # the session words it for the user
            answer, failed = error, True
        self._ended.emit((progress, failed, answer))

    def _on_ended(self, ended: tuple[Progress, bool, object]) -> None:
        progress, failed, answer = ended
        self._running -= 1
        on_done, on_failed = self._waiting.pop(progress, (None, None))
        tell = on_failed if failed else on_done
        if tell is not None:
            tell(answer)
        self._leave()

    def _leave(self) -> None:
        if self._closed and not self._running:
            QTimer.singleShot(0, partial(_ALIVE.discard, self))  # nothing is deleted within its own slot


class Turns(QObject):
    """Goes through an iterator: the first step at once, then one in each turn of the event loop.

    What is small is therefore done when the call returns. New work replaces what is left of the old.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._steps: Iterator[object] | None = None
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._step)

    @property
    def is_busy(self) -> bool:
        return self._steps is not None

    def begin(self, steps: Iterator[object]) -> None:
        """Take the first step now, and the others in the turns that follow."""
        self.stop()
        self._steps = steps
        self._step()

    def stop(self) -> None:
        """Leave what is not done yet."""
        self._steps = None
        self._timer.stop()

    def finish(self) -> None:
        """Do all that is left at once."""
        while self._steps is not None:
            self._step()

    def _step(self) -> None:
        steps, is_done = self._steps, True
        try:
            is_done = steps is None or next(steps, _END) is _END
        finally:  # a mistake in the work ends it too
            if steps is self._steps:
                if is_done:
                    self.stop()
                else:
                    self._timer.start()
