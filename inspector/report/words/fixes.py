"""What stands before a line that mends something, worded once for the window and the command line."""

from __future__ import annotations

from typing import Literal

RemedyKind = Literal["load", "trusted", "code", "copy", "weights", "in-place", "recover"]
"""In the order in which they are offered: the shortest first, and the file itself is changed last."""

BEFORE: dict[RemedyKind, str] = {
    "load": "Load it with",
    "trusted": "Load it, if you trust that code, with",
    "code": "Print the code that loads it with",
    "copy": "Write a copy with",
    "weights": "Write its weights alone, which load anywhere, with",
    "in-place": "Change the file itself, for code that cannot be edited (remap --undo takes it back), with",
    "recover": "Fetch the file again, or save what is intact with",
}
"""What the line after it is for."""


def before(kind: RemedyKind, *, is_first: bool) -> str:
    """Return what stands before a line; all but the first are other ways to the same end."""
    words = BEFORE[kind]
    return f"{words}:" if is_first else f"Or {words[:1].lower()}{words[1:]}:"
