"""Sets of names, written as one text: they are long, and one name a line would hide what they are about."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())
