"""Names of files and tensors as parts of a note: few, escaped and cut."""

from __future__ import annotations

from collections.abc import Collection

from inspector.units import cut_text, escape_text, format_count

_MOST_NAMED = 3
_MOST_CHARS = 80


def listed(names: Collection[str]) -> str:
    """Return the first few names, and how many more there are: `a, b, c and 3 more`."""
    found = list(names)
    more = len(found) - _MOST_NAMED
    return ", ".join(map(shown, found[:_MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def shown(name: str) -> str:
    """Return a name that a file brought so that it can be shown."""
    return escape_text(cut_text(name, _MOST_CHARS))


def are_files(count: int) -> str:
    """Return the beginning of a sentence about files: `1 file is`, `2 files are`."""
    return f"{format_count(count, 'file')} {'is' if count == 1 else 'are'}"
