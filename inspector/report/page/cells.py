"""Texts measured in the columns of a terminal, and cut to them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_ELLIPSIS = "\u2026"


def width_of(text: str) -> int:
    """Return the columns of a text in a terminal: two for East Asian characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return len(text) + sum(map(_excess, _NOT_ASCII.findall(text)))


@lru_cache(maxsize=4096)
def _excess(char: str) -> int:
    """Return the columns of a character beyond one; the same few (\u00d7, \u2026) stand in every line."""
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me"}:
        return -1
    return int(unicodedata.east_asian_width(char) in "WF")


def cut_end(text: str, most: int) -> str:
    """Cut a text to this many columns of a terminal, one at least."""
    most = max(most, 1)
    if width_of(text) <= most:
        return text
    text = text[:most]
    while width_of(text) >= most:
        text = text[:-1]
    return f"{text}{_ELLIPSIS}"


def cut_middle(text: str, most: int) -> str:
    """Cut the middle out of a name: its beginning and its end say most."""
    most = max(most, 1)
    if width_of(text) <= most:
        return text
    begin, end = text[: most // 2], text[-(most // 2) :]
    while width_of(begin) + width_of(end) >= most:
        begin, end = (begin[:-1], end) if width_of(begin) >= width_of(end) else (begin, end[1:])
    return f"{begin}{_ELLIPSIS}{end}"
