"""Several records that pass for the pickle: which of them is read differs, so all of them are looked at.

torch compares names without case and takes the first of equals, Python's zipfile the last one, and a library
in C ends a name at a NUL. Scanners have been fooled with each of the three. What is shown is the first record
of just that name; what any of them would import and call is part of the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inspector.containers.zip_directory import Entry
from inspector.errors import CancelledError, CheckpointError
from inspector.pickles.machine import Stream
from inspector.pickles.notes import Note
from inspector.records import replace

_MOST_READ = 8
_WHAT = "several records pass for data.pkl, and programs differ in which they read"


def with_rivals(
    stream: Stream, pickle: Entry, entries: Sequence[Entry], read: Callable[[Entry], Stream]
) -> Stream:
    """Give the pickle's stream with what its rivals would import and call; as it is where there are none.

    Args:
        stream: What was read of the pickle.
        pickle: Its record.
        entries: All records of the zip.
        read: Reads the pickle in any of them.

    Raises:
        CancelledError: The work was cancelled.
    """
    wanted = pickle.name.lower()
    passing = [entry for entry in entries if entry.name.partition("\0")[0].lower() == wanted]
    if len(passing) < 2:
        return stream
    notes = [*stream.notes, Note("rival-record", 0, _WHAT)]
    rivals = [entry for entry in passing if entry != pickle]
    for entry in rivals[:_MOST_READ]:
        try:
            other = read(entry)
        except CancelledError:
            raise
        except CheckpointError as error:
            notes.append(Note("unread-rival", 0, f"one of them cannot be read: {error}"))
        else:
            stream = _joined(stream, other)
    if len(rivals) > _MOST_READ:
        notes.append(Note("unread-rival", 0, f"only {_MOST_READ} of {len(rivals):,} others were read"))
    return replace(stream, notes=tuple(notes))


def _joined(stream: Stream, other: Stream) -> Stream:
    known = {node.dotted for node in stream.globals}
    return replace(
        stream,
        globals=stream.globals + tuple(node for node in other.globals if node.dotted not in known),
        calls=stream.calls + other.calls,
        opcodes=stream.opcodes | other.opcodes,
    )
