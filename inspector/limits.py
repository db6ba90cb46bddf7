"""The bounds that untrusted sizes meet before anything is allocated or looped over.

The figures are set so that every genuine checkpoint passes with room to spare (350,000 tensors take 10.5
million opcodes and 3.7 million values) while the worst file ends within 10 seconds and 1 GB, its report
included. `tests/hostile/crowds.py` holds the files that they were measured with.
"""

from __future__ import annotations

import math
import time

from inspector.records import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds for reading one file; exceeding one raises a `CheckpointError` that names it.

    Attributes:
        pickle_nbytes: Longest pickle stream kept in memory.
        opcodes: Instructions executed in one pickle stream.
        values: Containers, their pairs, calls and memo entries created by one pickle stream.
        names: Different names that one pickle stream imports.
        marks: Depth of the mark stack.
        text_nbytes: Strings and bytes longer than this stay in the file as (offset, length).
        long_nbytes: Integers longer than this stay in the file as (offset, length).
        seconds: Processor time of this thread for one file: a busy machine is no reason to refuse a file.
        ends_s: When that time is over, by the clock of this thread; see `started`.
        records: Entries of a zip directory.
        storages: Storages of one file.
        directory_nbytes: Size of a zip's central directory.
        inflated_nbytes: Bytes that a compressed record or a gzip stream may inflate to.
        depth: Nesting below which values are counted but no longer entered.
        rows: Tensors listed and containers entered.
        listed: Values listed beside the tensors; more are counted.
    """

    pickle_nbytes: int = 256 << 20
    opcodes: int = 20_000_000
    values: int = 4_000_000
    names: int = 100_000
    marks: int = 1_000_000
    text_nbytes: int = 1 << 20
    long_nbytes: int = 1 << 16
    seconds: float = 8.0
    ends_s: float = math.inf
    records: int = 1_000_000
    storages: int = 400_000
    directory_nbytes: int = 256 << 20
    inflated_nbytes: int = 1 << 30
    depth: int = 256
    rows: int = 800_000
    listed: int = 500_000

    def started(self) -> Limits:
        """Give the same limits with the time running: everything that is done for one file shares it."""
        return replace(self, ends_s=min(self.ends_s, time.thread_time() + self.seconds))


DEFAULT_LIMITS = Limits()
