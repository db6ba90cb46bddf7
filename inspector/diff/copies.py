"""Whether one checkpoint is a copy of another but for its devices: every object, and every byte beside them.

The pickles are compared by exact digests of all that they make, whether a row shows it or not; all other
bytes of the files one by one. What differs in devices alone is returned, for those who know what they were to
become.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container
from inspector.containers.folder import Folder
from inspector.containers.formats import find_format
from inspector.containers.opening import open_path, read_container
from inspector.containers.source import BytesSource, Source
from inspector.diff.compare import Wish, compare_sides
from inspector.diff.records import Diff
from inspector.diff.rest import digest_objects, faults_of
from inspector.diff.same_bytes import (
    Span,
    archive_spans,
    find_difference,
    legacy_spans,
    pickled_spans,
    tar_spans,
    total_nbytes,
    whole_spans,
    zip_spans,
)
from inspector.diff.side import side_of
from inspector.diff.tokens import Tokens
from inspector.errors import CancelledError, CheckpointError, ExportError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.tensors.views import Known
from inspector.model.walk import walk
from inspector.pickles.values import Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text

Devices = list[tuple[str, str]]
"""The device here and there of all that names one, in the order of the pickles."""

_Pair = Callable[[Source, Source, Progress], list[Span]]


def _of_archives(one: Container, other: Container) -> _Pair:
    return archive_spans(*([pickle.name for pickle in container.pickles] for container in (one, other)))


_SPANS: dict[str, Callable[[Container, Container], _Pair]] = {
    "legacy": lambda _one, _other: legacy_spans,
    "tar": lambda _one, _other: tar_spans,
    "zip": lambda _one, _other: zip_spans,
    "pickle": lambda _one, _other: pickled_spans,
    "joblib": lambda _one, _other: pickled_spans,
    "torchscript": _of_archives,
    "package": _of_archives,
}
"""What pairs all bytes but those of pickles with tensors, for the formats of which those are compared."""
_MOST_NESTED = 8
_TENSOR = b"tensor"
_MOST_CHARS, _MOST_FOUND = 80, 20


class Copied:
    """What came out of comparing a copy with its original."""

    def __init__(self) -> None:
        self.differences: list[str] = []
        self.devices: Devices = []
        self.nbytes = 0


def compare_copies(source: Source, copy: Source, progress: Progress, nested: int = 0) -> Copied:
    """Compare a copy with its original, both of which are open: a file, a folder, or bytes."""
    found = Copied()
    if isinstance(source, Folder) and isinstance(copy, Folder):
        _compare_folders(source, copy, found, progress)
    else:
        _compare_files(source, copy, found, progress, nested)
    return found


def compare_objects(one: Container, other: Container, progress: Progress, nested: int = 0) -> Devices | None:
    """Return the devices of both in pairs where all objects are the same but for those; None where not."""
    with collector_paused():
        (first, kept), (second, others) = digest_objects(one, progress), digest_objects(other, progress)
    if first != second:
        return None
    devices = list(zip(kept.devices, others.devices, strict=True))
    for file, another in zip(kept.files, others.files, strict=True):
        if file == another:
            continue
        sources = BytesSource(file, one.path), BytesSource(another, other.path)
        within = compare_copies(*sources, progress, nested + 1) if nested < _MOST_NESTED else None
        if within is None or within.differences:
            return None
        devices += within.devices
    return devices


def digest_values(
    container: Container, root: Value, progress: Progress, limits: Limits = DEFAULT_LIMITS
) -> bytes:
    """Return what tells an object of a container from what loads as another one, whatever its tensors are.

    Nothing for one that is nested too deeply to be told.
    """
    limits = limits.started(progress.advance)
    tensors = walk(root, limits, progress, Known(container.storage_ids)).sources
    look = limits.counted(progress.advance).look
    tokens = Tokens(container.object_data, look, dict.fromkeys(map(id, tensors), _TENSOR))
    found = tokens.of(root)
    return b"" if tokens.is_cut else found


def name_differences(one: Container, other: Container, progress: Progress) -> list[str]:
    """Return where the objects of two files differ besides devices, a sentence each; at least one."""
    limits = DEFAULT_LIMITS.started(progress.advance)
    with open_path(one.path) as source, open_path(other.path) as copy:
        sides = side_of(one, source, limits, progress), side_of(other, copy, limits, progress)
        found = list(_sentences(compare_sides(*sides, Wish(mode="none"), progress)))
    return found[:_MOST_FOUND] or ["The objects differ in what no row shows."]


def _sentences(diff: Diff) -> Iterator[str]:
    a, b = diff.a, diff.b
    yield from _one_sided((a.tensors[row].path for row in diff.removed), "is missing from the copy")
    yield from _one_sided((a.values[row].path for row in diff.values_removed), "is missing from the copy")
    yield from _one_sided((b.tensors[row].path for row in diff.added), "is in the copy alone")
    yield from _one_sided((b.values[row].path for row in diff.values_added), "is in the copy alone")
    for pair in diff.renamed:
        yield f"{shown(a.tensors[pair.a].path)} is {shown(b.tensors[pair.b].path)} in the copy."
    for change in diff.tensors:
        what = ", ".join(fact for fact in change.what if fact != "device")
        if what:
            yield f"{shown(a.tensors[change.pair.a].path)} differs: {what}."
    hidden = {row.path for row in a.hidden_devices}
    for value in diff.values:
        path = a.values[value.a].path
        if not any(path == place or path.startswith(f"{place}/") for place in hidden):
            yield f"{shown(path)} differs: {value.a_text}, in the copy {value.b_text}."
    for one in (*diff.containers, *diff.reordered):
        yield f"{shown(one.a_path) or 'the root'} differs: {one.a}, in the copy {one.b}."
    yield from _one_sided((one.text for one in diff.names), "is imported or called by one of them alone")


def _one_sided(names: Iterable[str], what: str) -> Iterator[str]:
    yield from (f"{shown(name)} {what}." for name in names)


def shown(name: str) -> str:
    """Return a name fit to stand in a sentence."""
    return escape_text(cut_text(name, _MOST_CHARS))


def _compare_files(source: Source, copy: Source, found: Copied, progress: Progress, nested: int) -> None:
    one, other = (read_container(file, DEFAULT_LIMITS, progress) for file in (source, copy))
    if one.format != other.format:
        found.differences.append(f"One is a {one.format} file, the other a {other.format} file.")
        return
    pair_of = _SPANS.get(one.format)
    if pair_of is not None:
        devices = compare_objects(one, other, progress, nested)
        if devices is None:
            is_file = not nested and source.fileno() is not None
            found.differences += (
                name_differences(one, other, progress) if is_file else ["The objects differ."]
            )
        found.devices += devices or []
    if faults_of(one) != faults_of(other):
        found.differences.append("One of them is damaged, or refused by torch, where the other is not.")
    try:
        pair = whole_spans if pair_of is None else pair_of(one, other)
        spans = pair(source, copy, progress)
    except ExportError as error:
        found.differences.append(f"{error.what[0].upper()}{error.what[1:]}.")
        return
    found.nbytes += total_nbytes(spans)
    progress.start("comparing bytes", total_nbytes(spans))
    difference = find_difference(source.read, copy.read, spans, progress)
    if difference is not None:
        found.differences.append(f"The contents differ from byte {difference.copy_offset:,} of the copy on.")


def _compare_folders(source: Folder, copy: Folder, found: Copied, progress: Progress) -> None:
    """Compare two folders file by file: those with pickles by their objects, all others byte by byte."""
    names = dict.fromkeys((*source.sizes, *copy.sizes))
    for name in names:
        if name not in copy.sizes:
            found.differences.append(f"The file {shown(name)} is missing from the copy.")
        elif name not in source.sizes:
            found.differences.append(f"The file {shown(name)} is in the copy alone.")
        else:
            with source.open(name) as one, copy.open(name) as other:
                within = _compare_parts(one, other, progress)
            found.differences += [f"The file {shown(name)} differs{text}" for text in within.differences]
            found.devices += within.devices
            found.nbytes += within.nbytes


def _compare_parts(one: Source, other: Source, progress: Progress) -> Copied:
    found = Copied()
    progress.start("comparing bytes", one.nbytes)
    if one.nbytes == other.nbytes:
        spans = whole_spans(one, other, progress)
        if find_difference(one.read, other.read, spans, progress) is None:
            found.nbytes = one.nbytes
            return found
    if _has_objects(one):
        found = compare_copies(one, other, progress)
        found.differences = [f": {text}" for text in found.differences]
    else:
        found.differences.append(".")
    return found


def _has_objects(source: Source) -> bool:
    """Return whether a file in a folder may have other devices: a checkpoint with a pickle."""
    try:
        return find_format(source).name in _SPANS
    except CancelledError:
        raise
    except CheckpointError:
        return False
