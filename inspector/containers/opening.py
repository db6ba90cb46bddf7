"""From a path to a container: the one way in, whatever the format, and whether it is a file or a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from inspector.containers.belonging import whole_of
from inspector.containers.collector import collector_paused
from inspector.containers.container import Container, Extents
from inspector.containers.formats import find_format
from inspector.containers.notes import Note, NoteKind
from inspector.containers.packed import looked_through
from inspector.containers.programs import Programs, within_bounds
from inspector.containers.source import FileSource, Source, Stamp, stamp_of
from inspector.containers.unread import programs_on_errors, read_nested
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.oddities import Oddity, OddityKind
from inspector.progress import Progress
from inspector.records import replace

_METADATA = ".metadata"
_INDEX = ".index.json"
_LATEST, _ITERATION = "latest", "latest_checkpointed_iteration.txt"
_MOST_NBYTES = 1024
_MARKS: tuple[tuple[str, str], ...] = ((".distcp", _METADATA),)
"""Endings of files that cannot be read alone, each with the name of what must lie beside them."""


def open_path(path: str, limits: Limits = DEFAULT_LIMITS) -> Source:
    """Open a file for reading, looking through gzip, or a folder."""
    if os.path.isdir(path):  # noqa: PTH112 - the path is a text, which messages show as it was given
        from inspector.containers.folder import Folder  # noqa: PLC0415 - most are files

        return Folder(path, path, read=read_container)
    folder, name = os.path.split(path)
    if stands_for_folder(folder, name):
        from inspector.containers.folder import Folder  # noqa: PLC0415 - as above

        return Folder(path, folder or os.curdir, name, read_container)
    return looked_through(FileSource(path), limits)


def stamp_at(path: str) -> Stamp | None:
    """Return what changes when a file, or one of a folder's, does; None if there is none."""
    try:
        if os.path.isdir(path) or stands_for_folder(*os.path.split(path)):  # noqa: PTH112 - bytes that are no text stay
            with open_path(path) as folder:
                return folder.stamp
        return stamp_of(os.stat(path))  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return None


def stands_for_folder(folder: str, name: str) -> bool:
    """Return whether a file means the whole folder that it is in."""
    if name.endswith((_METADATA, _INDEX)) and os.path.isfile(os.path.join(folder, name)):  # noqa: PTH113, PTH118 - as above
        return True
    if name == _ITERATION and _lies(folder, name):
        return True
    if name == _LATEST:
        return _names_folder(folder)
    return any(name.endswith(ending) and _lies(folder, beside) for ending, beside in _MARKS)


def _names_folder(folder: str) -> bool:
    try:
        with open(os.path.join(folder, _LATEST), "rb") as file:  # noqa: PTH118, PTH123 - as above
            tag = file.read(_MOST_NBYTES).decode().strip()
    except (OSError, UnicodeDecodeError):
        return False
    is_plain = bool(tag) and "\0" not in tag and tag == os.path.basename(tag)  # noqa: PTH119 - as above
    return is_plain and os.path.isdir(os.path.join(folder, tag))  # noqa: PTH112, PTH118 - as above


def _lies(folder: str, name: str) -> bool:
    return os.path.isfile(os.path.join(folder, name))  # noqa: PTH113, PTH118 - as above


@contextmanager
def opened(source: Source | str, limits: Limits = DEFAULT_LIMITS) -> Iterator[Source]:
    """Yield a source as it is, or the file of this path, which is open meanwhile."""
    if isinstance(source, Source):
        yield source
        return
    with open_path(source, limits) as file:
        yield file


def read_container(
    source: Source | str, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None
) -> Container:
    """Take a source apart, or the file of a path, which is closed again before this returns."""
    progress = progress or Progress()
    progress.start("reading")
    with (
        collector_paused(),
        opened(source, limits) as file,
        programs_on_errors(file, limits, progress),
    ):
        file.programs = Programs()
        if file.is_cut:
            file.programs.miss("further files of the folder", "it has more than are listed")
        form = find_format(file, limits, progress)
        form.check(file)
        container = form.read(file, limits, progress)
        if form.read_rival(file, within_bounds(limits), progress):
            container = _as_ambiguous(container)
        read_nested(file.programs, within_bounds(limits), progress)
        container = _as_part(container)
        return replace(container, programs=file.programs.all(), stamp=file.stamp)


def _as_part(container: Container) -> Container:
    whole = None if container.parts else whole_of(container.path)
    return (
        container
        if whole is None
        else replace(container, notes=(*container.notes, Note(NoteKind.PART_OF, (whole,))))
    )


def _as_ambiguous(container: Container) -> Container:
    """Return a container of which programs read different things, since it answers to two formats."""
    container = replace(container, notes=(*container.notes, Note(NoteKind.TWO_FORMATS)))
    if container.stream is None:
        return container
    oddities = (*container.stream.oddities, Oddity(OddityKind.TWO_FORMATS, 0))
    return replace(container, stream=replace(container.stream, oddities=oddities))


def read_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    """Take a file apart and find the bytes of each storage.

    Opening a file asks no more than whether there are enough bytes. To save what is left of a damaged file,
    or to check a file, takes more: which record, how packed, and what is wrong with the others.
    """
    with programs_on_errors(source, limits, progress):
        form = find_format(source, limits, progress)
        form.check(source)
        return form.extents(source, limits, progress)
