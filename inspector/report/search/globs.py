"""Names against patterns with `*` and `?`, in one pass over each name whatever the pattern is."""

from __future__ import annotations

import re
from functools import cache

Span = tuple[int, int]
_BOUND = r"(?:^|(?<=[/.]))"


class Glob:
    """A pattern that covers a name from the start of one of its steps to its end.

    A regular expression with several `.*` would take the square of a name's length and worse; pieces between
    the stars are looked up one after the other instead, each as far to the left as it goes.
    """

    def __init__(self, pattern: str) -> None:
        """Cut a pattern into what stands between its stars."""
        pieces = pattern.split("*")
        self.literal = max(pattern.replace("?", "*").split("*"), key=len)
        """What stands in every name that it covers."""
        self._first = re.compile(_BOUND + _plain(pieces[0]), re.DOTALL)
        self._middle = [re.compile(_plain(piece), re.DOTALL) for piece in pieces[1:-1] if piece]
        self._last = re.compile(_plain(pieces[-1]), re.DOTALL)
        self._last_length = len(pieces[-1])
        self._has_stars = len(pieces) > 1

    def spans(self, name: str) -> list[Span] | None:
        """Return where the pieces of the pattern stand in a name; None where it is not covered."""
        end = len(name) - self._last_length
        if not self._has_stars:
            whole = self._first.match(name, end) if end >= 0 else None
            return None if whole is None else [whole.span()]
        last = self._last.match(name, end) if end >= 0 else None
        found = self._first.search(name)
        spans = []
        for piece in self._middle:
            if found is None:
                break
            spans.append(found.span())
            found = piece.search(name, found.end())
        if last is None or found is None or found.end() > end:
            return None
        return [span for span in (*spans, found.span(), last.span()) if span[0] < span[1]]


def has_wildcards(text: str) -> bool:
    """Return whether a word is a pattern."""
    return "*" in text or "?" in text


@cache
def glob_of(pattern: str) -> Glob:
    """Return a pattern, cut once."""
    return Glob(pattern)


def _plain(piece: str) -> str:
    return "".join("." if char == "?" else re.escape(char) for char in piece)
