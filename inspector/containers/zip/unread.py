"""The pickles in a zip that is refused: all records that are named like one, whatever the archive is.

Both the directory and the local headers are asked where they stand, since a zip that is refused is one in
which the two may contradict each other, or one of them is lost. What the headers say of encryption, sizes and
checksums is not believed: a pickle ends with its STOP.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from inspector.containers.source import BytesSource, Source
from inspector.containers.zip.directory import DEFLATED, LOCAL, LOCAL_SIGNATURE, STORED, read_directory
from inspector.errors import ContainerError, PickleError
from inspector.limits import Limits
from inspector.pickles.machine import Machine
from inspector.progress import Progress

_FIRST_READ_NBYTES = 1 << 16
_WINDOW_NBYTES = 4 << 20
_MOST_WINDOWS = 64
_MOST_RECORDS = 64
_STEP_NBYTES = 1 << 16
# How a record is named that is unpickled: by torch, TorchScript, torch.package, torch.export, or its owner.
_PICKLED = re.compile(r"\.(pkl|pickle|pt|pth|bin|ckpt|storage|npy|joblib)(\0|$)", re.IGNORECASE)
_ARRAY = b"\x93NUMPY"


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
    """Find the records, first those of the directory."""
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
                if is_named or (is_read and _contents(source, found, len(_ARRAY)) == _ARRAY):
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

    def extend(nbytes: int) -> bytes:
        most = min(2 * nbytes + _FIRST_READ_NBYTES, limits.pickle_nbytes)
        return _contents(source, record, most + start)[start:]

    start = 0
    head = extend(0)
    if head.startswith(_ARRAY):  # of an array of objects the pickle stands behind the header
        from inspector.containers.arrays.npy_header import read_header  # noqa: PLC0415 - few zips hold any

        try:
            header = read_header(BytesSource(head, record.name), limits.counted(progress.advance).look)
        except ContainerError as error:
            source.programs.miss(record.name, error.what)
            return
        if not header.type.has_objects:
            return
        start = header.start

    machine = Machine(extend(0), name=record.name, limits=limits, progress=progress, extend=extend)
    try:
        source.programs.run(machine, record.name)
    except PickleError:
        return  # what was read until there is kept


def _contents(source: Source, record: _Record, nbytes: int) -> bytes:
    """Return the first bytes of a record, inflated up to where they are damaged: what is before is run."""
    data = source.read_upto(record.payload, nbytes)
    if record.method == STORED:
        return data
    inflating, found = zlib.decompressobj(-zlib.MAX_WBITS), bytearray()
    at, step = 0, _STEP_NBYTES
    while at < len(data) and len(found) < nbytes:
        before = inflating.copy()
        try:
            found += inflating.decompress(data[at : at + step], nbytes - len(found))
        except zlib.error:
            if step == 1:
                break
            inflating, step = before, 1  # zlib keeps to itself what it inflates before it meets the damage
        else:
            at += step
    return bytes(found)
