"""From a plan to a file: the same checkpoint with other devices, at the cost of copying it.

A device is a few letters in the pickle. Where those do not grow, the copy is the source with its pickle
record overwritten; otherwise the records move, and their contents are still copied by the kernel.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from inspector.containers.base import Container
from inspector.containers.legacy import read_layout
from inspector.containers.sniff import open_source, read_container
from inspector.containers.source import Source
from inspector.containers.torchzip import Records, find_pickle
from inspector.containers.zip_directory import STORED, Entry, payload_offset, read_directory, read_record
from inspector.errors import CheckpointError, ExportError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.progress import Progress
from inspector.remap.copying import clone_file, copy_bytes, write_bytes
from inspector.remap.outfile import OutFile, writing
from inspector.remap.pickle_rewrite import rewrite_pickle
from inspector.remap.plan import Plan
from inspector.remap.verify import compare_with_plan
from inspector.remap.zip_layout import DEFAULT_ALIGNMENT, DESCRIPTOR_SIGNATURE, Record, lay_out

_DESCRIBED = 0x0008
_LOCAL_CRC, _CENTRAL_CRC = 14, 16  # where the CRC stands in the two headers
_PLAIN_NBYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A copy that was written.

    Attributes:
        destination: Where it stands.
        nbytes: Its size.
        moved_tensors: How many tensors have another device now.
        kept_tensors: How many stayed on the CPU by design.
        in_one_piece: Whether no byte outside the pickle changed its place.
        verified: Whether the copy was opened again and compared.
    """

    destination: Path
    nbytes: int
    moved_tensors: int
    kept_tensors: int
    in_one_piece: bool
    verified: bool


def export_copy(
    path: str,
    destination: Path,
    plan: Plan,
    *,
    overwrite: bool = False,
    verify: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
) -> Export:
    """Write a copy of a checkpoint with the devices of a plan.

    The plan must have been made from this very file. The source is only read; the copy appears once it is
    complete, synced and compared.

    Raises:
        CheckpointError: The source cannot be read (any more).
        PlanError: A device is written in a way that cannot be changed.
        ExportError: The copy cannot be written, or is not as planned. Nothing is left behind.
        CancelledError: The work was cancelled. Nothing is left behind.
    """
    progress = progress or Progress()
    refuse_destination(path, destination, overwrite=overwrite)
    container = read_container(path, limits, progress)
    pickle = rewrite_pickle(container.stream, plan, limits=limits, progress=progress)
    with open_source(path, limits) as source:
        status = os.fstat(source.fd)
        with writing(destination, like=status, overwrite=overwrite) as out:
            in_one_piece = _write(container, source, out, pickle, limits, progress)
            _refuse_changed(source, status)
            if verify:
                progress.start("checking the copy")
                _verify(container, out, plan, limits)
            nbytes = os.fstat(out.fd).st_size
            progress.start("waiting for the disk")
    return Export(
        destination=destination,
        nbytes=nbytes,
        moved_tensors=len(plan.tensors),
        kept_tensors=len(plan.kept),
        in_one_piece=in_one_piece,
        verified=verify,
    )


def refuse_destination(path: str, destination: Path, *, overwrite: bool) -> None:
    """Refuse to write over the source, or over anything unless that was asked for.

    Raises:
        ExportError: The destination is the source, exists already, or its folder does not.
    """
    try:
        same = destination.samefile(path)
    except OSError:
        same = False
    if same:
        raise ExportError("the copy would replace the file itself", where=str(destination), remedy="name another file")
    if destination.is_dir():
        raise ExportError("this is a folder", where=str(destination), remedy="name a file in it")
    if not overwrite and os.path.lexists(destination):
        raise ExportError("there is a file already", where=str(destination), remedy="name another, or use --force")
    if not destination.parent.is_dir():
        raise ExportError("there is no such folder", where=str(destination.parent))


def _write(
    container: Container, source: Source, out: OutFile, pickle: bytes, limits: Limits, progress: Progress
) -> bool:
    if container.format == "legacy":
        _write_legacy(source, out, pickle, limits, progress)
        return False
    records = Records(read_directory(source, limits, progress))
    entry = find_pickle(records, source.path)
    if entry.method == STORED and len(pickle) <= entry.nbytes:
        _write_patched(source, out, entry, pickle, progress)
        return True
    _write_laid_out(source, out, records, entry, pickle, progress)
    return False


def _write_patched(source: Source, out: OutFile, entry: Entry, pickle: bytes, progress: Progress) -> None:
    """Copy the whole file, then overwrite its pickle; torch ignores the zeros behind STOP."""
    progress.start("copying", source.nbytes)
    if not clone_file(source.fd, out.fd):
        copy_bytes(source.fd, out.fd, 0, source.nbytes, progress)
    start = payload_offset(source, entry)
    if source.read(start, entry.nbytes).startswith(pickle):
        return  # nothing changes, so neither do the bytes behind STOP
    new = pickle + bytes(entry.nbytes - len(pickle))
    os.pwrite(out.fd, new, start)
    crc = struct.pack("<L", zlib.crc32(new) if entry.crc else 0)
    os.pwrite(out.fd, crc, entry.central_offset + _CENTRAL_CRC)
    if entry.flags & _DESCRIBED:
        descriptor = start + entry.stored_nbytes
        if source.read_upto(descriptor, 4) == DESCRIPTOR_SIGNATURE:
            os.pwrite(out.fd, crc, descriptor + 4)
    else:
        os.pwrite(out.fd, crc, entry.header_offset + _LOCAL_CRC)


def _write_laid_out(
    source: Source, out: OutFile, records: Records, pickle_entry: Entry, pickle: bytes, progress: Progress
) -> None:
    rows = []
    for entry in records.directory.entries:
        if entry is pickle_entry:
            crc = zlib.crc32(pickle) if entry.crc else 0
            rows.append(Record(entry._replace(method=STORED), crc, len(pickle), len(pickle)))
        else:
            rows.append(Record(entry, entry.crc, entry.nbytes, entry.stored_nbytes))
    progress.start("copying", sum(row.stored_nbytes for row in rows))
    for part in lay_out(rows, _alignment(source, records)):
        if isinstance(part, bytes):
            write_bytes(out.fd, part)
        elif records.directory.entries[part.number] is pickle_entry:
            progress.advance(write_bytes(out.fd, pickle))
        else:
            entry = records.directory.entries[part.number]
            copy_bytes(source.fd, out.fd, payload_offset(source, entry), entry.stored_nbytes, progress)


def _alignment(source: Source, records: Records) -> int:
    entry = records.get(".storage_alignment")
    text = read_record(source, entry, 16).strip() if entry is not None and entry.nbytes <= 16 else b""
    return int(text) if text.isdigit() and 0 < int(text) <= _PLAIN_NBYTES else DEFAULT_ALIGNMENT


def _write_legacy(source: Source, out: OutFile, pickle: bytes, limits: Limits, progress: Progress) -> None:
    """Write the pickles before the object's, the new one, and everything behind it as it is."""
    layout = read_layout(source, limits, progress)
    write_bytes(out.fd, source.read(0, layout.object_start))
    write_bytes(out.fd, pickle)
    if source.gzipped:
        _inflate_rest(source, out, layout.object_end, progress)
        return
    rest = source.nbytes - layout.object_end
    progress.start("copying", rest)
    copy_bytes(source.fd, out.fd, layout.object_end, rest, progress)


def _inflate_rest(source: Source, out: OutFile, offset: int, progress: Progress) -> None:
    progress.start("unpacking")
    while data := source.read_upto(offset, _PLAIN_NBYTES):
        progress.advance(write_bytes(out.fd, data))
        offset += len(data)


def _refuse_changed(source: Source, before: os.stat_result) -> None:
    after = os.fstat(source.fd)
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise ExportError("the file changed while it was copied", where=source.path, remedy="try again")


def _verify(container: Container, out: OutFile, plan: Plan, limits: Limits) -> None:
    try:
        copy = open_checkpoint(str(out.path), limits)
    except CheckpointError as error:
        raise ExportError(f"the copy cannot be read: {error}") from error
    differences = compare_with_plan(build_checkpoint(container, limits), copy, plan)
    if differences:
        raise ExportError(f"the copy is not as planned: {differences[0]}")


