"""Names out of a file or a message as parts of a sentence: few, escaped and cut."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.units import cut_text, escape_text, format_count

_MOST_NAMED = 6
_MOST_CHARS = 120


def listed(items: Sequence[str], noun: str = "") -> str:
    """Return a few names out of a file or a message, escaped and cut: `a, b and 3 more`."""
    shown = [escape_text(cut_text(item, _MOST_CHARS)) for item in items[:_MOST_NAMED]]
    more = len(items) - len(shown)
    text = ", ".join(shown)
    if more > 0:
        text += f" and {format_count(more, noun)}" if noun else f" and {more:,} more"
    return text


def plain(text: str) -> str:
    """Return a part of a message so that it can be shown."""
    return escape_text(cut_text(text, _MOST_CHARS))
