"""Code and graphs within archives: two of them can hold the same weights and compute different things."""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.containers.zip.directory import read_directory
from inspector.containers.zip.records import read_zip_record
from inspector.diff.records import RecordChange
from inspector.diff.side import Side
from inspector.errors import CheckpointError
from inspector.limits import DEFAULT_LIMITS
from inspector.progress import Progress

_ENDINGS = (".py", ".json", ".txt", ".cpp", ".h")
_MOST_NBYTES = 64 << 20


def compare_records(a: Side, b: Side, progress: Progress) -> tuple[RecordChange, ...]:
    """Return the records of code and graphs that are not the same in two archives of one format.

    Raises:
        CancelledError: The work was cancelled.
    """
    if a.checkpoint.format != b.checkpoint.format or not format_of(a.checkpoint.format).has_code:
        return ()
    one, other = _read(a, progress), _read(b, progress)
    found = []
    for name in dict.fromkeys((*one, *other)):
        if name not in other:
            found.append(RecordChange(name, "removed"))
        elif name not in one:
            found.append(RecordChange(name, "added"))
        elif one[name] != other[name]:
            found.append(RecordChange(name, "changed"))
    return tuple(found)


def _read(side: Side, progress: Progress) -> dict[str, bytes | str]:
    """Return the contents of records by their names, without the folder that all are in."""
    found: dict[str, bytes | str] = {}
    left = _MOST_NBYTES
    for entry in read_directory(side.source, DEFAULT_LIMITS, progress).entries:
        progress.advance()
        if not entry.name.endswith(_ENDINGS):
            continue
        name = entry.name.partition("/")[2]
        try:
            found[name] = read_zip_record(side.source, entry, left)
        except CheckpointError:
            found[name] = f"unread, CRC {entry.crc:08x}"
        left -= min(entry.nbytes, left)
    return found
