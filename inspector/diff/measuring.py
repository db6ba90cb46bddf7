"""By how much pairs of two compared files differ, asked one after the other while the files stay open."""

from __future__ import annotations

from _thread import allocate_lock
from contextlib import ExitStack

from inspector.child import Worker
from inspector.containers.opening import stamp_at
from inspector.diff.compare import measure_arrays, open_both
from inspector.diff.content.numbers import Differences
from inspector.diff.facts.unsaid import marks_of
from inspector.diff.records import ArrayPair, Diff, Numbers, Pair
from inspector.diff.side import Side
from inspector.errors import CancelledError, ContainerError
from inspector.progress import Progress

_POLL_S = 0.05
_AGAIN = "compare the files again"


class ChangedError(ContainerError):
    """A file is another one than when it was compared, so that what was found is no longer true."""


class Measuring:
    """Opens both files for the first pair and keeps them, and the child that computes; any thread may ask."""

    def __init__(self, diff: Diff) -> None:
        """Prepare to measure pairs of a comparison."""
        self._diff = diff
        self._lock = allocate_lock()
        self._stack = ExitStack()
        self._sides: tuple[Side, Side] | None = None
        self._worker = Worker()
        self._is_closed = False

    def measure(self, pair: Pair | ArrayPair, progress: Progress) -> Numbers:
        """Compare the numbers of one pair of tensors, or of arrays among the values."""
        while not self._lock.acquire(timeout=_POLL_S):
            progress.advance()
        try:
            if self._is_closed:
                raise CancelledError
            a, b = self._open(progress)
            with Differences(a, b, worker=self._worker) as differences:
                found = _measured((a, b), pair, differences, progress)
            self._refuse_changed()
            return found
        finally:
            self._lock.release()
            if self._is_closed:
                self.close()

    def close(self) -> None:
        """Close the files and end the child; where somebody asks just now, as soon as that is over."""
        self._is_closed = True
        if self._lock.acquire(blocking=False):
            self._let_go()
            self._lock.release()

    def _open(self, progress: Progress) -> tuple[Side, Side]:
        """Return both files as they were compared."""
        self._refuse_changed()
        if self._sides is None:
            paths = self._diff.a.path, self._diff.b.path
            self._sides = self._stack.enter_context(open_both(*paths, progress))
            self._refuse_changed()  # they are others if they were replaced just before they were opened
        return self._sides

    def _refuse_changed(self) -> None:
        """Raise an error where a path leads to another file than the one that was compared, or to none."""
        for one in (self._diff.a, self._diff.b):
            now = stamp_at(one.path)
            if now != one.stamp:
                self._let_go()
                gone = "a file that was compared is no longer there"
                what = gone if now is None else "a file has changed since it was compared"
                raise ChangedError(what, where=one.path, remedy=_AGAIN)

    def _let_go(self) -> None:
        self._sides = None
        self._stack.close()
        self._worker.end()


def _measured(
    sides: tuple[Side, Side], pair: Pair | ArrayPair, differences: Differences, progress: Progress
) -> Numbers:
    if isinstance(pair, ArrayPair):
        return measure_arrays(sides, pair, differences, progress)
    a, b = sides
    first, second = a.checkpoint.tensors[pair.a], b.checkpoint.tensors[pair.b]
    progress.start("comparing numbers", first.nbytes)
    marks = marks_of(a.tensors[pair.a]), marks_of(b.tensors[pair.b])
    return differences.compare(first, second, progress, marks)
