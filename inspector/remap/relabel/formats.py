"""What changes in a file of each format when its devices do: one row for each format that can be changed.

A format without a row is read, and written anew in another form, but its own bytes are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from inspector.containers.container import Container, first_storage_ids
from inspector.containers.formats import format_of, refuse_step
from inspector.containers.legacy import read_layout
from inspector.containers.rebuilds import EXPECTED
from inspector.containers.source import Source
from inspector.containers.zip.archive import find_pickle
from inspector.containers.zip.directory import read_directory
from inspector.containers.zip.records import Records, read_zip_record
from inspector.errors import ExportError, PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.machine import read_pickle
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.plan import Plan, with_viewed
from inspector.remap.relabel.padding import fit_pickle
from inspector.remap.relabel.patches import Patch, appended_piece, fits, refuse_doubles, zip_pieces
from inspector.remap.relabel.rewrite import rewrite_pickle
from inspector.remap.relabel.writers import CopyWriter

COPY = "write a copy instead, with -o"


class Relabeling(NamedTuple):
    """How the devices of one format are changed.

    Attributes:
        write: Writes a copy; returns whether every byte that does not change kept its place.
        pieces: Returns what to write over a file, or behind it; nothing where it is as planned already.
        mapped: Returns the container as it will be; the one given must not be used again.
        is_one_pickle: Whether all devices stand in the pickle of the object.
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
        ids = container.storage_ids.values()
        moved = {one.key: one._replace(location=plan.storages.get(one.key, one.location)) for one in ids}
        return replace(container, storage_ids=moved)
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
    """Return the object's pickle with the devices of a plan; None where nothing changes."""
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
    records = Records(read_directory(source, DEFAULT_LIMITS, progress))
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


# --- tar: files of 2017 are rare, and what reads them is imported when one comes ----------------------------


def _write_tar(container: Container, writer: CopyWriter, plan: Plan) -> bool:
    from inspector.remap.relabel.tar import tar_edits  # noqa: PLC0415 - see above

    return writer.write_tar(tar_edits(writer.source, container, plan, writer.progress))


def _tar_pieces(container: Container, source: Source, plan: Plan, progress: Progress) -> tuple[Patch, ...]:
    from inspector.remap.relabel.tar import tar_edits  # noqa: PLC0415 - see above

    edits = tar_edits(source, container, plan, progress)
    growth = [len(edit.data) - (edit.end - edit.start) for edit in edits]
    if any(growth):  # the first and the last are the member's headers and its padding
        raise _no_room(source, is_longer=max(growth[1:-1]) > 0)
    return tuple(Patch(edit.start, edit.data) for edit in edits)


def _tar_mapped(container: Container, plan: Plan, _progress: Progress) -> Container:
    from inspector.containers.tar import relocate  # noqa: PLC0415 - see above
    from inspector.remap.relabel.tar import tar_locations  # noqa: PLC0415 - see above

    return relocate(container, tar_locations(container, plan))


# --- archives of several pickles ----------------------------------------------------------------------------


def _write_archive(container: Container, writer: CopyWriter, plan: Plan) -> bool:
    from inspector.remap.relabel.archives import write_archive  # noqa: PLC0415 - see above

    return write_archive(container, writer, plan)


def _archive_pieces(
    container: Container, source: Source, plan: Plan, progress: Progress
) -> tuple[Patch, ...]:
    from inspector.remap.relabel.archives import archive_pieces  # noqa: PLC0415 - see above

    return archive_pieces(container, source, plan, progress)


def _archive_mapped(container: Container, plan: Plan, progress: Progress) -> Container:
    from inspector.remap.relabel.archives import archive_mapped  # noqa: PLC0415 - see above

    return archive_mapped(container, plan, progress)


_ARCHIVE = Relabeling(_write_archive, _archive_pieces, _archive_mapped)


# --- plain pickles: the devices stand in files of torch within them -----------------------------------------


def _write_pickled(_container: Container, writer: CopyWriter, plan: Plan) -> bool:
    from inspector.remap.pickled.edits import pickled_edits  # noqa: PLC0415 - plain pickles are rare

    writer.source.measure()
    return writer.write_tar(pickled_edits(writer.source, plan, writer.progress))


def _pickled_pieces(
    _container: Container, source: Source, plan: Plan, progress: Progress
) -> tuple[Patch, ...]:
    from inspector.remap.pickled.edits import pickled_edits  # noqa: PLC0415 - as above

    edits = pickled_edits(source, plan, progress, in_place=True)
    growth = [len(edit.data) - (edit.end - edit.start) for edit in edits]
    if any(growth):
        raise ExportError(
            "the new device names are not as long as the old ones, and everything behind them would move",
            where=source.path,
            remedy=COPY,
        )
    return tuple(Patch(edit.start, edit.data) for edit in edits)


def _pickled_mapped(container: Container, plan: Plan, progress: Progress) -> Container:
    from inspector.remap.pickled.edits import mapped_pickled  # noqa: PLC0415 - as above

    return mapped_pickled(container, plan, progress)


PICKLED = Relabeling(_write_pickled, _pickled_pieces, _pickled_mapped, is_one_pickle=False)
RELABELINGS = {
    "zip": Relabeling(lambda _container, writer, _plan: writer.write_zip(), _zip_pieces, _pickle_mapped),
    "legacy": Relabeling(
        lambda _container, writer, _plan: writer.write_legacy(), _legacy_pieces, _pickle_mapped
    ),
    "tar": Relabeling(_write_tar, _tar_pieces, _tar_mapped),
    "torchscript": _ARCHIVE,
    "package": _ARCHIVE,
    "pickle": PICKLED,
    "joblib": PICKLED,
}
