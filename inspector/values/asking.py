"""Asks a child process about the values of tensors; it stays warm for the next question."""

from __future__ import annotations

import atexit
import os
import sys
from _thread import allocate_lock
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Self

from inspector.child import Answer, Worker, worker_script
from inspector.errors import ExportError, ValuesError, WorkerError
from inspector.progress import Progress
from inspector.values.request import Requests, read_nbytes
from inspector.values.statistics import Ranks, Statistics, build_statistics

_TIMEOUT_S = 120.0
_POLL_S = 0.05
_SHORT_NBYTES = 8 << 20
_NO_ANSWER = "the values could not be read"


def require_numpy() -> None:
    """Raise ExportError where the Python that computes, which is the program's own, has no NumPy."""
    if find_spec("numpy") is None:
        raise ExportError(
            "this needs NumPy",
            where=f"the Python that runs this program has none: {sys.executable}",
            remedy="install numpy there",
        )


_FREE: list[ValueReader] = []
"""The reader that stays for the next call of the library, while nobody uses it."""


@contextmanager
def staying_reader() -> Iterator[ValueReader]:
    """Yield the reader that stays, or another one while somebody else uses it."""
    try:
        reader = _FREE.pop()
    except IndexError:
        reader = ValueReader()
    try:
        yield reader
    finally:
        _FREE.append(reader)
        while len(_FREE) > 1:
            _FREE.pop().end()


@atexit.register
def end_staying_reader() -> None:
    """End the child that stays, if nobody uses it."""
    while _FREE:
        _FREE.pop().end()


def _leave_to_parent() -> None:
    while _FREE:
        _FREE.pop().leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


class ValueReader:
    """A child process that reads values, started by the first question; any thread may ask it."""

    def __init__(self) -> None:
        self._worker = Worker()
        self._lock = allocate_lock()

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        self.end()

    def end(self) -> None:
        """End the child, if one runs."""
        self._worker.end()

    def leave(self) -> None:
        """Forget the child of the process that this one was forked from."""
        self._worker.leave()

    def close(self) -> None:
        """End the child if nobody is asking; who is, is cancelled, which ends it."""
        if self._lock.acquire(blocking=False):
            self._worker.end()
            self._lock.release()

    def statistics(self, requests: Requests, row: int, progress: Progress) -> Statistics:
        """Return the statistics of a tensor, read from just its bytes."""
        request = requests.of(row)
        nbytes = read_nbytes(request)
        progress.start("reading values", nbytes)
        is_short = nbytes <= _SHORT_NBYTES and request["place"]["file_offset"] is not None
        head = {"what": "stats", **requests.file, "tensor": request}
        found = self.ask(head, progress, is_short=is_short)
        return build_statistics(found, request)

    def ranks(self, requests: Requests, row: int, progress: Progress) -> Ranks:
        """Return how many dimensions a matrix really uses."""
        request = requests.of(row)
        progress.start("computing singular values", read_nbytes(request))
        return Ranks(**self.ask({"what": "rank", **requests.file, "tensor": request}, progress))

    def ask(
        self,
        head: dict[str, Any],
        progress: Progress,
        blocks: Iterable[bytes] = (),
        *,
        is_short: bool = False,
    ) -> Any:  # noqa: ANN401 - as JSON has it
        """Ask one question and return what was found."""
        found: Any = None
        for answer in self.answers(head, progress, blocks, is_short=is_short):
            found = answer.head.get("found", found)
        progress.advance()
        return found

    def answers(
        self,
        head: dict[str, Any],
        progress: Progress,
        blocks: Iterable[bytes] = (),
        *,
        is_short: bool = False,
    ) -> Iterator[Answer]:
        """Ask one question and yield what comes back. Other threads wait meanwhile."""
        script = worker_script("tensor_values")
        while not self._lock.acquire(timeout=_POLL_S):
            progress.advance()
        asked = Progress() if is_short else progress
        try:
            progress.advance()
            for answer in self._worker.request(script, head, blocks, progress=asked, timeout_s=_TIMEOUT_S):
                error = answer.head.get("error")
                if error is not None:
                    raise ValuesError(error["what"], where=error["where"], remedy=error["remedy"])
                progress.done += answer.head.get("done", 0)
                yield answer
        except WorkerError as failure:
            raise ValuesError(_NO_ANSWER, where=failure.what) from failure
        finally:
            self._lock.release()
