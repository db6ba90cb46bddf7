"""Work in threads, whose results come back to the main thread through one queued signal.

A `ThreadPoolExecutor` rather than a `QThreadPool`, whose threads coverage does not see. Only a bound method
of a `QObject` is called in that object's own thread: a lambda would run in the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

from inspector.gui.gc_freeze import FreezingPause
from inspector.progress import Progress

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
_MOST_THREADS = 256
"""More than are ever started: no job waits for another, however long that takes."""
_PAUSE = FreezingPause()


class ThreadRunner(QObject):
    """Runs `work(progress)` in a thread and calls one of two callbacks on the main thread."""

    _settled = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool: ThreadPoolExecutor | None = None
        self._running: set[Progress] = set()
        self._closed = False
        self._settled.connect(self._on_settled, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        work: Callable[[Progress], T],
        progress: Progress,
        on_done: Callable[[T], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Start `work(progress)`; call exactly one of the two callbacks on the main thread."""
        if self._closed:
            return
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="checkpoint-work")
        self._running.add(progress)
        self._pool.submit(self._work, work, progress, on_done, on_failed)

    def close(self) -> None:
        """Cancel all jobs and wait for them; no callback is called afterwards."""
        self._closed = True
        for progress in tuple(self._running):
            progress.cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _work(
        self,
        work: Callable[[Progress], T],
        progress: Progress,
        on_done: Callable[[T], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        try:
            with _PAUSE:
                result = work(progress)
        except Exception as error:  # noqa: BLE001  # the session words it for the user
            call = partial(on_failed, error)
        else:
            call = partial(on_done, result)
        self._settled.emit((progress, call))

    def _on_settled(self, settled: tuple[Progress, Callable[[], None]]) -> None:
        progress, call = settled
        self._running.discard(progress)
        if not self._closed:
            call()
