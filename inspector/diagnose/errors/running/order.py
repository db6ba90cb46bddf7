"""Two lines in order when training is resumed: the model moves, then the optimizer is loaded."""

from __future__ import annotations

import re

from inspector.diagnose.errors.reading.pasted import Pasted
from inspector.records import dataclass

_LOAD = re.compile(r"\b(?:self\.)?\w{0,40}opt\w{0,20}(?:\[[^\]]{1,20}\])?\.load_state_dict\(", re.IGNORECASE)
_MOVE = re.compile(
    r"\b(?:self\.)?\w{0,40}(?:model|net|module|generator|discriminator)\w{0,20}\.(?:to|cuda|xpu)\(",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:-{1,6}>)? ?(?P<line>\d{1,7})[: |\u2502]{1,4}")
_MOST_CHARS = 200
_MOST_LINES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Disorder:
    """Two lines in the wrong order.

    Attributes:
        load: The line that loads the optimizer, without its number.
        move: The line below it that moves the model.
        load_line: Its number; 0 where the text has none.
        move_line: The same of the other.
    """

    load: str
    move: str
    load_line: int
    move_line: int


def find_disorder(pasted: Pasted) -> Disorder | None:
    """Find a line that loads an optimizer above the line that moves the model, in what a text shows."""
    load: tuple[str, int] | None = None
    for text in pasted.lines[:_MOST_LINES]:
        line, number = _numbered(text[:_MOST_CHARS])
        if _LOAD.search(line):
            load = (line, number)
        elif _MOVE.search(line):
            if load is None:
                return None
            return Disorder(load=load[0], move=line, load_line=load[1], move_line=number)
    return None


def _numbered(text: str) -> tuple[str, int]:
    """Split a line into its code and the number before it."""
    match = _NUMBER.match(text)
    if match is None:
        return text.strip(), 0
    return text[match.end() :].strip(), int(match["line"])
