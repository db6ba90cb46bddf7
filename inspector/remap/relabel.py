"""Which bytes of a file have to change for its pickle to say something else, and at what places.

A zip takes a pickle that is no longer than the old one at its place, with zeros behind: torch stops reading
at STOP. A longer one is appended as a record of its own, with a directory behind it that names it instead of
the old one; nothing that was there moves, so storages lie where every reader expects them. In a legacy file
the storages follow the pickle at once, so it must keep its length to the byte.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from inspector.containers.container import Container, PickleRecord, first_storage_ids
from inspector.containers.copying import write_bytes, write_over
from inspector.containers.formats import format_of, refuse_step
from inspector.containers.legacy import read_layout
from inspector.containers.rebuilds import EXPECTED
from inspector.containers.source import Source
from inspector.containers.zip.directory import (
    CENTRAL,
    DESCRIBED,
    DESCRIPTOR_SIGNATURE,
    END,
    END_SIGNATURE,
    STORED,
    ZipEntry,
    payload_offset,
)
from inspector.containers.zip.records import Records, read_zip_record, records_of
from inspector.containers.zip.storages import find_pickle
from inspector.diff.same_bytes import Span
from inspector.errors import ExportError, PlanError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.machine import read_pickle
from inspector.progress import Progress
from inspector.records import dataclass, field, replace
from inspector.remap.plan import Plan, with_viewed
from inspector.remap.rewrite import Edit, fit_pickle, rewrite_pickle, unfit_pickle
from inspector.remap.zip_layout import DEFAULT_ALIGNMENT, Record, lay_out_behind, plain_record, write_zip

_LOCAL_CRC, _CENTRAL_CRC = 14, 16  # where the CRC stands in the two headers
_CENTRAL_LENGTHS = struct.Struct("<28x3H")  # of name, extra field and comment
_MOST_ALIGNMENT = 1 << 20
COPY = "write a copy instead, with -o"


class Patch(NamedTuple):
    """Bytes that stand at a place of the file, over what was there or behind its end."""

    offset: int
    data: bytes


def fits(entry: ZipEntry, pickle: bytes) -> bool:
    """Return whether a pickle can stand where the old one does."""
    return entry.method == STORED and len(pickle) <= entry.nbytes


def zip_pieces(source: Source, entry: ZipEntry, pickle: bytes) -> tuple[Patch, ...]:
    """Return what changes where a pickle that fits takes the old one's place: it, and its checksums."""
    start = payload_offset(source, entry)
    new = pickle + bytes(entry.nbytes - len(pickle))
    crc = struct.pack("<L", zlib.crc32(new) if entry.crc else 0)
    pieces = [Patch(start, new), Patch(entry.central_offset + _CENTRAL_CRC, crc)]
    descriptor = start + entry.stored_nbytes
    if not entry.flags & DESCRIBED:
        pieces.append(Patch(entry.header_offset + _LOCAL_CRC, crc))
    elif source.read_upto(descriptor, 4) == DESCRIPTOR_SIGNATURE:
        pieces.append(Patch(descriptor + 4, crc))
    return tuple(pieces)


def appended_piece(source: Source, records: Records, entry: ZipEntry, pickle: bytes) -> Patch:
    """Return what is appended where a pickle is too long for its place."""
    directory = records.directory
    end = source.read_upto(directory.end - END.size, END.size)
    if directory.end != source.nbytes or not end.startswith(END_SIGNATURE):
        raise ExportError("there are bytes after the end of the zip", where=source.path, remedy=COPY)
    record = plain_record(entry.name, pickle, has_crc=bool(entry.crc))
    made = lay_out_behind(
        source.nbytes,
        record,
        pickle,
        _central_around(source, records, entry),
        count=len(directory.entries),
        alignment=storage_alignment(source, records),
    )
    return Patch(source.nbytes, made)


def refuse_doubles(source: Source, records: Records, entry: ZipEntry) -> None:
    """Refuse an archive in which torch, to which case is nothing, may read another pickle than we do."""
    name = entry.name.lower()
    if sum(other.name.lower() == name for other in records.directory.entries) > 1:
        raise ExportError(f"several records are named {entry.name}", where=source.path)


def storage_alignment(source: Source, records: Records) -> int:
    """Return the bytes that contents are aligned to in an archive."""
    entry = records.get(".storage_alignment")
    if entry is None or entry.nbytes > 16:
        return DEFAULT_ALIGNMENT
    text = read_zip_record(source, entry, 16).strip()
    return int(text) if text.isdigit() and 0 < int(text) <= _MOST_ALIGNMENT else DEFAULT_ALIGNMENT


def _central_around(source: Source, records: Records, entry: ZipEntry) -> tuple[bytes, bytes]:
    directory = records.directory
    own_end = _central_end(source, entry)
    last_end = _central_end(source, directory.entries[-1])
    start = directory.start
    return source.read(start, entry.central_offset - start), source.read(own_end, last_end - own_end)


def _central_end(source: Source, entry: ZipEntry) -> int:
    header = source.read(entry.central_offset, CENTRAL.size)
    name, extra, comment = _CENTRAL_LENGTHS.unpack_from(header)
    return entry.central_offset + CENTRAL.size + int(name) + int(extra) + int(comment)


# --- how the bytes of a copy come about, for each container: patched, laid out again, or streamed -----------

_STEP_NBYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyWriter:
    """Writes one copy.

    Attributes:
        copied: Which bytes were copied as they are, filled while that is done.
    """

    source: Source
    target: int
    pickle: bytes
    limits: Limits
    progress: Progress
    clone: Callable[[], bool] | None = None
    copied: list[Span] = field(default_factory=list)

    def write_legacy(self) -> bool:
        """Write a legacy file; return whether every byte outside the pickle kept its place."""
        layout = read_layout(self.source, self.limits, self.progress)
        fitted = fit_pickle(self.pickle, layout.object_end - layout.object_start)
        if fitted is not None and not self.source.gzipped:
            self._write_over([Patch(layout.object_start, fitted)])
            return True
        pickle = unfit_pickle(self.pickle)
        write_bytes(self.target, self.source.read(0, layout.object_start))
        write_bytes(self.target, pickle)
        if self.source.gzipped:
            self._inflate_from(layout.object_end)
            return False
        rest = self.source.nbytes - layout.object_end
        self.progress.start("copying", rest)
        start = layout.object_start + len(pickle)
        self.copied.append(Span(layout.object_end, start, rest))
        self.source.copy_to(self.target, layout.object_end, rest, self.progress)
        return False

    def write_edited(self, edits: Sequence[Edit]) -> bool:
        """Write a file with some bytes replaced; return whether every other byte kept its place."""
        fits = all(len(edit.data) == edit.end - edit.start for edit in edits)
        if fits:
            self._write_over([Patch(edit.start, edit.data) for edit in edits])
            return True
        self.progress.start("copying", self.source.nbytes)
        pos = done = 0
        for edit in (*edits, Edit(self.source.nbytes, self.source.nbytes, b"")):
            self.copied.append(Span(done, pos, edit.start - done))
            self.source.copy_to(self.target, done, edit.start - done, self.progress)
            pos += edit.start - done + write_bytes(self.target, edit.data)
            done = edit.end
        return False

    def write_zip(self) -> bool:
        """Write a zip; return whether every byte outside the pickle kept its place."""
        records = records_of(self.source, self.limits, self.progress)
        entry = find_pickle(records, self.source.path)
        refuse_doubles(self.source, records, entry)
        if read_zip_record(self.source, entry, self.limits.pickle_nbytes).startswith(self.pickle):
            self._copy_whole()  # nothing changes, so neither does what stands behind STOP
            self.copied.append(Span(0, 0, self.source.nbytes))
            return True
        return self.write_records(records, [(entry, self.pickle)])

    def write_records(self, records: Records, changed: Sequence[tuple[ZipEntry, bytes]]) -> bool:
        """Write a zip with other contents of some records; return whether every other byte kept its place."""
        if all(fits(entry, pickle) for entry, pickle in changed):  # torch ignores the zeros behind STOP
            pieces = [zip_pieces(self.source, entry, pickle) for entry, pickle in changed]
            self._write_over(chain.from_iterable(pieces))
            return True
        self._write_laid_out(records, {entry.header_offset: pickle for entry, pickle in changed})
        return False

    def _inflate_from(self, offset: int) -> None:
        self.progress.start("unpacking")
        start, written = offset, os.lseek(self.target, 0, os.SEEK_CUR)
        while data := self.source.read_upto(offset, _STEP_NBYTES):
            self.progress.advance(write_bytes(self.target, data))
            offset += len(data)
        self.copied.append(Span(start, written, offset - start))

    def _copy_whole(self) -> None:
        self.progress.start("copying", self.source.nbytes)
        if self.source.clone_to(self.target) or (self.clone is not None and self.clone()):
            self.progress.advance(self.source.nbytes)
        else:
            self.source.copy_to(self.target, 0, self.source.nbytes, self.progress)

    def _write_over(self, pieces: Iterable[Patch]) -> None:
        self._copy_whole()
        done = 0
        for piece in sorted(pieces):
            write_over(self.target, piece.offset, piece.data)
            self.copied.append(Span(done, done, piece.offset - done))
            done = piece.offset + len(piece.data)
        self.copied.append(Span(done, done, self.source.nbytes - done))

    def _write_laid_out(self, records: Records, changed: Mapping[int, bytes]) -> None:
        entries = records.directory.entries
        if sum(entry.stored_nbytes for entry in entries) > self.source.nbytes:
            raise ExportError(
                "the records overlap or run past the end of the file",
                where=self.source.path,
                remedy="the file is damaged: fetch or copy it again",
            )
        others = sum(entry.stored_nbytes for entry in entries if entry.header_offset not in changed)
        self.progress.start("copying", others)
        rows = [
            plain_record(entry.name, changed[entry.header_offset], has_crc=bool(entry.crc))
            if entry.header_offset in changed
            else Record(
                entry.name, entry.nbytes, entry.stored_nbytes, partial(self._copy_record, entry), entry.method
            )
            for entry in entries
        ]
        write_zip(rows, storage_alignment(self.source, records), partial(write_bytes, self.target))

    def _copy_record(self, entry: ZipEntry) -> int:
        pos = os.lseek(self.target, 0, os.SEEK_CUR)
        span = Span(payload_offset(self.source, entry), pos, entry.stored_nbytes)
        self.source.copy_to(self.target, span.offset, span.nbytes, self.progress)
        self.copied.append(span)
        return entry.crc


# --- other devices in an archive of several pickles, each of which names the storages that it needs ---------


def new_pickles(container: Container, plan: Plan, progress: Progress) -> dict[str, bytes]:
    """Return the pickles that change with the devices of a plan, by the full names of their records."""
    changed: dict[str, bytes] = {}
    for one in container.pickles:
        pickle = rewrite_pickle(one.stream, _own_plan(plan, one), progress=progress)
        if pickle != one.stream.data[: one.stream.end]:
            changed[one.name] = pickle
    return changed


def _own_plan(plan: Plan, pickle: PickleRecord) -> Plan:
    length = len(pickle.prefix)
    if not length:
        return plan
    storages = {key[length:]: to for key, to in plan.storages.items() if key.startswith(pickle.prefix)}
    held = frozenset(key[length:] for key in plan.held if key.startswith(pickle.prefix))
    return replace(plan, storages=storages, held=held)


def entries_of(source: Source, records: Records, names: dict[str, bytes]) -> list[tuple[ZipEntry, bytes]]:
    """Return the records of these names with their new contents."""
    found = [(entry, names[entry.name]) for entry in records.directory.entries if entry.name in names]
    for entry, _ in found:
        refuse_doubles(source, records, entry)
    return found


def write_archive(container: Container, writer: CopyWriter, plan: Plan) -> bool:
    """Write a copy; return whether every byte outside of the pickles kept its place."""
    records = records_of(writer.source, writer.limits, writer.progress)
    changed = entries_of(writer.source, records, new_pickles(container, plan, writer.progress))
    return writer.write_records(records, changed)


def archive_pieces(container: Container, source: Source, plan: Plan, progress: Progress) -> tuple[Patch, ...]:
    """Return what to write over an archive, or behind it."""
    records = records_of(source, DEFAULT_LIMITS, progress)
    changed = entries_of(source, records, new_pickles(container, plan, progress))
    if len(changed) == 1 and not fits(*changed[0]):
        entry, pickle = changed[0]
        read_zip_record(source, entry, DEFAULT_LIMITS.pickle_nbytes)
        return (appended_piece(source, records, entry, pickle),)
    for entry, pickle in changed:
        if not fits(entry, pickle):
            raise ExportError(
                "the new device names are longer than the old ones, and several pickles hold them",
                where=source.path,
                remedy=COPY,
            )
    return tuple(piece for entry, pickle in changed for piece in zip_pieces(source, entry, pickle))


def _relocated(container: Container, plan: Plan, _progress: Progress) -> Container:
    ids = container.storage_ids.items()
    moved = {key: one._replace(location=plan.storages.get(key, one.location)) for key, one in ids}
    return replace(container, storage_ids=moved)


# ------------------------------------------------------------------------------------------------------------
# What changes in a file of each format when its devices do: one row for each format that can be changed.
#
# A format without a row is read, and written anew in another form, but its own bytes are left alone.


class Relabeling(NamedTuple):
    """How the devices of one format are changed.

    Attributes:
        write: Writes a copy; returns whether every byte that does not change kept its place.
        pieces: Returns what to write over a file, or behind it; nothing where it is as planned already.
        mapped: Returns the container as it will be; the one given must not be used again.
    """

    write: Callable[[Container, CopyWriter, Plan], bool]
    pieces: Callable[[Container, Source, Plan, Progress], tuple[Patch, ...]]
    mapped: Callable[[Container, Plan, Progress], Container]
    is_one_pickle: bool = True


def relabeling_of(container: Container) -> Relabeling:
    """Return how the devices of a container are changed."""
    refuse_step(container.format, "remap", container.path)
    found = RELABELINGS.get(container.format)
    if found is None:
        raise PlanError(
            f"this is {format_of(container.format).what}, whose devices this version cannot change",
            where=container.path,
            remedy="choose where it goes with map_location when it is loaded",
        )
    return found


def pieces_of(container: Container, source: Source, plan: Plan, progress: Progress) -> tuple[Patch, ...]:
    """Return what to write over a file to give it the devices of a plan."""
    if source.gzipped:
        raise ExportError("a gzip file cannot be changed in place", where=source.path, remedy=COPY)
    pieces = relabeling_of(container).pieces(container, source, plan, progress)
    return tuple(
        piece
        for piece in pieces
        if piece.offset >= source.nbytes or source.read(piece.offset, len(piece.data)) != piece.data
    )


def mapped_container(container: Container, plan: Plan | None, progress: Progress) -> Container:
    """Return a container with the devices of a plan; the one given must not be used again."""
    if plan is None:
        return container
    if container.stream is None:
        return _relocated(container, plan, progress)
    return relabeling_of(container).mapped(
        container, with_viewed(plan, container.storage_ids.values()), progress
    )


def _no_room(source: Source, *, is_longer: bool) -> ExportError:
    longer = "longer than the old ones, and a file of this format has no room for them"
    shorter = "a byte shorter than the old ones, and a file of this format has nothing to fill that with"
    return ExportError(
        f"the new device names are {longer if is_longer else shorter}",
        where=source.path,
        remedy=COPY,
    )


# --- one pickle ---------------------------------------------------------------------------------------------


def _new_pickle(container: Container, plan: Plan, progress: Progress) -> bytes | None:
    old = container.pickle()
    pickle = rewrite_pickle(old, plan, progress=progress)
    return None if old.data[: old.end] == pickle else pickle


def _legacy_pieces(container: Container, source: Source, plan: Plan, progress: Progress) -> tuple[Patch, ...]:
    pickle = _new_pickle(container, plan, progress)
    if pickle is None:
        return ()
    layout = read_layout(source, DEFAULT_LIMITS, progress)
    fitted = fit_pickle(pickle, layout.object_end - layout.object_start)
    if fitted is None:
        raise _no_room(source, is_longer=len(pickle) > layout.object_end - layout.object_start)
    return (Patch(layout.object_start, fitted),)


def _zip_pieces(container: Container, source: Source, plan: Plan, progress: Progress) -> tuple[Patch, ...]:
    pickle = _new_pickle(container, plan, progress)
    if pickle is None:
        return ()
    records = records_of(source, DEFAULT_LIMITS, progress)
    entry = find_pickle(records, source.path)
    refuse_doubles(source, records, entry)
    if fits(entry, pickle):
        return tuple(zip_pieces(source, entry, pickle))
    read_zip_record(source, entry, DEFAULT_LIMITS.pickle_nbytes)
    return (appended_piece(source, records, entry, pickle),)


def _pickle_mapped(container: Container, plan: Plan, progress: Progress) -> Container:
    pickle = rewrite_pickle(container.pickle(), plan, progress=progress)
    stream = read_pickle(pickle, name="the new pickle", progress=progress, expected=EXPECTED)
    ids = first_storage_ids(stream.persistent_ids, DEFAULT_LIMITS)
    return replace(container, root=stream.root, stream=stream, storage_ids=ids)


# --- tar and plain pickles: both are rare, and what reads them is imported when one comes -------------------


def _edits(container: Container, source: Source, plan: Plan, progress: Progress) -> list[Edit]:
    from inspector.remap.rare import pickled_edits, tar_edits  # noqa: PLC0415 - see above

    edits = tar_edits if format_of(container.format).has_tags else pickled_edits
    return edits(source, container, plan, progress)


def _write_edited(container: Container, writer: CopyWriter, plan: Plan) -> bool:
    writer.source.measure()
    return writer.write_edited(_edits(container, writer.source, plan, writer.progress))


def _tar_pieces(container: Container, source: Source, plan: Plan, progress: Progress) -> tuple[Patch, ...]:
    edits = _edits(container, source, plan, progress)
    growth = [len(edit.data) - (edit.end - edit.start) for edit in edits]
    if any(growth):  # the first and the last are the member's headers and its padding
        raise _no_room(source, is_longer=max(growth[1:-1]) > 0)
    return tuple(Patch(edit.start, edit.data) for edit in edits)


def _tar_mapped(container: Container, plan: Plan, _progress: Progress) -> Container:
    from inspector.containers.tar_archive import relocate  # noqa: PLC0415 - see above
    from inspector.remap.rare import tar_locations  # noqa: PLC0415 - see above

    return relocate(container, tar_locations(container, plan))


def _pickled_pieces(
    container: Container, source: Source, plan: Plan, progress: Progress
) -> tuple[Patch, ...]:
    from inspector.remap.rare import pickled_edits  # noqa: PLC0415 - see above

    edits = pickled_edits(source, container, plan, progress, in_place=True)
    if any(len(edit.data) != edit.end - edit.start for edit in edits):
        raise ExportError(
            "the new device names are not as long as the old ones, and everything behind them would move",
            where=source.path,
            remedy=COPY,
        )
    return tuple(Patch(edit.start, edit.data) for edit in edits)


def _pickled_mapped(container: Container, plan: Plan, _progress: Progress) -> Container:
    from inspector.remap.rare import mapped_pickled  # noqa: PLC0415 - see above

    return mapped_pickled(container, plan)


_ARCHIVE = Relabeling(write_archive, archive_pieces, _relocated)
_PICKLED = Relabeling(_write_edited, _pickled_pieces, _pickled_mapped, is_one_pickle=False)
RELABELINGS = {
    "zip": Relabeling(lambda _container, writer, _plan: writer.write_zip(), _zip_pieces, _pickle_mapped),
    "legacy": Relabeling(
        lambda _container, writer, _plan: writer.write_legacy(), _legacy_pieces, _pickle_mapped
    ),
    "tar": Relabeling(_write_edited, _tar_pieces, _tar_mapped),
    "torchscript": _ARCHIVE,
    "package": _ARCHIVE,
    "pickle": _PICKLED,
    "joblib": _PICKLED,
}
