"""Which bytes of a file have to change for its pickle to say something else, and at what places.

A zip takes a pickle that is no longer than the old one at its place, with zeros behind: torch stops reading
at STOP. A longer one is appended as a record of its own, with a directory behind it that names it instead of
the old one; nothing that was there moves, so storages lie where every reader expects them. In a legacy file
the storages follow the pickle at once, so it must keep its length to the byte.
"""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from inspector.containers.container import Container, PickleRecord, first_storage_ids
from inspector.containers.copying import write_bytes, write_over
from inspector.containers.formats import format_of, refuse_step
from inspector.containers.legacy import read_layout
from inspector.containers.opening import read_container
from inspector.containers.rebuilds import EXPECTED
from inspector.containers.source import BytesSource, Source
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
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import HiddenDevice
from inspector.model.values.embedded import contents_of
from inspector.pickles.instructions import CODES, U4, U8, iter_instructions
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Value
from inspector.progress import Progress
from inspector.records import dataclass, field, replace
from inspector.remap.plan import TOGETHER, Plan, plan_remap, with_viewed
from inspector.remap.rewrite import Edit, fitted_pickle, rewrite_pickle
from inspector.remap.rules import Rule
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyWriter:
    """Writes one copy.

    Attributes:
        copied: Which bytes were copied as they are, filled while that is done.
    """

    source: Source
    target: int
    progress: Progress
    clone: Callable[[], bool] | None = None
    copied: list[Span] = field(default_factory=list)

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

    def write_records(self, records: Records, changed: Sequence[tuple[ZipEntry, bytes]]) -> bool:
        """Write a zip with other contents of some records; return whether every other byte kept its place."""
        if all(fits(entry, pickle) for entry, pickle in changed):  # torch ignores the zeros behind STOP
            pieces = [zip_pieces(self.source, entry, pickle) for entry, pickle in changed]
            self._write_over(chain.from_iterable(pieces))
            return True
        self._write_laid_out(records, {entry.header_offset: pickle for entry, pickle in changed})
        return False

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


# --- other devices in an archive, each of whose pickles names the storages that it needs --------------------


def _changed(
    container: Container, source: Source, records: Records, plan: Plan, progress: Progress
) -> list[tuple[ZipEntry, bytes]]:
    """Return the records of the pickles that change with the devices of a plan, and their new contents."""
    pickles = container.pickles
    if container.stream is not None and not pickles:
        only = find_pickle(records, source.path)
        refuse_doubles(source, records, only)
        read_zip_record(source, only, DEFAULT_LIMITS.pickle_nbytes)  # which refuses a damaged one
        pickles = (PickleRecord(only.name, container.stream),)
    new: dict[str, bytes] = {}
    for one in pickles:
        pickle = rewrite_pickle(one.stream, _own_plan(plan, one), progress=progress)
        if pickle != one.stream.data[: one.stream.end]:
            new[one.name] = pickle
    found = [(entry, new[entry.name]) for entry in records.directory.entries if entry.name in new]
    for entry, _ in found:
        refuse_doubles(source, records, entry)
    return found


def _own_plan(plan: Plan, pickle: PickleRecord) -> Plan:
    length = len(pickle.prefix)
    if not length:
        return plan
    storages = {key[length:]: to for key, to in plan.storages.items() if key.startswith(pickle.prefix)}
    held = frozenset(key[length:] for key in plan.held if key.startswith(pickle.prefix))
    return replace(plan, storages=storages, held=held)


def _archive_pieces(
    container: Container, source: Source, plan: Plan, progress: Progress
) -> tuple[Patch, ...]:
    records = records_of(source, DEFAULT_LIMITS, progress)
    changed = _changed(container, source, records, plan, progress)
    if all(fits(*one) for one in changed):
        return tuple(piece for entry, pickle in changed for piece in zip_pieces(source, entry, pickle))
    if len(changed) > 1:
        raise ExportError(
            "the new device names are longer than the old ones, and several pickles hold them",
            where=source.path,
            remedy=COPY,
        )
    entry, pickle = changed[0]
    read_zip_record(source, entry, DEFAULT_LIMITS.pickle_nbytes)
    return (appended_piece(source, records, entry, pickle),)


def _relocated(container: Container, plan: Plan, _progress: Progress) -> Container:
    ids = container.storage_ids.items()
    moved = {key: one._replace(location=plan.storages.get(key, one.location)) for key, one in ids}
    return replace(container, storage_ids=moved)


# ------------------------------------------------------------------------------------------------------------
# What changes in a file of each format when its devices do: one row for each format that can be changed.
#
# A format without a row is read, and written anew in another form, but its own bytes are left alone.


Edits = Callable[[Container, Source, Plan, Progress], list[Edit]]


class Relabeling(NamedTuple):
    """How the devices of one format are changed.

    Attributes:
        mapped: Returns the container as it will be; the one given must not be used again.
        edits: Returns what changes in the file, in order, of the same length if that can be;
            None for archives, of which records change.
        in_place: The same for the file itself, where that is another way.
    """

    mapped: Callable[[Container, Plan, Progress], Container]
    edits: Edits | None = None
    in_place: Edits | None = None


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


def write_relabeled(container: Container, writer: CopyWriter, plan: Plan) -> bool:
    """Write a copy with the devices of a plan; return whether every byte but those kept its place."""
    source, progress = writer.source, writer.progress
    edits = relabeling_of(container).edits
    if edits is not None:
        source.measure()
        return writer.write_edited(edits(container, source, plan, progress))
    records = records_of(source, DEFAULT_LIMITS, progress)
    return writer.write_records(records, _changed(container, source, records, plan, progress))


def pieces_of(container: Container, source: Source, plan: Plan, progress: Progress) -> tuple[Patch, ...]:
    """Return what to write over a file, or behind it, to give it the devices of a plan."""
    if source.gzipped:
        raise ExportError("a gzip file cannot be changed in place", where=source.path, remedy=COPY)
    found = relabeling_of(container)
    edits = found.in_place or found.edits
    if edits is None:
        pieces = _archive_pieces(container, source, plan, progress)
    else:
        made = edits(container, source, plan, progress)
        if any(len(edit.data) != edit.end - edit.start for edit in made):
            raise ExportError(
                "the new device names are not as long as the old ones, and everything behind them would move",
                where=source.path,
                remedy=COPY,
            )
        pieces = tuple(Patch(edit.start, edit.data) for edit in made)
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


# --- the formats --------------------------------------------------------------------------------------------


def _legacy_edits(container: Container, source: Source, plan: Plan, progress: Progress) -> list[Edit]:
    old = container.pickle()
    pickle = rewrite_pickle(old, plan, progress=progress)
    if old.data[: old.end] == pickle:
        return []
    layout = read_layout(source, DEFAULT_LIMITS, progress)
    fitted = fitted_pickle(pickle, layout.object_end - layout.object_start)
    return [Edit(layout.object_start, layout.object_end, fitted)]


def _pickle_mapped(container: Container, plan: Plan, progress: Progress) -> Container:
    pickle = rewrite_pickle(container.pickle(), plan, progress=progress)
    stream = read_pickle(pickle, name="the new pickle", progress=progress, expected=EXPECTED)
    ids = first_storage_ids(stream.persistent_ids, DEFAULT_LIMITS)
    return replace(container, root=stream.root, stream=stream, storage_ids=ids)


# What reads tar and plain pickles is imported when one comes: both are rare.


def _tar_edits(container: Container, source: Source, plan: Plan, progress: Progress) -> list[Edit]:
    from inspector.remap.rare import tar_edits  # noqa: PLC0415 - see above

    return tar_edits(source, container, plan, progress)


def _tar_mapped(container: Container, plan: Plan, _progress: Progress) -> Container:
    from inspector.containers.tar_archive import relocate  # noqa: PLC0415 - see above
    from inspector.remap.rare import tar_locations  # noqa: PLC0415 - see above

    return relocate(container, tar_locations(container, plan))


def _pickled_edits(
    _container: Container, source: Source, plan: Plan, progress: Progress, *, in_place: bool = False
) -> list[Edit]:
    from inspector.remap.rare import pickled_edits  # noqa: PLC0415 - see above

    return pickled_edits(source, plan, progress, in_place=in_place)


def _pickled_mapped(container: Container, plan: Plan, _progress: Progress) -> Container:
    from inspector.remap.rare import mapped_pickled  # noqa: PLC0415 - see above

    return mapped_pickled(container, plan)


RELABELINGS = {
    "zip": Relabeling(_pickle_mapped),
    "torchscript": Relabeling(_relocated),
    "package": Relabeling(_relocated),
    "legacy": Relabeling(_pickle_mapped, _legacy_edits),
    "tar": Relabeling(_tar_mapped, _tar_edits),
    **dict.fromkeys(
        ("pickle", "joblib"),
        Relabeling(_pickled_mapped, _pickled_edits, partial(_pickled_edits, in_place=True)),
    ),
}


# ------------------------------------------------------------------------------------------------------------
# Other devices in files of torch that are bytes within a pickle: each is written anew where it stands.
#
# In protocol 2 the bytes are a text that is encoded in Latin-1 while loading (`save_bytes` in CPython's
# `Lib/pickle.py`); from 3 on they stand as they are. The length before them changes with them.

# Instructions that push bytes or the text of them, with how long their length is; and the next longer one.
_WIDTHS = {"SHORT_BINBYTES": 1, "BINBYTES": 4, "BINBYTES8": 8, "BYTEARRAY8": 8}
_WIDTHS |= {"SHORT_BINUNICODE": 1, "BINUNICODE": 4, "BINUNICODE8": 8}
_PLACES = {CODES[name]: width for name, width in _WIDTHS.items()}
_LONGER = {CODES["SHORT_BINBYTES"]: CODES["BINBYTES"], CODES["SHORT_BINUNICODE"]: CODES["BINUNICODE"]}
_TEXTS = frozenset(CODES[name] for name in _WIDTHS if name.endswith(("UNICODE", "UNICODE8")))


def embedded_edits(
    data: bytes, inside: Sequence[tuple[HiddenDevice, Value]], moves: Mapping[int, str], progress: Progress
) -> list[Edit]:
    """Return what changes in a pickle so that files of torch within it have other devices."""
    rules: dict[bytes, dict[str, str]] = {}
    for index, (row, value) in enumerate(inside):
        own = rules.setdefault(contents_of(value, data), {})
        to = moves.get(index, row.device)
        if own.setdefault(row.device, to) != to:
            raise PlanError(
                "one file of torch in bytes stands in several places, which are sent to different devices",
                where=row.path,
                remedy=TOGETHER,
            )
    edits: list[Edit] = []
    for contents, devices in rules.items():
        going = [Rule(device=device, to=to) for device, to in devices.items() if device != to]
        if going:
            new = _relabeled(contents, going, progress)
            found = list(_literals(data, contents, new))
            if not found:
                raise PlanError("a file of torch in bytes is written in a way that cannot be changed")
            edits += found
    return edits


def _relabeled(contents: bytes, rules: list[Rule], progress: Progress) -> bytes:
    source = BytesSource(contents, "the bytes within")
    container = read_container(source, DEFAULT_LIMITS, progress)
    found = RELABELINGS.get(container.format)
    if found is None or found.mapped is not _pickle_mapped:
        raise PlanError("a file within bytes is of a format whose devices cannot be changed there")
    plan = plan_remap(build_checkpoint(container, progress=progress), rules)
    plan = with_viewed(plan, container.storage_ids.values())
    with tempfile.TemporaryFile() as copy:
        write_relabeled(container, CopyWriter(source=source, target=copy.fileno(), progress=progress), plan)
        copy.seek(0)
        return copy.read()


def _literals(data: bytes, contents: bytes, new: bytes) -> Iterator[Edit]:
    """Yield the edits of the instructions that push these contents, as bytes or as a text."""
    text = contents.decode("latin-1").encode()
    for start, end in iter_instructions(data, 0, len(data)):
        code = data[start]
        width = _PLACES.get(code)
        if width is None:
            continue
        is_text = code in _TEXTS
        if data[start + 1 + width : end] == (text if is_text else contents):
            yield Edit(start, end, _pushing(code, width, new.decode("latin-1").encode() if is_text else new))


def _pushing(code: int, width: int, payload: bytes) -> bytes:
    """Return the instruction that pushes a payload, in the way it was written before where that has room."""
    if width == 1 and len(payload) > 0xFF:
        code, width = _LONGER[code], U4.size
    if width == U8.size:
        return bytes([code]) + U8.pack(len(payload)) + payload
    return bytes([code]) + len(payload).to_bytes(width, "little") + payload
