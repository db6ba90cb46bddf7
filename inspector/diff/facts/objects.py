"""All that the pickles of a checkpoint make, as exact digests: whether a row shows it or not."""

from __future__ import annotations

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container
from inspector.containers.folders.folder import Folder
from inspector.containers.formats import format_of
from inspector.containers.source import Source
from inspector.containers.tar.members import STORAGES
from inspector.diff.facts.records import compare_records, gaps
from inspector.diff.facts.tokens import ExactTokens, Kept
from inspector.diff.same_bytes import Span, find_difference
from inspector.diff.side import Side
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.values import Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text, format_count

_DIGESTED = frozenset({"legacy"})
"""Formats that are pickles and storages: nothing stands beside them."""
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

    Raises:
        ModelError: They are too many.
        CancelledError: The work was cancelled.
    """
    look = DEFAULT_LIMITS.counted(progress.advance).look
    kept = Kept(has_keys=has_keys)
    roots: list[tuple[Value, bytes]] = [(container.root, container.object_data)]
    found: list[object] = []
    for program in container.programs:
        root = program.stream.root
        if container.format == "tar" and program.name == STORAGES:
            _keep_tags(root, kept)
        if has_keys or not _are_keys(root, container):
            roots.append((root, program.stream.data))
        found += [program.name, program.is_whole]
        found += sorted({(node.module, node.name) for node in program.stream.globals})
    roots += [(one.stream.root, one.stream.data) for one in container.pickles]
    found += [ExactTokens(data, look, kept).of(value) for value, data in roots]
    return [*found, len(kept.devices), len(kept.files)], kept


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

    Raises:
        CheckpointError: They cannot be compared.
        CancelledError: The work was cancelled.
    """
    if a.checkpoint.format != b.checkpoint.format:
        return ()
    if isinstance(a.source, Folder) and isinstance(b.source, Folder):
        found = _name_files(a.source, b.source, a, b, progress)
    elif format_of(a.checkpoint.format).is_archive or a.checkpoint.format in _DIGESTED:
        found = []
    else:
        found = ["bytes of the files beside their tensors"] if _differ_beside(a, b, progress) else []
    found += compare_records(a, b, progress, beside=True).uncompared
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


def _differ_beside(a: Side, b: Side, progress: Progress) -> bool:
    """Return whether the bytes of two files differ that belong to no storage."""
    one, other = _beside(a, a.source), _beside(b, b.source)
    if [span.nbytes for span in one] != [span.nbytes for span in other]:
        return True
    spans = [
        Span(first.offset, second.offset, first.nbytes) for first, second in zip(one, other, strict=True)
    ]
    return find_difference(a.source.read, b.source.read, spans, progress) is not None


def _beside(side: Side, source: Source) -> list[Span]:
    source.measure()
    stored = side.container.stored.values()
    places = sorted((place.offset, place.nbytes) for place in stored if place.offset is not None)
    return [Span(start, start, end - start) for start, end in gaps(places, 0, source.nbytes)]
