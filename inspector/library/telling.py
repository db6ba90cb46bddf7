"""`progress=`: how far long work is, told to a function of the caller, which ends the work by raising."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic as _now
from typing import TypeAlias

from inspector.errors import CancelledError, CheckpointError
from inspector.overriding import override
from inspector.progress import Progress
from inspector.records import dataclass

_EVERY_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far long work is.

    Attributes:
        stage: What is done at the moment, in a few words: `copying`.
        done: How much of it is done; 0 while the total is unknown.
        total: How much there is to do in this stage; 0 while that is unknown.
        unit: What `done` and `total` count: `bytes`, or `items` (files, storages).
    """

    stage: str
    done: int
    total: int
    unit: str

    @property
    def fraction(self) -> float | None:
        """The part that is done, from 0 to 1; None while the total is unknown."""
        return min(self.done / self.total, 1.0) if self.total else None


Told: TypeAlias = "Callable[[Step], object] | None"
"""The argument `progress`: called with each `Step`, in the thread that called the library."""


class Telling(Progress):
    """Tells a function how far the work is: at the start and end of each stage, and ten times a second.

    Attributes:
        failure: What the function raised; the work ends as if it were cancelled.
    """

    __slots__ = ("_due", "_has_ended", "_is_one", "_tell", "failure")

    def __init__(self, tell: Callable[[Step], object]) -> None:
        super().__init__()
        self._tell = tell
        self._due = 0.0
        self._has_ended = False
        self._is_one = False
        self.failure: BaseException | None = None

    @override
    def start(self, label: str, total: int = 0, *, is_counted: bool = False) -> None:
        """Begin a stage, and tell of it.

        Raises:
            CancelledError: The function raised.
        """
        if not self._is_one:
            self._due, self._has_ended = 0.0, False
            super().start(label, total, is_counted=is_counted)
        else:
            self.advance()

    def start_all(self, label: str, total: int) -> None:
        """Begin the last stage: what is begun within it is a part of it, and counts on."""
        self.start(label, total)
        self._is_one = True

    @override
    def advance(self, units: int = 0) -> None:
        """Add finished units, and tell of them now and then.

        Raises:
            CancelledError: The function raised.
        """
        super().advance(units)
        now, ends = _now(), 0 < self.total <= self.done
        if now >= self._due or (ends and not self._has_ended):
            self._due, self._has_ended = now + _EVERY_S, ends
            self._say()

    def _say(self) -> None:
        unit = "items" if self.is_counted else "bytes"
        done = self.done if self.total else 0  # without a total, each stage counts as it likes
        step = Step(stage=self.label, done=done, total=self.total, unit=unit)
        before = sys.exc_info()[1]
        try:
            self._tell(step)
        except BaseException as error:  # noqa: BLE001 - kept whole, and raised again by `told`
            # What is between here and the caller would take an OSError for its own.
            self.failure = error
            if error.__context__ is before:  # what is handled here is no cause of it
                error.__context__ = None
            self.cancel()
            raise CancelledError from None


def _ask_nobody(_step: Step) -> None:
    """Take a step that nobody wants to know of."""


@contextmanager
def told(tell: Told) -> Iterator[Telling]:
    """Yield the progress of work that tells this function, and raise what the function raised."""
    telling = Telling(tell or _ask_nobody)
    try:
        yield telling
    except CheckpointError:
        if telling.failure is None:
            raise
    if telling.failure is not None:
        context = telling.failure.__context__
        try:
            raise telling.failure
        finally:  # not that the work was cancelled: that is nothing the caller did
            telling.failure.__context__ = context
