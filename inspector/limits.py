"""The bounds that untrusted sizes meet before anything is allocated or looped over.

The figures are set so that every genuine checkpoint passes (a million tensors as `torch.save` writes them
count as 3 million values, and so many pass; written in any other way 350,000 do) while the worst file ends
within 25 seconds and 1.25 GB, its report included. `tests/hostile/crowds.py` holds the
files that they were measured with. Work is counted; time is asked for what no count knows, and leaves a slow
machine room for the largest genuine file.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from inspector.errors import ModelError
from inspector.records import dataclass, replace

_ASK_EACH = 8192
_WIDEST = 6  # characters that JSON takes for one of two bytes, such as \u4e2d


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds for reading one file; exceeding one raises a `CheckpointError` that names it.

    Attributes:
        opcodes: Instructions executed in one pickle stream; those of runs count as a quarter.
        values: Containers, their pairs, calls and memo entries created by one pickle stream.
        text_nbytes: Strings and bytes longer than this stay in the file as (offset, length).
        long_nbytes: Integers longer than this stay in the file as (offset, length).
        seconds: Processor time of this thread for one file: a busy machine is no reason to refuse a file.
        ends_s: When that time is over, by the clock of this thread; see `started`.
        parts: Values, items, sizes and other parts looked at for one file, each as often as it is.
        chars: Characters of names and texts written for one file, as JSON spells them.
        work: What the file has cost so far; see `started`.
        tensors: Tensors that a file lists in a header, so that no pickle makes them; those cost half.
        inflated_nbytes: Bytes that a compressed record or a gzip stream may inflate to.
        depth: Nesting below which values are counted but no longer entered.
        listed: Values listed beside the tensors; more are counted.
    """

    pickle_nbytes: int = 256 << 20
    opcodes: int = 20_000_000
    values: int = 4_000_000
    names: int = 100_000
    marks: int = 1_000_000
    text_nbytes: int = 1 << 20
    long_nbytes: int = 1 << 16
    seconds: float = 20.0
    ends_s: float = math.inf
    parts: int = 40_000_000
    chars: int = 128 << 20
    work: Work | None = None
    records: int = 410_000
    storages: int = 400_000
    tensors: int = 1_050_000
    directory_nbytes: int = 128 << 20
    inflated_nbytes: int = 1 << 30
    depth: int = 256
    rows: int = 800_000
    header_rows: int = 1_200_000
    listed: int = 500_000

    def started(self, ask: Callable[[], object] | None = None) -> Limits:
        """Return the same limits with time and count running; all that is done for one file shares them.

        Args:
            ask: Called now and then; raises where the work was cancelled.
        """
        limits = replace(self, ends_s=self._end())
        return replace(limits, work=self.work or Work(limits, ask or _go_on))

    def counted(self, ask: Callable[[], object] | None = None) -> Work:
        """Return what the file has cost so far: a new count where none runs yet."""
        return self.work or Work(replace(self, ends_s=self._end()), ask or _go_on)

    def _end(self) -> float:
        return min(self.ends_s, time.thread_time() + self.seconds)


class Work:
    """What one file has cost so far, counted where it is done, and where that comes to an end.

    A file of a few kilobytes can refer to one wide thing a million times, or inflate to anything: only what
    is really looked at and written tells what it costs.
    """

    __slots__ = ("_ask", "_limits", "_next", "chars", "parts")

    def __init__(self, limits: Limits, ask: Callable[[], object]) -> None:
        """Begin to count; `ask` is called now and then and raises where the work was cancelled."""
        self._limits = limits
        self._ask = ask
        self._next = 0
        self.parts = 0
        self.chars = 0

    def look(self, parts: int = 1) -> None:
        """Count parts that are about to be looked at."""
        self.parts += parts
        if self.parts >= self._next:
            self.breathe()

    def breathe(self) -> None:
        """Ask whether there is time and room left; errors as those of `look`."""
        self._next = self.parts + _ASK_EACH
        self._ask()
        limits = self._limits
        if self.parts > limits.parts:
            raise ModelError(f"the checkpoint refers to its parts more than {limits.parts:,} times")
        if time.thread_time() > limits.ends_s:
            raise ModelError(f"describing the checkpoint takes longer than {limits.seconds:g} s")

    def write(self, chars: int) -> None:
        """Count characters that are about to be written."""
        self.chars += chars
        if self.chars > self._limits.chars:
            raise ModelError("the names in the checkpoint are too long to be listed")

    def has_room(self, chars: int) -> bool:
        """Return whether so many characters may be written and half of the room would still be left."""
        return self.chars + chars <= self._limits.chars // 2


def written_chars(text: str) -> int:
    """Return how many characters JSON takes for a text at most, quotes and escapes of ASCII apart."""
    return len(text) if text.isascii() else _WIDEST * (len(text.encode("utf-16-le", "surrogatepass")) // 2)


def _go_on() -> None:
    """Ask nobody."""


DEFAULT_LIMITS = Limits()
