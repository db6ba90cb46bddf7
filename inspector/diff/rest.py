"""What two checkpoints hold besides the tensors and values of rows: records of archives, and other storages.

Two archives can hold the same weights and compute different things: code, graphs and compiled libraries stand
in records of their own. Storages that no tensor shows are loaded like all others.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container, Extent
from inspector.containers.folder import Folder
from inspector.containers.formats import Format, format_of
from inspector.containers.notes import NoteKind
from inspector.containers.source import Source
from inspector.containers.tar_archive import STORAGES
from inspector.containers.zip.directory import STORED, ZipEntry, payload_offset
from inspector.containers.zip.records import PICKLE, read_zip_record, record_extents, records_of
from inspector.diff.records import Pair, RecordChange, TensorChange
from inspector.diff.same_bytes import Span, find_difference
from inspector.diff.side import Side
from inspector.diff.tokens import ExactTokens, Kept
from inspector.errors import CancelledError, CheckpointError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.checkpoint import Storage
from inspector.pickles.values import Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text, format_count, format_nbytes

_DESCRIBING = frozenset(
    {"version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id"}
)
"""Records that say how the archive itself was written: other ones are no other checkpoint."""
_MOST_NBYTES = 1 << 28
_MOST_CHARS = 80
_PICKLES = ".pkl"
_UNREAD = b"unread"


class Rest(NamedTuple):
    """What became of what no row shows."""

    changed: tuple[RecordChange, ...] = ()
    uncompared: tuple[str, ...] = ()


# --- records of archives ------------------------------------------------------------------------------------


class _Archive(NamedTuple):
    """One zip of a checkpoint.

    Attributes:
        name: What it is called among several; empty for the only one.
        entries: Its records by their names in its folder, but for the pickles of which there are rows.
        stored: Where storages are in it: their first bytes, in order, and how many bytes each has there.
    """

    name: str
    source: Source
    entries: dict[str, ZipEntry]
    stored: list[tuple[int, int]]

    def storages_in(self, offset: int, nbytes: int) -> list[tuple[int, int]]:
        first = bisect_left(self.stored, (offset, -1))
        return self.stored[first : bisect_left(self.stored, (offset + max(nbytes, 1), -1))]


def compare_records(a: Side, b: Side, progress: Progress, *, beside: bool = False) -> Rest:
    """Compare all records of archives of one format but those of storages and of pickles with rows.

    Args:
        beside: Whether to compare what stands beside storages in their records, and what describes an
            archive; and nothing else.
    """
    if a.checkpoint.format != b.checkpoint.format:
        return Rest()
    progress.start("comparing records")
    found: list[RecordChange] = []
    unread: list[str] = []
    try:
        archives = _archives(a, progress), _archives(b, progress)
        for name in archives[0].keys() & archives[1].keys():
            pair = archives[0][name], archives[1][name]
            changes = _changes(*pair, unread, progress)
            if beside:
                said = [change.name for change in changes if _describes(change)]
                unread += [f"what the archive says of itself ({_shown(', '.join(said))})"] if said else []
                unread += _beside(*pair, progress)
            else:
                found += (change for change in changes if not _describes(change))
    except CancelledError:
        raise
    except CheckpointError as error:  # what is whole of a damaged one was read without its directory
        return Rest((), (f"the records: {error.what}",))
    return Rest(tuple(found), tuple(dict.fromkeys(unread)))


def _describes(change: RecordChange) -> bool:
    return change.name.rpartition(": ")[2] in _DESCRIBING


def _archives(side: Side, progress: Progress) -> dict[str, _Archive]:
    container, source = side.container, side.source
    if not container.parts:
        if not format_of(container.format).is_archive:
            return {}
        find = format_of(container.format).finder(source)
        stored = [
            (place.offset or 0, place.nbytes)
            if (extent := find(key)) is None
            else (extent.offset, extent.stored_nbytes)
            for key, place in container.stored.items()
        ]
        names = (pickle.name for pickle in container.pickles)
        pickles = {name for name in names if name.endswith(_PICKLES)}  # others are archives themselves
        return {
            "": _archive(
                "", source, stored, pickles, has_object=container.stream is not None, progress=progress
            )
        }
    parts = {}
    for number, part in enumerate(container.parts):
        if format_of(part.format).is_archive and isinstance(source, Folder):
            name = os.path.relpath(part.path, source.root)
            places = (place for place in container.stored.values() if place.part == number)
            stored = [(place.offset, place.nbytes) for place in places if place.offset is not None]
            inside = source.part_at(part.path)
            parts[name] = _archive(name, inside, stored, set(), has_object=True, progress=progress)
    return parts


def _archive(
    name: str,
    source: Source,
    stored: list[tuple[int, int]],
    pickles: set[str],
    *,
    has_object: bool,
    progress: Progress,
) -> _Archive:
    records = records_of(source, DEFAULT_LIMITS, progress)
    if has_object and (entry := records.get(PICKLE)) is not None:
        pickles = {*pickles, entry.name}
    entries = {
        entry.name.removeprefix(records.prefix): entry
        for entry in records.directory.entries
        if entry.name not in pickles
    }
    return _Archive(name, source, entries, sorted(stored))


def _changes(one: _Archive, other: _Archive, unread: list[str], progress: Progress) -> Iterator[RecordChange]:
    left = _MOST_NBYTES
    places = _extents(one), _extents(other)
    for name in dict.fromkeys((*one.entries, *other.entries)):
        progress.advance(0)
        extents = [
            (archive, place[name])
            for archive, place in zip((one, other), places, strict=True)
            if name in place
        ]
        if any(archive.storages_in(extent.offset, extent.stored_nbytes) for archive, extent in extents):
            continue
        shown = f"{one.name}: {name}" if one.name else name
        if name not in one.entries or name not in other.entries:
            yield RecordChange(shown, "removed" if name in one.entries else "added")
            continue
        if len(extents) < 2:
            if extents:
                yield RecordChange(shown, "changed")
            continue
        pair = one.entries[name], other.entries[name]
        if pair[0].nbytes != pair[1].nbytes:
            yield RecordChange(shown, "changed")
        elif not _stand_alike((one, other), pair, progress):
            left -= pair[0].nbytes
            if left < 0:
                unread.append(f"the record {_shown(shown)}, which is too large")
            elif not _hold_the_same((one, other), pair):
                yield RecordChange(shown, "changed")


def _extents(archive: _Archive) -> dict[str, Extent]:
    found = record_extents(archive.source, list(archive.entries.values()))
    return {name: found[entry.name] for name, entry in archive.entries.items() if entry.name in found}


def _beside(one: _Archive, other: _Archive, progress: Progress) -> Iterator[str]:
    """Yield the records in which other bytes differ than those of storages, such as files within one."""
    extents = _extents(one), _extents(other)
    for name in extents[0].keys() & extents[1].keys():
        runs = []
        for archive, extent in zip((one, other), (extents[0][name], extents[1][name]), strict=True):
            storages = archive.storages_in(extent.offset, extent.stored_nbytes)
            if storages:
                runs.append(list(gaps(storages, extent.offset, extent.offset + extent.stored_nbytes)))
        if len(runs) < 2 or not (runs[0] or runs[1]):
            continue
        spans = [Span(first[0], second[0], first[1] - first[0]) for first, second in zip(*runs, strict=False)]
        is_same = [span.nbytes for span in spans] == [end - start for start, end in runs[1]]
        if not is_same or find_difference(one.source.read, other.source.read, spans, progress):
            yield f"what stands beside the tensors in {_shown(one.name or name)}"


def gaps(places: Iterable[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of bytes between two places that are in none of some others, each with its length."""
    for offset, nbytes in places:
        if offset > start:
            yield start, offset
        start = max(start, offset + nbytes)
    if end > start:
        yield start, end


def _stand_alike(
    archives: tuple[_Archive, _Archive], pair: tuple[ZipEntry, ZipEntry], progress: Progress
) -> bool:
    """Return whether two records are the same as they stand in the files, packed or not."""
    one, other = pair
    if (one.method, one.stored_nbytes) != (other.method, other.stored_nbytes):
        return False
    first, second = (
        payload_offset(archive.source, entry) for archive, entry in zip(archives, pair, strict=True)
    )
    spans = [Span(first, second, one.stored_nbytes)]
    return find_difference(archives[0].source.read, archives[1].source.read, spans, progress) is None


def _hold_the_same(archives: tuple[_Archive, _Archive], pair: tuple[ZipEntry, ZipEntry]) -> bool:
    if pair[0].method == pair[1].method == STORED:
        return False
    try:
        one, other = (
            read_zip_record(archive.source, entry, _MOST_NBYTES)
            for archive, entry in zip(archives, pair, strict=True)
        )
    except CheckpointError:  # damaged, and not in the same way
        return False
    return one == other


# --- storages -----------------------------------------------------------------------------------------------


class StorageDigests:
    """Digests the bytes of the storages of one side, each once."""

    def __init__(self, side: Side, progress: Progress) -> None:
        self._side = side
        self._progress = progress
        self._known: dict[str, bytes] = {}
        self.unread: list[str] = []

    def of(self, key: str) -> bytes:
        """Return the digest of a storage."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(key)
        return found

    def _read(self, key: str) -> bytes:
        reader = self._side.reader
        try:
            return _digest(reader.steps(key, 0, reader.nbytes(key), self._progress), self._progress)
        except CancelledError:
            raise
        except CheckpointError:
            self.unread.append(key)
            return _UNREAD


def compare_storages(
    a: Side,
    b: Side,
    pairs: Iterable[Pair],
    changes: Iterable[TensorChange],
    digests: tuple[StorageDigests, StorageDigests],
) -> Rest:
    """Compare the bytes of storages that no tensor shows."""
    if a.is_swapped != b.is_swapped:
        unseen = [*_unseen(a), *_unseen(b), *_partly(a), *_partly(b)]
        words = (f"storages that no tensor shows whole ({len(unseen):,})",) if unseen else ()
        return Rest((), words)
    found = list(_alone(a, b, digests))
    rows, others = a.checkpoint.tensors, b.checkpoint.tensors
    known = {rows[change.pair.a].storage for change in changes if not _SAID.issuperset(change.what)}
    partners = {rows[pair.a].storage: others[pair.b].storage for pair in pairs}
    one, other = _partly(a), _partly(b)
    unread = []
    for key, partner in partners.items():
        if key is None or partner is None or key in known or not (key in one or partner in other):
            continue
        sizes = a.reader.nbytes(key), b.reader.nbytes(partner)
        name = f"bytes of storage {_shown(key)} that no tensor shows"
        if sizes[0] != sizes[1]:
            unread.append(f"{name} ({format_nbytes(sizes[0])} here, {format_nbytes(sizes[1])} there)")
        elif digests[0].of(key) != digests[1].of(partner):
            found.append(RecordChange(name, "changed"))
    lost = dict.fromkeys(key for one_side in digests for key in one_side.unread)
    unread += [f"storage {_shown(key)}, which cannot be read" for key in lost]
    return Rest(tuple(found), tuple(unread))


_SAID = frozenset({"key", "device", "stride", "requires_grad", "role", "class", "metadata"})
"""What differs in tensors and says nothing of their bytes."""


def _alone(a: Side, b: Side, digests: tuple[StorageDigests, StorageDigests]) -> Iterator[RecordChange]:
    """Yield the storages without any tensor that the other file does not have, by their bytes."""
    one, other = (
        [(row, (row.dtype, row.nbytes, digest.of(row.key))) for row in _unseen(side)]
        for side, digest in zip((a, b), digests, strict=True)
    )
    for rows, others, what in ((one, other, "removed"), (other, one, "added")):
        left = Counter(content for _, content in others)
        for row, content in rows:
            left[content] -= 1
            if left[content] < 0:
                yield RecordChange(f"storage {_shown(row.key)}", what)


def _unseen(side: Side) -> list[Storage]:
    """Return the storages that no row of a tensor shows; those that views of others stand for are shown."""
    ids = side.container.storage_ids
    viewed = {one.key for key, one in ids.items() if one.view is not None and one.view[0] == key != one.key}
    return [
        row
        for row in side.checkpoint.storages
        if not row.tensors and not row.missing and row.key not in viewed and row.nbytes
    ]


def _partly(side: Side) -> Mapping[str, Storage]:
    return {
        row.key: row for row in side.checkpoint.storages if row.tensors and row.viewed_nbytes < row.nbytes
    }


def _digest(blocks: Iterable[bytes], progress: Progress) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for block in blocks:
        progress.advance(0)
        found.update(block)
    return found.digest()


def _shown(name: str) -> str:
    return escape_text(cut_text(name, _MOST_CHARS))


# --- all that the pickles of a checkpoint make, as exact digests: whether a row shows it or not -------------

_Places = list[tuple[int, int]]
_MOST_NAMES = 4
_MOST_FILE_CHARS = 60


def digest_objects(
    container: Container, progress: Progress, *, has_keys: bool = True
) -> tuple[list[object], Kept]:
    """Return what tells the objects of a container from others, and what that leaves out.

    Args:
        has_keys: Whether the keys of storages count; else only which of them are the same.
    """
    look = DEFAULT_LIMITS.counted(progress.advance).look
    kept = Kept(has_keys=has_keys)
    roots: list[tuple[Value, bytes]] = [(container.root, container.object_data)]
    found: list[object] = []
    for program in container.programs:
        root = program.stream.root
        if format_of(container.format).has_tags and program.name == STORAGES:
            _keep_tags(root, kept)
        if has_keys or not _are_keys(root, container):
            roots.append((root, program.stream.data))
        found += [program.name, program.is_whole]
        found += sorted({(node.module, node.name) for node in program.stream.globals})
        found += sorted({(odd.kind.value, odd.values) for odd in program.stream.oddities})
    roots += [(one.stream.root, one.stream.data) for one in container.pickles]
    found += [ExactTokens(data, look, kept).of(value) for value, data in roots]
    return [*found, len(kept.devices), len(kept.files)], kept


def faults_of(container: Container) -> tuple[object, ...]:
    """Return what readers say to a container, and unpicklers to its pickles: a damaged copy is none."""
    kinds = sorted({note.kind.name for note in container.notes if note.kind is not NoteKind.PART_OF})
    stops = sorted({fault for program in container.programs for fault in program.stream.faults})
    return container.refusal, container.refused, kinds, stops


def _are_keys(root: Value, container: Container) -> bool:
    """Return whether a pickle lists the keys of storages, as those of legacy files do."""
    return isinstance(root, list) and all(
        isinstance(one, str) and str(one) in container.storage_ids for one in root
    )


def _keep_tags(root: Value, kept: Kept) -> None:
    """Leave the tags of storages out that a tar file has in pickles of their own: (key, tag, class)."""
    for one in root if isinstance(root, list) else ():
        if isinstance(one, tuple) and len(one) == 3 and isinstance(one[1], str):
            kept.skip(one, 1)


def name_rest(a: Side, b: Side, progress: Progress) -> tuple[str, ...]:
    """Return in which other respects two checkpoints of one format differ whose rows are equal.

    Those may be of no account, such as other spellings of one value; or stand where no row looks.
    """
    if a.checkpoint.format != b.checkpoint.format:
        return ()
    form = format_of(a.checkpoint.format)
    found = []
    if isinstance(a.source, Folder) and isinstance(b.source, Folder):
        found += _name_files(a.source, b.source, a, b, progress)
    elif not form.is_archive and _differ_beside(
        (a.source, b.source), (_places(a), _places(b)), form, progress
    ):
        found.append("bytes of the files beside their tensors")
    found += compare_records(a, b, progress, beside=True).uncompared
    if faults_of(a.container) != faults_of(b.container):
        found.append("what is wrong with the files")
    if not a.container.programs:
        return tuple(found)
    with collector_paused():
        digests = [digest_objects(side.container, progress, has_keys=False) for side in (a, b)]
    if (digests[0][0], digests[0][1].devices, digests[0][1].files) != (
        digests[1][0],
        digests[1][1].devices,
        digests[1][1].files,
    ):
        found.insert(0, "how the pickles spell their objects, and which of them they share")
    return tuple(found)


def _name_files(one: Folder, other: Folder, a: Side, b: Side, progress: Progress) -> list[str]:
    """Return the files of two folders that hold no tensors of rows, and are not the same."""
    held = {part.path for part in (*a.container.parts, *b.container.parts)}
    names = [
        name
        for name in dict.fromkeys((*one.sizes, *other.sizes))
        if one.path_of(name) not in held and other.path_of(name) not in held
    ]
    differ = [name for name in names if not _is_same_file(one, other, name, progress)]
    parts = [
        {os.path.relpath(part.path, folder.root): number for number, part in enumerate(side.container.parts)}
        for side, folder in ((a, one), (b, other))
    ]
    for name in parts[0].keys() & parts[1].keys():
        number, partner = parts[0][name], parts[1][name]
        form = format_of(a.container.parts[number].format)
        places = _places(a, number), _places(b, partner)
        files = (one.part_at(one.path_of(name)), other.part_at(other.path_of(name)))
        if not form.is_archive and _differ_beside(files, places, form, progress):
            differ.append(name)
    if not differ:
        return []
    shown = ", ".join(escape_text(cut_text(name, _MOST_FILE_CHARS)) for name in differ[:_MOST_NAMES])
    more = f" and {len(differ) - _MOST_NAMES:,} more" if len(differ) > _MOST_NAMES else ""
    return [f"{format_count(len(differ), 'other file')} ({shown}{more})"]


def _is_same_file(one: Folder, other: Folder, name: str, progress: Progress) -> bool:
    if one.sizes.get(name) != other.sizes.get(name):
        return False
    with one.open(name) as source, other.open(name) as copy:
        spans = [Span(0, 0, source.nbytes)]
        return source.nbytes == copy.nbytes and not find_difference(source.read, copy.read, spans, progress)


def _places(side: Side, part: int = 0) -> list[tuple[int, int]]:
    stored = side.container.stored.values()
    return sorted(
        (place.offset, place.nbytes) for place in stored if place.offset is not None and place.part == part
    )


def _differ_beside(
    files: tuple[Source, Source], places: tuple[_Places, _Places], form: Format, progress: Progress
) -> bool:
    """Return whether the bytes of two files differ that belong to no storage.

    Before those of a legacy file stand its pickles, which are full of addresses: of it the end alone counts.
    """
    runs = []
    for file, stored in zip(files, places, strict=True):
        file.measure()
        found = list(gaps(stored, 0, file.nbytes))
        runs.append([run for run in found[-1:] if run[1] == file.nbytes] if form.is_stream else found)
    if [end - start for start, end in runs[0]] != [end - start for start, end in runs[1]]:
        return True
    spans = [Span(one[0], other[0], one[1] - one[0]) for one, other in zip(*runs, strict=True)]
    return find_difference(files[0].read, files[1].read, spans, progress) is not None
