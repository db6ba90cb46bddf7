"""Keys of one container that read alike, each with what tells it apart in a path."""

from __future__ import annotations

from inspector.model.checkpoint import Key, OddKey


class TwinText(str):
    """A key that reads like another one beside it, as 1 and "1" do, and how many such stand before it."""

    __slots__ = ("turn",)
    turn: int


class TwinOddKey(OddKey):
    """The same of a key that is shown by its short text."""

    __slots__ = ("turn",)
    turn: int


class TwinNumber(int):
    """The same of a number."""

    turn: int


Twin = TwinText | TwinOddKey | TwinNumber


def twin_of(key: Key, turn: int) -> Twin:
    """Return a key that is equal to `key`, and whose step in a path is told apart by `turn`."""
    kind: type[Twin] = (
        TwinNumber if isinstance(key, int) else TwinOddKey if isinstance(key, OddKey) else TwinText
    )
    twin = kind(key)
    twin.turn = turn
    return twin
