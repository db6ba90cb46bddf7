"""The bounds that untrusted sizes meet before anything is allocated or looped over.

The figures are set so that every genuine checkpoint passes with room to spare (100,000 tensors take 3.3
million opcodes and 12 MB of pickle) while the worst file ends within 10 seconds and 1 GB.
"""

from __future__ import annotations

from inspector.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds for reading one file; exceeding one raises a `CheckpointError` that names it.

    Attributes:
        pickle_nbytes: Longest pickle stream kept in memory.
        opcodes: Instructions executed in one pickle stream.
        values: Containers, calls and memo entries created by one pickle stream.
        marks: Depth of the mark stack.
        text_nbytes: Strings and bytes longer than this stay in the file as (offset, length).
        long_nbytes: Integers longer than this stay in the file as (offset, length).
        seconds: Wall clock time for one pickle stream.
        records: Entries of a zip directory, storages of a legacy stream.
        directory_nbytes: Size of a zip's central directory.
        inflated_nbytes: Bytes that a compressed record or a gzip stream may inflate to.
        depth: Nesting below which values are counted but no longer entered.
        rows: Tensors and values listed.
    """

    pickle_nbytes: int = 256 << 20
    opcodes: int = 20_000_000
    values: int = 4_000_000
    marks: int = 1_000_000
    text_nbytes: int = 1 << 20
    long_nbytes: int = 1 << 16
    seconds: float = 10.0
    records: int = 1_000_000
    directory_nbytes: int = 256 << 20
    inflated_nbytes: int = 1 << 30
    depth: int = 256
    rows: int = 2_000_000


DEFAULT_LIMITS = Limits()
