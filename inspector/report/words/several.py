"""What became of several files, in one line."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.units import format_count

_WORDS: dict[str, dict[int, tuple[str, str]]] = {
    "check": {
        0: ("loads and is safe", "load and are safe"),
        1: ("does not load or is not safe", "do not load or are not safe"),
    },
    "script": {
        0: ("is safe and works with the script", "are safe and work with the script"),
        1: ("does not work or is not safe", "do not work or are not safe"),
    },
    "verify": {0: ("is as it should be", "are as they should be"), 1: ("differs", "differ")},
    "remap": {
        0: ("was written", "were written"),
        1: ("was written without all of the model", "were written without all of the model"),
    },
    "undo": {0: ("is as it was before", "are as they were before")},
    "dry-run": {0: ("can be written", "can be written")},
    "snippet": {0: ("has its code above", "have their code above")},
}
_FAILED = {
    2: ("was refused", "were refused"),
    3: ("could not be read", "could not be read"),
    4: ("could not be written", "could not be written"),
}


def summary(command: str, codes: Mapping[int, int]) -> str:
    """Return how many files ended with which exit code of a command, the good ones first."""
    words = _WORDS[command] | _FAILED
    parts = [f"{count:,} {words[code][count != 1]}" for code, count in sorted(codes.items())]
    return f"{format_count(sum(codes.values()), 'file')}: {', '.join(parts)}"
