"""Rows of both checkpoints that stand at the same place, or at places that mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Left(NamedTuple):
    """The rows that have no partner yet, by number, in their order."""

    a: list[int]
    b: list[int]


def pair_names(a: Sequence[str], b: Sequence[str], left: Left) -> tuple[list[tuple[int, int]], Left]:
    """Pair rows of equal names; return the pairs, in the order of the first, and what is left.

    A name that stands twice is paired from its last place on: that is the one that loading keeps.

    Args:
        a: The names of the rows of the first side, by number.
        b: Those of the second.
        left: The rows that are to be paired.
    """
    places: dict[str, int] = {}
    earlier: dict[str, list[int]] = {}
    for number in left.b:
        name = b[number]
        before = places.get(name)
        if before is not None:
            earlier.setdefault(name, []).append(before)
        places[name] = number
    pairs = []
    alone = []
    for number in reversed(left.a):
        name = a[number]
        partner = places.pop(name, None)
        if partner is None:
            alone.append(number)
            continue
        pairs.append((number, partner))
        more = earlier.get(name)
        if more:
            places[name] = more.pop()
    pairs.reverse()
    alone.reverse()
    return pairs, Left(alone, without(left.b, (partner for _, partner in pairs)))


def unique_names(names: Sequence[str], rows: Iterable[int]) -> dict[str, int]:
    """Return the rows by their names; a name that stands twice belongs to nobody."""
    found: dict[str, int] = {}
    twice = set()
    for row in rows:
        if found.setdefault(names[row], row) != row:
            twice.add(names[row])
    for name in twice:
        del found[name]
    return found


def without(rows: list[int], taken: Iterable[int]) -> list[int]:
    """Return rows but for those that are taken."""
    gone = set(taken)
    return [row for row in rows if row not in gone] if gone else rows
