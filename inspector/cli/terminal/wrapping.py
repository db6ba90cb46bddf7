"""Sentences broken into lines by the columns that they take, not by their characters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.report.page import width_of

_PROGRAM = "checkpoint-inspector "
_COMMAND = re.compile(rf" ({_PROGRAM}.+?(?:[,;](?= )|$))")
_HANG = "  "
LEAST = 12
"""Columns that a sentence is given even where its indent leaves less."""


def wrap(text: str, width: int) -> list[str]:
    """Break a text at blanks; a word that is wider than a line is broken where the line ends."""
    lines: list[str] = []
    line, used, width = "", 0, max(width, LEAST)
    for word in text.split(" "):
        for part in _pieces(word, width):
            size = width_of(part)
            if line and used + 1 + size > width:
                lines.append(line)
                line, used = part, size
            else:
                line, used = (f"{line} {part}", used + 1 + size) if line else (part, size)
    return [*lines, line] if line else lines


def wrap_message(text: str, width: int) -> str:
    """Break a message at blanks, the further lines indented; what is copied from it stays whole.

    A word or a command that is wider than a line stands on a line of its own, and the terminal breaks it:
    what is copied from there is in one piece.
    """
    lines = [""]
    for part in filter(None, _COMMAND.split(text)):
        for word in [part] if part.startswith(_PROGRAM) else part.strip(" ").split(" "):
            room = width - width_of(lines[-1]) - 1
            if not lines[-1]:
                lines[-1] = word
            elif width_of(word) <= room:
                lines[-1] += f" {word}"
            else:
                lines.append(f"{_HANG}{word}")
    return "\n".join(lines)


def _pieces(word: str, width: int) -> Iterator[str]:
    if width_of(word) <= width:
        yield word
        return
    part, used = "", 0
    for char in word:
        size = width_of(char)
        if used + size > width:
            yield part
            part, used = "", 0
        part, used = part + char, used + size
    yield part
