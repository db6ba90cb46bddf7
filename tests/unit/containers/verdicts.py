"""Tables of hostile files: what is said of each, or in which words it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from inspector.containers.notes import NoteKind
from inspector.errors import CheckpointError
from inspector.model.checkpoint import Checkpoint
from inspector.safety.verdict import judge

Open = Callable[[bytes], Checkpoint]


def kinds(found: Checkpoint) -> set[NoteKind]:
    """Return the kinds of the notes about a file."""
    return {note.kind for note in found.notes}


def judged_otherwise(
    files: Mapping[str, tuple[bytes, str, NoteKind | None]], opened: Open
) -> dict[str, tuple[str, set[NoteKind]]]:
    """Return what is said of files that do not get their verdict, or lack their note."""
    said = {}
    for name, (data, verdict, note) in files.items():
        found = opened(data)
        seen = judge(found).verdict
        if seen != verdict or (note is not None and note not in kinds(found)):
            said[name] = seen, kinds(found)
    return said


def refused_otherwise(files: Mapping[str, tuple[bytes, str]], opened: Open) -> dict[str, str]:
    """Return what is said of files that are not refused in their words; one that is opened fails at once."""
    said = {}
    for name, (data, words) in files.items():
        with pytest.raises(CheckpointError) as caught:
            opened(data)
        if words not in caught.value.what:
            said[name] = caught.value.what
    return said
