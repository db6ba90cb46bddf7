"""Letters as lines: enough of them for sizes and the names of devices, without any font of the system."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from inspector.desktop.thumbnail.canvas import Point

CAP_HEIGHT = 6.0
"""From the line that letters stand on to the top of a digit; `g` and others go two below."""

_GAP = 2.0
_BLANK = 2.5
_BOX = "0,2 3,2 3,6 0,6 0,2"
"""What stands for a character that is not here."""

# Each letter's lines as points x,y: x from its left edge, y from the top of the digits downwards.
_LETTERS = {
    "0": "1,0 3,0 4,1 4,5 3,6 1,6 0,5 0,1 1,0",
    "1": "0,1 1.6,0 1.6,6",
    "2": "0,1 1,0 3,0 4,1 4,2 0,6 4,6",
    "3": "0,1 1,0 3,0 4,1 4,2 3,3 2,3|3,3 4,4 4,5 3,6 1,6 0,5",
    "4": "3,6 3,0 0,4 4,4",
    "5": "4,0 0,0 0,3 1,2.6 3,2.6 4,3.6 4,5 3,6 1,6 0,5",
    "6": "4,1 3,0 1,0 0,1 0,5 1,6 3,6 4,5 4,3.6 3,2.7 1,2.7 0,3.6",
    "7": "0,0 4,0 1.4,6",
    "8": "1,3 0,2 0,1 1,0 3,0 4,1 4,2 3,3 1,3 0,4 0,5 1,6 3,6 4,5 4,4 3,3",
    "9": "0,5 1,6 3,6 4,5 4,1 3,0 1,0 0,1 0,2.4 1,3.3 3,3.3 4,2.4",
    "a": "0.4,2 3,2 4,3 4,6 1,6 0,5 1,4 4,4",
    "b": "0,0 0,6 3,6 4,5 4,3 3,2 0,2",
    "c": "4,2 1,2 0,3 0,5 1,6 4,6",
    "d": "4,0 4,6 1,6 0,5 0,3 1,2 4,2",
    "e": "0,4 4,4 4,3 3,2 1,2 0,3 0,5 1,6 3.6,6",
    "f": "3,0 2,0 1,1 1,6|0,2 2.6,2",
    "g": "4,6 1,6 0,5 0,3 1,2 4,2 4,7 3,8 0.4,8",
    "h": "0,0 0,6|0,2 3,2 4,3 4,6",
    "i": "0,2 0,6|0,0.2",
    "j": "1,2 1,7 0,8|1,0.2",
    "k": "0,0 0,6|3.4,2 0,4.4|1.2,3.6 3.6,6",
    "l": "0,0 0,6",
    "m": "0,6 0,2 2,2 3,3 3,6|3,3 4,2 5,2 6,3 6,6",
    "n": "0,6 0,2 3,2 4,3 4,6",
    "o": "1,2 3,2 4,3 4,5 3,6 1,6 0,5 0,3 1,2",
    "p": "0,8 0,2 3,2 4,3 4,5 3,6 0,6",
    "q": "4,8 4,2 1,2 0,3 0,5 1,6 4,6",
    "r": "0,6 0,2|0,3 1,2 2.8,2",
    "s": "4,2 1,2 0,3 1,4 3,4 4,5 3,6 0,6",
    "t": "1,0.4 1,5 2,6 3,6|0,2 2.8,2",
    "u": "0,2 0,5 1,6 4,6|4,2 4,6",
    "v": "0,2 2,6 4,2",
    "w": "0,2 1.4,6 3,3 4.6,6 6,2",
    "x": "0,2 3.6,6|3.6,2 0,6",
    "y": "0,2 2,6|4,2 1,8",
    "z": "0,2 4,2 0,6 4,6",
    "B": "0,0 0,6 3,6 4,5 4,4 3,3 0,3|3,3 3.8,2.2 3.8,0.9 3,0 0,0",
    "E": "4,0 0,0 0,6 4,6|0,3 3,3",
    "G": "4,1 3,0 1,0 0,1 0,5 1,6 3,6 4,5 4,3.2 2.4,3.2",
    "K": "0,0 0,6|4,0 0,4|1.3,2.8 4,6",
    "M": "0,6 0,0 2.5,3.6 5,0 5,6",
    "P": "0,6 0,0 3,0 4,1 4,2 3,3 0,3",
    "T": "0,0 4,0|2,0 2,6",
    ".": "0,6",
    ":": "0,2.8|0,6",
    "-": "0,4 2.6,4",
    "_": "0,6.6 4,6.6",
    "+": "0,4 3.6,4|1.8,2.2 1.8,5.8",
}


def width_of(text: str) -> float:
    """Return how wide a text is, in the units of `CAP_HEIGHT`."""
    return max(sum(_advance(char) for char in text) - _GAP, 0.0)


def fit(text: str, most: float) -> str:
    """Cut a text to a width, with a full stop for what is missing."""
    if width_of(text) <= most:
        return text
    while text and width_of(f"{text}.") > most:
        text = text[:-1]
    return f"{text}." if text else ""


def lines_of(text: str, place: Point, scale: float) -> Iterator[list[Point]]:
    """Return the lines of a text.

    Args:
        text: The text.
        place: The upper left corner of its first digit.
        scale: The size of a unit.
    """
    x, y = place
    for char in text:
        if char != " ":
            for line in _drawn(char).split("|"):
                points = (point.partition(",") for point in line.split())
                yield [(x + float(left) * scale, y + float(down) * scale) for left, _, down in points]
        x += _advance(char) * scale


def _drawn(char: str) -> str:
    return _LETTERS.get(char) or _LETTERS.get(char.lower(), _BOX)


@lru_cache(maxsize=256)
def _advance(char: str) -> float:
    if char == " ":
        return _BLANK
    return max(float(point.partition(",")[0]) for point in _drawn(char).replace("|", " ").split()) + _GAP
