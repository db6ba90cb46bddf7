"""What loading would run of a file that is refused, as far as that can be read.

A file that cannot be opened here may still run code in `torch.load`, or in the program that it was made for:
a payload stands in front of the place where it breaks, or in an archive of another kind. So before a file is
refused, the pickles in it are read for what they do: those of the records of a zip that are named like
pickles, else those that stand one behind the other from the first byte on, which is where every unpickler
begins.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from inspector.containers.legacy import LEGACY_STREAMS, MAGIC
from inspector.containers.nested import read_nested
from inspector.containers.source import Source
from inspector.containers.unread_zip import read_pickled_records
from inspector.errors import CancelledError, CheckpointError, ContainerError, PickleError
from inspector.limits import Limits
from inspector.pickles.machine import Machine
from inspector.progress import Progress
from inspector.records import replace

START = "the pickle at its beginning"
_ZIP = b"PK\x03\x04"
_FIRST_READ_NBYTES = 1 << 16
_MOST_STREAMS = 64
_MOST_OPCODES = 2_000_000
_MOST_VALUES = 500_000
_MOST_NBYTES = 32 << 20
_MORE_SECONDS = 2.0


@contextmanager
def programs_on_errors(source: Source, limits: Limits, progress: Progress) -> Iterator[None]:
    """Put on every error what loading the file would run, as far as it was or can be read.

    Raises:
        CheckpointError: Whatever the block raises.
    """
    try:
        yield
    except CancelledError:
        raise
    except CheckpointError as error:
        _read_on(source, limits, progress)
        error.programs = source.programs.all()
        raise
    except MemoryError:
        failure = ContainerError("there is not enough memory to read this file", where=source.path)
        failure.programs = source.programs.all()
        raise failure from None


def _read_on(source: Source, limits: Limits, progress: Progress) -> None:
    """Read the pickles that were not reached, and those within pickles."""
    limits = within_bounds(limits)
    if _is_zip(source) or not source.programs.all():
        # What is broken was broken before; what was read until there is kept.
        with suppress(PickleError, ContainerError):
            read_programs(source, limits, progress)
    read_nested(source.programs, limits, progress)


def within_bounds(limits: Limits) -> Limits:
    """Return what may be spent on programs that are read for the verdict alone."""
    return replace(
        limits,
        opcodes=min(limits.opcodes, _MOST_OPCODES),
        values=min(limits.values, _MOST_VALUES),
        pickle_nbytes=min(limits.pickle_nbytes, _MOST_NBYTES),
        ends_s=time.thread_time() + _MORE_SECONDS,
    )


def read_programs(source: Source, limits: Limits, progress: Progress) -> None:
    """Read whatever pickles there are, and keep them as the source's programs.

    Raises:
        CheckpointError: The file cannot be read, or one of them breaks off; what was read is kept.
        CancelledError: The work was cancelled.
    """
    if _is_zip(source):
        read_pickled_records(source, limits, progress)
    else:
        _read_streams(source, limits, progress)


def _is_zip(source: Source) -> bool:
    return source.read_upto(0, len(_ZIP)) == _ZIP


def _read_streams(source: Source, limits: Limits, progress: Progress) -> None:
    """Read the pickles that stand one behind the other from the first byte on, up to one that breaks off.

    Raises:
        CheckpointError: The file cannot be read, or one of them breaks off; what was read is kept.
        CancelledError: The work was cancelled.
    """
    start = 0

    def extend(nbytes: int) -> bytes:
        return source.read_upto(start, min(2 * nbytes + _FIRST_READ_NBYTES, limits.pickle_nbytes))

    left = _MOST_STREAMS
    while left:
        progress.advance(0)
        data = extend(0)
        if not data:
            return
        where = f"{START}, byte {start:,}"
        machine = Machine(data, name=where, limits=limits, progress=progress, extend=extend)
        stream = source.programs.run(machine, START)
        if start == 0 and stream.root == MAGIC and type(stream.root) is int:
            left = LEGACY_STREAMS
        start += stream.end
        left -= 1
