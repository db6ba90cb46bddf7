"""What loading would run of a file that is refused, and of bytes within pickles, as far as that can be read.

A file that cannot be opened here may still run code in `torch.load`, or in the program that it was made for:
a payload stands in front of the place where it breaks, or in an archive of another kind. So before a file is
refused, the pickles in it are read for what they do: those of the records of a zip that are named like
pickles, else those that stand one behind the other from the first byte on, which is where every unpickler
begins. `pickle.dump` writes the bytes of a tensor as a whole file of torch, which
`torch.storage._load_from_bytes` opens again while loading, with `weights_only=False`: what such bytes would
run is run with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple

from inspector.containers.legacy import LEGACY_STREAMS, MAGIC
from inspector.containers.programs import Program, ProgramKind, Programs, within_bounds
from inspector.containers.source import BytesSource, Source
from inspector.errors import (
    BrokenOffError,
    CancelledError,
    CheckpointError,
    ContainerError,
    InvalidPickleError,
    PickleError,
)
from inspector.limits import Limits
from inspector.pickles.machine import Stream, growing_machine
from inspector.pickles.values import Blob, Call, Global, Value
from inspector.progress import Progress

START = "the pickle at its beginning"
_ZIP = b"PK\x03\x04"
_MOST_STREAMS = 64
_MOST_MEMBERS = 64
_LONG = 1 << 20


class _Place(NamedTuple):
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


def read_programs(source: Source, limits: Limits, progress: Progress) -> None:
    """Read whatever pickles there are, and keep them as the source's programs."""
    if _is_zip(source):
        from inspector.containers.zip.rivals import read_pickled_records  # noqa: PLC0415 - for few files

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
    from inspector.containers.tar_archive import INFO, list_members  # noqa: PLC0415 - few files are tar files

    known = {program.name for program in source.programs.all()}
    for info in islice(list_members(source), _MOST_MEMBERS):
        if info.size > 0 and info.name not in known and info.name != INFO:
            place = _Place(info.name, info.offset_data, info.offset_data + info.size, kind)
            with suppress(PickleError):
                read_streams(source, place, limits, progress)


def read_streams(source: Source, place: _Place, limits: Limits, progress: Progress) -> None:
    """Read the pickles that stand one behind the other, up to one that breaks off."""
    start = place.start
    left = _MOST_STREAMS
    while left and start < place.end:
        progress.advance(0)
        if not source.reaches(start + 1):
            return
        stream = _read_one(source, place, start, limits, progress)
        if start == 0 and stream.root == MAGIC and type(stream.root) is int:
            left = LEGACY_STREAMS
        start += stream.end
        left -= 1


def _read_one(source: Source, place: _Place, start: int, limits: Limits, progress: Progress) -> Stream:
    machine = growing_machine(
        lambda nbytes: source.read_upto(start, min(nbytes, place.end - start)),
        name=f"{place.name}, byte {start:,}",
        limits=limits,
        progress=progress,
    )
    return source.programs.run(machine, place.name, place.kind)


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


# --- pickles within pickles ---------------------------------------------------------------------------------


OPENER = "torch.storage._load_from_bytes"
OPENERS = frozenset(
    {
        OPENER,
        "pickle.loads",
        "_pickle.loads",
        "cPickle.loads",
        "dill.loads",
        "dill._dill.loads",
        "cloudpickle.loads",
        "cloudpickle.cloudpickle.loads",
        "io.BytesIO",
        "_io.BytesIO",
    }
)
_ENCODE = "_codecs.encode"  # how protocols 0 to 2 write bytes
_MOST_FOUND = 1024
_MOST_DEPTH = 3


def read_nested(programs: Programs, limits: Limits, progress: Progress, depth: int = 0) -> None:
    """Read what the programs unpickle in turn, and add it to them."""
    found = 0
    opened = set(map(id, programs.opened))
    for name, stream in programs.streams():
        for data in _handed_bytes(stream, opened):
            progress.advance(0)
            found += 1
            if found > _MOST_FOUND or depth >= _MOST_DEPTH:
                programs.note_unread(name)
                return
            if data is None:
                programs.note_unread(name)
                continue
            source: Source = BytesSource(data, name)
            try:
                read_programs(source, limits, progress)
            except (BrokenOffError, InvalidPickleError):
                pass  # every unpickler stops there
            except (PickleError, ContainerError):
                programs.note_unread(name)
            read_nested(source.programs, limits, progress, depth + 1)
            programs.adopt(source.programs, f"{name} > bytes")


def _handed_bytes(stream: Stream, opened: AbstractSet[int]) -> Iterator[bytes | None]:
    """Yield the bytes that a stream hands to what unpickles them; None for those that are not at hand."""
    for call in stream.calls:
        if id(call) not in opened and isinstance(call.func, Global) and call.func.dotted in OPENERS:
            for value in call.arguments:
                if _is_elsewhere(value, stream):
                    yield None
                elif (data := _as_bytes(value, stream)) is not None:
                    yield data


def _is_elsewhere(value: Value, stream: Stream) -> bool:
    """Return whether bytes are so large that they stayed in the file, of which the stream is a part."""
    if isinstance(value, Call) and value.arguments:
        value = value.arguments[0]
    return isinstance(value, Blob) and value.offset + value.nbytes > len(stream.data)


def _as_bytes(value: Value, stream: Stream) -> bytes | None:
    """Return the bytes that a value stands for; None where it is something else."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, Blob):
        return stream.data[value.offset : value.offset + value.nbytes] if value.kind != "int" else None
    if isinstance(value, Call) and isinstance(value.func, Global) and value.func.dotted == _ENCODE:
        text = value.arguments[0] if value.arguments else None
        if isinstance(text, Blob):
            text = stream.data[text.offset : text.offset + text.nbytes].decode("utf-8", "replace")
        return text.encode("latin-1", "replace") if isinstance(text, str) else None
    return None


# --- tar archives -------------------------------------------------------------------------------------------


_HEADER_NBYTES = 512
_CHECKSUM = slice(148, 156)
# What Python's `int(text, 8)` takes, with blanks around; or a number in base 256.
_OCTAL = frozenset(b"01234567_oO+") | frozenset(range(0x21))
_BINARY = 0x80


def passes_for_tar(source: Source) -> bool:
    """Return whether a file opens as a tar archive."""
    head = source.read_upto(0, _HEADER_NBYTES)
    field = head[_CHECKSUM]
    if len(head) < _HEADER_NBYTES or not (field[0] & _BINARY or _OCTAL.issuperset(field)):
        return False
    from inspector.containers.tar_archive import is_tar  # noqa: PLC0415 - few files pass for one

    return is_tar(source)
