"""From a file to a container: the one way in, whatever the format."""

from __future__ import annotations

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container
from inspector.containers.folders.belonging import whole_of
from inspector.containers.folders.paths import opened
from inspector.containers.formats import find_format
from inspector.containers.nested import read_nested
from inspector.containers.notes import Note, NoteKind
from inspector.containers.programs import Programs
from inspector.containers.source import Source
from inspector.containers.unread import programs_on_errors, within_bounds
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.oddities import Oddity, OddityKind
from inspector.progress import Progress
from inspector.records import replace


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
        container = form.reader_for(file)(file, limits, progress)
        if form.read_rival(file, within_bounds(limits), progress):
            container = _as_ambiguous(container)
        read_nested(file.programs, within_bounds(limits), progress)
        container = _as_part(container)
        return replace(container, programs=file.programs.all(), stamp=file.stamp)


def _as_part(container: Container) -> Container:
    """Return a container with a note of what it is part of, if that lies beside it."""
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
