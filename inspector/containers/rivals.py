"""Several records that pass for the pickle: which of them is read differs, so all of them are looked at.

torch compares names without case and takes the first of equals, Python's zipfile the last one, and a library
in C ends a name at a NUL. Scanners have been fooled with each of the three. What is shown is the first record
of just that name; what any of them would import and call is part of the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inspector.containers.zip_directory import Entry
from inspector.errors import CancelledError, CheckpointError
from inspector.pickles.notes import Note

_MOST_READ = 8
_WHAT = "several records pass for data.pkl, and programs differ in which they read"


def read_rivals(pickle: Entry, entries: Sequence[Entry], read: Callable[[Entry], object]) -> tuple[Note, ...]:
    """Read the rivals of the pickle, and return what is odd about that; nothing where there are none.

    Args:
        pickle: The record of the pickle.
        entries: All records of the zip.
        read: Reads the pickle in any of them, and keeps it among the programs of the file.

    Raises:
        CancelledError: The work was cancelled.
    """
    wanted = pickle.name.lower()
    passing = [entry for entry in entries if entry.name.partition("\0")[0].lower() == wanted]
    if len(passing) < 2:
        return ()
    notes = [Note("rival-record", 0, _WHAT)]
    rivals = [entry for entry in passing if entry != pickle]
    for entry in rivals[:_MOST_READ]:
        try:
            read(entry)
        except CancelledError:
            raise
        except CheckpointError as error:
            notes.append(Note("unread-rival", 0, f"one of them cannot be read: {error}"))
    if len(rivals) > _MOST_READ:
        notes.append(Note("unread-rival", 0, f"only {_MOST_READ} of {len(rivals):,} others were read"))
    return tuple(notes)
