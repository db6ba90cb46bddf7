"""A file of one rank without its `.metadata`: what was saved is there, and what it is called is not."""

from __future__ import annotations

from inspector.containers.container import Container
from inspector.containers.dcp.values import Values
from inspector.containers.dcp.zips import Span, find_row
from inspector.containers.notes import Note, NoteKind
from inspector.containers.source import Source
from inspector.errors import CancelledError, CheckpointError, DamagedError
from inspector.limits import Limits
from inspector.pickles.values import PersistentId, Value
from inspector.progress import Progress
from inspector.units import format_count, format_nbytes


def read_alone(source: Source, limits: Limits, progress: Progress) -> Container:
    """Read a file of one rank as a list of what stands in it."""
    row = find_row(source, limits.counted(progress.advance).look)
    if not row.spans:
        raise DamagedError(
            "nothing in this file of a distributed checkpoint is whole",
            where=source.path,
            remedy="fetch the folder that it is from again",
        )
    progress.start("reading", len(row.spans), is_counted=True)
    values = Values(source.programs, limits, progress)
    unread: list[str] = []
    root: list[Value] = [_read(values, source, number, span, unread) for number, span in enumerate(row.spans)]
    notes = [Note(NoteKind.ALONE, (format_count(len(root), "saved object"),))]
    if row.lost:
        notes.append(Note(NoteKind.STRAY_BYTES, (format_nbytes(row.lost),)))
        source.programs.miss("bytes between the saved objects", "nothing tells what they are")
    if unread:
        notes.append(Note(NoteKind.UNREAD_VALUES, (format_count(len(unread), "value"), "One", unread[0])))
    return Container(
        path=source.path,
        format="distcp",
        file_nbytes=source.file_nbytes,
        root=root,
        storage_ids=values.storage_ids,
        stored=values.stored,
        notes=tuple(notes),
        refusal=f"NotADirectoryError: [Errno 20] Not a directory: '{source.path}/.metadata'",
    )


def _read(values: Values, source: Source, number: int, span: Span, unread: list[str]) -> Value:
    try:
        return values.read(source, 0, span.offset, span.nbytes, str(number))
    except CancelledError:
        raise
    except CheckpointError as error:
        unread.append(str(error))
        source.programs.miss(f"value {number}", error.what)
        return PersistentId(("value", str(number)))
