"""What loading would run of a file that is refused, as far as that can be read.

A file that cannot be opened here may still run code in `torch.load`, or in the program that it was made for:
a payload stands in front of the place where it breaks, or in an archive of another kind. So before a file is
refused, the pickles in it are read for what they do: those of the records of a zip that are named like
pickles, else those that stand one behind the other from the first byte on, which is where every unpickler
begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple

from inspector.containers.legacy import LEGACY_STREAMS, MAGIC
from inspector.containers.nested import read_nested
from inspector.containers.programs import Program, ProgramKind, Programs
from inspector.containers.source import Source
from inspector.containers.tar.sniff import passes_for_tar
from inspector.errors import (
    BrokenOffError,
    CancelledError,
    CheckpointError,
    ContainerError,
    InvalidPickleError,
    PickleError,
)
from inspector.limits import Limits
from inspector.pickles.machine import Machine
from inspector.progress import Progress
from inspector.records import replace

START = "the pickle at its beginning"
_ZIP = b"PK\x03\x04"
_FIRST_READ_NBYTES = 1 << 16
_MOST_STREAMS = 64
_MOST_MEMBERS = 64
_LONG = 1 << 20
_MOST_OPCODES = 2_000_000
_MOST_VALUES = 500_000
_MOST_NBYTES = 32 << 20
_MORE_SECONDS = 2.0


class _Place(NamedTuple):
    """Where pickles stand one behind the other, and what they are."""

    name: str
    start: int
    end: int
    kind: ProgramKind


@contextmanager
def programs_on_errors(source: Source, limits: Limits, progress: Progress) -> Iterator[None]:
    """Put on every error what loading the file would run, as far as it was or can be read."""
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
    # What was read until there is kept, and what every unpickler stops at runs nothing behind it.
    try:
        if _is_zip(source) or passes_for_tar(source) or not source.programs.all():
            read_programs(source, limits, progress)
        read_nested(source.programs, limits, progress)
    except (BrokenOffError, InvalidPickleError):
        pass
    except (PickleError, ContainerError, MemoryError) as error:
        source.programs.miss(
            START, str(getattr(error, "what", "")) or "there is not enough memory to read it"
        )


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
    """Read whatever pickles there are, and keep them as the source's programs."""
    if _is_zip(source):
        from inspector.containers.zip.unread import read_pickled_records  # noqa: PLC0415 - for few files

        read_pickled_records(source, limits, progress)
        return
    if passes_for_tar(source):
        read_members_programs(source, limits, progress)
    read_streams(source, _Place(START, 0, source.nbytes, "part"), limits, progress)


def _is_zip(source: Source) -> bool:
    return source.read_upto(0, len(_ZIP)) == _ZIP


def read_members_programs(
    source: Source, limits: Limits, progress: Progress, kind: ProgramKind = "part"
) -> None:
    """Read the pickles in all members of a tar archive but the one that torch never reads."""
    from inspector.containers.tar.members import INFO, list_members  # noqa: PLC0415 - few files are tar files

    known = {program.name for program in source.programs.all()}
    for info in islice(list_members(source), _MOST_MEMBERS):
        if info.size > 0 and info.name not in known and info.name != INFO:
            place = _Place(info.name, info.offset_data, info.offset_data + info.size, kind)
            with suppress(PickleError):
                read_streams(source, place, limits, progress)


def read_streams(source: Source, place: _Place, limits: Limits, progress: Progress) -> None:
    """Read the pickles that stand one behind the other, up to one that breaks off."""
    start = place.start

    def extend(nbytes: int) -> bytes:
        most = min(2 * nbytes + _FIRST_READ_NBYTES, limits.pickle_nbytes, place.end - start)
        return source.read_upto(start, most)

    left = _MOST_STREAMS
    while left and start < place.end:
        progress.advance(0)
        data = extend(0)
        if not data:
            return
        where = f"{place.name}, byte {start:,}"
        machine = Machine(data, name=where, limits=limits, progress=progress, extend=extend)
        stream = source.programs.run(machine, place.name, place.kind)
        if start == 0 and stream.root == MAGIC and type(stream.root) is int:
            left = LEGACY_STREAMS
        start += stream.end
        left -= 1


# --- files of two formats -----------------------------------------------------------------------------------


# `torch.load` asks for zip, tar and legacy in this order; releases before 1.6 ask for tar first, and all
# of them skip tar for a file object without a descriptor.


def read_as_other_pickle(source: Source, limits: Limits, progress: Progress) -> bool:
    """Read what a file of another format runs as a pickle, and return whether that is anything.

    The length that a safetensors file begins with may be an instruction that hops over the header, and so may
    the magic of GGUF: `pickle.load`, `joblib.load` and `numpy.load` run such a file. Most honest ones begin
    with no instruction, and none imports anything; only a long way without an import is not known.
    """
    return _read_as_pickles(
        source,
        limits,
        progress,
        lambda one: bool(one.stream.globals) or (one.stream.end > _LONG and not one.is_known),
    )


def read_as_tar(source: Source, limits: Limits, progress: Progress) -> bool:
    """Read what a zip runs as a tar archive, and return whether it is one.

    The header of a zip's first record may be that of a tar archive.
    """
    if not passes_for_tar(source):
        return False
    with suppress(ContainerError):
        read_members_programs(source, limits, progress, "rival")
    return True


def read_as_pickles(source: Source, limits: Limits, progress: Progress) -> bool:
    """Read what a tar archive runs as a row of pickles, and return whether it is one.

    The name that a tar archive begins with may spell pickles.
    """
    return _read_as_pickles(
        source,
        limits,
        progress,
        lambda one: bool(one.stream.calls or one.stream.root == MAGIC or one.is_whole),
    )


def _read_as_pickles(
    source: Source, limits: Limits, progress: Progress, does: Callable[[Program], bool]
) -> bool:
    other = Programs()
    own, source.programs = source.programs, other
    with suppress(PickleError, ContainerError):
        read_streams(source, _Place(START, 0, source.nbytes, "rival"), limits, progress)
    source.programs = own
    if not any(map(does, other.all())):
        return False
    own.adopt(other, f"{START}, which pickle.load, joblib.load and numpy.load read", "rival")
    return True
