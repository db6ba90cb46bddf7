"""How long work reports back and is stopped: `work(progress) -> result`.

Work calls `advance` now and then. A display polls the fields from another thread, and `cancel` makes the
next `advance` raise, so that every stop leaves by the same door as every other failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from inspector.errors import CancelledError

T = TypeVar("T")
_AT_ONCE = 4096
"""So many rows take a few milliseconds, whatever is done with each."""


class Progress:
    """The shared state of one piece of work: written by one thread, read by any other.

    Attributes:
        done: Units finished (bytes when copying).
        total: Units altogether; 0 while unknown.
        is_counted: Whether the units are things that are counted, and no bytes.
    """

    __slots__ = ("_cancelled", "done", "is_counted", "label", "total")

    def __init__(self, label: str = "") -> None:
        self.label = label
        self.done = 0
        self.total = 0
        self.is_counted = False
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for the work to stop."""
        return self._cancelled

    @property
    def fraction(self) -> float | None:
        """The finished part from 0 to 1, or None while the total is unknown."""
        return min(self.done / self.total, 1.0) if self.total > 0 else None

    def start(self, label: str, total: int = 0, *, is_counted: bool = False) -> None:
        """Begin a stage of the work that has `total` units: bytes, or things that are counted."""
        self.label, self.done, self.total, self.is_counted = label, 0, total, is_counted
        self.advance(0)

    def advance(self, units: int = 0) -> None:
        """Add finished units; the place where a cancelled piece of work ends."""
        if self._cancelled:
            raise CancelledError
        self.done += units

    def over(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield rows, and count them."""
        each = iter(rows)
        while some := list(islice(each, _AT_ONCE)):
            self.advance(len(some))
            yield from some

    def cancel(self) -> None:
        """Ask the work to stop at its next `advance`. Safe from any thread, and more than once."""
        self._cancelled = True
