"""All that the pickles of a checkpoint make, as exact digests: whether a row shows it or not."""

from __future__ import annotations

import os

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container
from inspector.containers.folder import Folder
from inspector.containers.formats import Format, format_of
from inspector.containers.notes import NoteKind
from inspector.containers.source import Source
from inspector.containers.tar_members import STORAGES
from inspector.diff.facts.records import compare_records, gaps
from inspector.diff.facts.tokens import ExactTokens, Kept
from inspector.diff.same_bytes import Span, find_difference
from inspector.diff.side import Side
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.values import Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text, format_count

_Places = list[tuple[int, int]]
_MOST_NAMES = 4
_MOST_CHARS = 60


def digest_objects(
    container: Container, progress: Progress, *, has_keys: bool = True
) -> tuple[list[object], Kept]:
    """Return what tells the objects of a container from others, and what that leaves out.

    Args:
        container: It.
        progress: Asked for cancellation.
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
    shown = ", ".join(escape_text(cut_text(name, _MOST_CHARS)) for name in differ[:_MOST_NAMES])
    more = f" and {len(differ) - _MOST_NAMES:,} more" if len(differ) > _MOST_NAMES else ""
    return [f"{format_count(len(differ), 'other file')} ({shown}{more})"]


def _is_same_file(one: Folder, other: Folder, name: str, progress: Progress) -> bool:
    if one.sizes.get(name) != other.sizes.get(name):
        return False
    with one.open(name) as source, other.open(name) as copy:
        spans = [Span(0, 0, source.nbytes)]
        return source.nbytes == copy.nbytes and not find_difference(source.read, copy.read, spans, progress)


def _places(side: Side, part: int = 0) -> list[tuple[int, int]]:
    """Return where storages are in a file of a side, in order."""
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
