"""What other programs run of a zip than the pickle that torch reads, and what a zip runs that is refused.

miniz compares names without case and takes whichever of equals its search hits on, Python's zipfile takes the
last one, and a library in C ends a name at a NUL. Where readers find different directories, each of them may
lead to a pickle of its own. Scanners have been fooled with each of these. What is shown is one record; what
any of them would import and call is part of the verdict.

`numpy.load` opens every zip as an archive of arrays (`NpzFile` in NumPy's `numpy/lib/_npyio_impl.py`),
`torch.package` unpickles any resource, and owners of zips with several pickles unpickle them one by one. A
record of torch.save's own is none of these, whatever is in it: nobody asks those readers for one.

Of a zip that is refused both the directory and the local headers are asked where the pickles stand, since the
two may contradict each other, or one of them is lost. What the headers say of encryption, sizes and checksums
is not believed: a pickle ends with its STOP.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from inspector.containers.npy import MAGIC, read_header, read_objects
from inspector.containers.programs import within_bounds
from inspector.containers.source import BytesSource, Source
from inspector.containers.zip.directory import (
    CENTRAL,
    CENTRAL_SIGNATURE,
    DEFLATED,
    LOCAL,
    LOCAL_SIGNATURE,
    STORED,
    ZipEntry,
    directories_elsewhere,
    read_directory,
)
from inspector.containers.zip.records import inflate_begun, open_record
from inspector.errors import (
    BrokenOffError,
    CancelledError,
    CheckpointError,
    ContainerError,
    InvalidPickleError,
    PickleError,
)
from inspector.limits import Limits
from inspector.pickles.machine import growing_machine
from inspector.pickles.oddities import Oddity, OddityKind
from inspector.progress import Progress

# --- records that pass for the pickle -----------------------------------------------------------------------


_MOST_READ = 8
_MOST_LISTED = 10_000
_MOST_NBYTES = 1 << 22
_PICKLE = "/data.pkl"


def read_rivals(
    pickle: ZipEntry, others: Iterable[ZipEntry], read: Callable[[ZipEntry], object]
) -> tuple[Oddity, ...]:
    """Read the records that pass for the pickle, itself maybe among them; return what is odd about that.

    `read` keeps what it reads among the programs of the file.
    """
    rivals = [entry for entry in others if entry[:7] != pickle[:7]]
    if not rivals:
        return ()
    oddities = [Oddity(OddityKind.RIVAL_RECORD, 0)]
    for entry in rivals[:_MOST_READ]:
        try:
            read(entry)
        except CancelledError:
            raise
        except CheckpointError as error:
            oddities.append(Oddity(OddityKind.UNREAD_RIVAL, 0, (str(error),)))
    if len(rivals) > _MOST_READ:
        counts = str(_MOST_READ), f"{len(rivals):,}"
        oddities.append(Oddity(OddityKind.UNREAD_RIVALS, 0, counts))
    return tuple(oddities)


def namesakes(pickle: ZipEntry, entries: Iterable[ZipEntry]) -> Iterator[ZipEntry]:
    """Yield the records of one directory that pass for the pickle, itself among them."""
    wanted = pickle.name.lower()
    return (entry for entry in entries if entry.name.partition("\0")[0].lower() == wanted)


def pickles_elsewhere(source: Source) -> Iterator[ZipEntry]:
    """Yield the records that pass for the pickle in the directories that other readers find."""
    met: set[ZipEntry] = set()
    for start, nbytes, moved in directories_elsewhere(source):
        for entry in _entries_at(source.read_upto(start, min(nbytes, _MOST_NBYTES)), start, moved):
            is_pickle = ("/" + entry.name.partition("\0")[0].lower()).endswith(_PICKLE)
            if is_pickle and entry not in met:
                met.add(entry)
                yield entry


def _entries_at(data: bytes, start: int, moved: int) -> Iterator[ZipEntry]:
    """Yield the first records of a directory, whatever miniz would say to them."""
    pos = 0
    for _ in range(_MOST_LISTED):
        if len(data) < pos + CENTRAL.size or not data.startswith(CENTRAL_SIGNATURE, pos):
            return
        fields = CENTRAL.unpack_from(data, pos)
        flags, method, crc, packed, nbytes, name_n, extra_n, comment_n = (*fields[3:5], *fields[7:13])
        name = data[pos + CENTRAL.size : pos + CENTRAL.size + name_n].decode("utf-8", "surrogateescape")
        yield ZipEntry(name, fields[-1] + moved, nbytes, packed, method, crc, flags, start + pos)
        pos += CENTRAL.size + name_n + extra_n + comment_n


# --- records that other programs read -----------------------------------------------------------------------


_FIRST_READ_NBYTES = 1 << 16
_MOST_OTHERS = 64


def read_for_others(source: Source, entries: Iterable[ZipEntry], limits: Limits, progress: Progress) -> None:
    """Read what other readers run of these records, and keep it as rivals among the source's programs."""
    limits, left = within_bounds(limits), _MOST_OTHERS
    for entry in entries:
        progress.advance(0)
        if not left:
            source.programs.miss("further records for other readers", f"{_MOST_OTHERS} are read")
            return
        left -= 1
        try:
            _read(source, entry, limits, progress)
        except (BrokenOffError, InvalidPickleError):
            continue  # every unpickler stops there
        except (ContainerError, PickleError) as error:
            source.programs.miss(entry.name, error.what)


def _read(source: Source, entry: ZipEntry, limits: Limits, progress: Progress) -> None:
    inside = open_record(source, entry, limits)
    if inside.read_upto(0, len(MAGIC)) == MAGIC:
        header = read_header(inside, limits.counted(progress.advance).look)
        if header.type.has_objects:
            name = f"{entry.name}, which numpy.load reads"
            try:
                read_objects(inside, header.start, name, limits, progress)
            finally:
                source.programs.adopt(inside.programs, name, "rival")
        return
    machine = growing_machine(
        lambda nbytes: inside.read_upto(0, nbytes), name=entry.name, limits=limits, progress=progress
    )
    source.programs.run(machine, f"{entry.name}, which torch.package or pickle.load reads", "rival")


# --- records of a zip that is refused -----------------------------------------------------------------------


_WINDOW_NBYTES = 4 << 20
_MOST_WINDOWS = 64
_MOST_RECORDS = 64
# How a record is named that is unpickled: by torch, TorchScript, torch.package, torch.export, or its owner.
_PICKLED = re.compile(r"\.(pkl|pickle|pt|pth|bin|ckpt|storage|npy|joblib)(\0|$)", re.IGNORECASE)


class _Record(NamedTuple):
    name: str
    payload: int
    method: int


def read_pickled_records(source: Source, limits: Limits, progress: Progress) -> None:
    """Read every record that is named like a pickle, and keep what was read among the source's programs."""
    seen: set[int] = set()
    for record in _records(source, limits, progress):
        if record.payload in seen:
            continue
        seen.add(record.payload)
        if len(seen) > _MOST_RECORDS:
            source.programs.miss(
                "its other records", f"only {_MOST_RECORDS} are read of a file that is refused"
            )
            return
        _read_record(source, record, limits, progress)


def _records(source: Source, limits: Limits, progress: Progress) -> Iterator[_Record]:
    if not source.gzipped:
        try:
            entries = read_directory(source, limits, progress).entries
        except ContainerError:
            entries = ()
        for number, entry in enumerate(entries):
            is_named = _PICKLED.search(entry.name) is not None
            if not is_named and number >= _MOST_RECORDS:
                continue
            local = _record_at(source, entry.header_offset)
            if local is not None:
                # torch goes by the directory's method; where it refuses that, others may go by this one.
                is_read = entry.method in {STORED, DEFLATED}
                found = local._replace(name=entry.name, method=entry.method if is_read else local.method)
                # numpy.load takes any record for an array that begins like one.
                if is_named or (is_read and _contents(source, found, len(MAGIC)) == MAGIC):
                    yield found
    yield from _searched(source, progress)


def _searched(source: Source, progress: Progress) -> Iterator[_Record]:
    """Search for local headers from the beginning; a compressed file is not gone through again and again."""
    for number in range(1 if source.gzipped else _MOST_WINDOWS):
        progress.advance(0)
        start = number * _WINDOW_NBYTES
        # A signature may stand on the border of two windows.
        window = source.read_upto(start, _WINDOW_NBYTES + len(LOCAL_SIGNATURE) - 1)
        if not window:
            return
        for match in re.finditer(LOCAL_SIGNATURE, window):
            record = _record_at(source, start + match.start())
            if record is not None and _PICKLED.search(record.name):
                yield record


def _record_at(source: Source, offset: int) -> _Record | None:
    head = source.read_upto(offset, LOCAL.size)
    try:
        signature, _, _, method, *_, name_nbytes, extra_nbytes = LOCAL.unpack(head)
    except struct.error:
        return None
    if signature != LOCAL_SIGNATURE:
        return None
    behind = offset + LOCAL.size
    name = source.read_upto(behind, name_nbytes).decode("utf-8", "surrogateescape")
    return _Record(name, behind + name_nbytes + extra_nbytes, method)


def _read_record(source: Source, record: _Record, limits: Limits, progress: Progress) -> None:
    """Read the pickle in a record; what is none, or breaks off, is left at that."""
    if record.method not in {STORED, DEFLATED}:
        source.programs.miss(record.name, f"it is compressed by method {record.method}, which is not read")
        return
    start = 0
    head = _contents(source, record, min(_FIRST_READ_NBYTES, limits.pickle_nbytes))
    if head.startswith(MAGIC):  # of an array of objects the pickle stands behind the header
        try:
            header = read_header(BytesSource(head, record.name), limits.counted(progress.advance).look)
        except ContainerError as error:
            source.programs.miss(record.name, error.what)
            return
        if not header.type.has_objects:
            return
        start = header.start
    machine = growing_machine(
        lambda nbytes: _contents(source, record, nbytes + start)[start:],
        name=record.name,
        limits=limits,
        progress=progress,
    )
    with suppress(PickleError):  # what was read until there is kept
        source.programs.run(machine, record.name)


def _contents(source: Source, record: _Record, nbytes: int) -> bytes:
    """Return the first bytes of a record, inflated up to where they are damaged: what is before is run."""
    data = source.read_upto(record.payload, nbytes)
    return data if record.method == STORED else inflate_begun(data, nbytes)
