"""Large collections in pieces, so that no single call holds up the other threads.

Python's threads take turns between two steps of its interpreter. A call in C that goes over a million things
is one step, and so is the end of a collection that held the only references to them: a window stands still
until it is over, whichever thread does it.
"""

from __future__ import annotations

import sys
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar
from weakref import finalize

PIECE = 1 << 14
"""So many things take a call in C about a millisecond."""

_LOOKS, _LOOK_S = 100, 0.01
_REST_S, _LATER_S = 0.001, 0.3
"""What nobody needs ends late and slowly: beside it, others do what somebody waits for."""
_WIDTHS = ("i", "q")
_UNSHARED = 2
"""How many references there are to what one list holds and nobody else, while they are counted."""

T = TypeVar("T")


def in_pieces(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield all rows, some at a time."""
    for start in range(0, len(rows), PIECE):
        yield rows[start : start + PIECE]


def summed(values: Sequence[int]) -> Sequence[int]:
    """Return the sum of all values before each, and of all at the end; as machine words if they fit."""
    for width in _WIDTHS:
        sums = array(width)
        try:
            for some in _running_sums(values):
                sums.extend(some)
        except OverflowError:  # what a file says of sizes has no bound
            continue
        return sums
    return [one for some in _running_sums(values) for one in some]


def _running_sums(values: Sequence[int]) -> Iterator[list[int]]:
    last = 0
    for piece in in_pieces(values):
        sums = list(accumulate(piece, initial=last))
        last = sums.pop()
        yield sums
    yield [last]


def counted(values: Iterable[T]) -> dict[T, int]:
    """Count equal values."""
    counts: dict[T, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts


def are_distinct(values: Collection[Hashable]) -> bool:
    """Return whether no two are equal; in many small sets, since a large one grows and ends in one step."""
    if len(values) <= PIECE:
        return len(set(values)) == len(values)
    parts: list[set[Hashable]] = [set() for _ in range(len(values) // PIECE + 1)]
    for value in values:
        parts[hash(value) % len(parts)].add(value)
    count = sum(map(len, parts))
    while parts:
        del parts[-1]
    return count == len(values)


def sorted_by(rows: Sequence[T], key: Callable[[T], Any]) -> list[T]:
    """Return rows in the order of a key; equal ones stay in theirs, and so do rows that are in order."""
    keys = [key(row) for row in rows]
    if all(one <= other for one, other in pairwise(keys)):
        return list(rows)
    if len(rows) <= PIECE:
        return _by_keys(list(zip(keys, rows, strict=True)))
    # Each part takes what lies between two keys of a sample, so that no part is much larger than the others.
    sample = sorted([keys[place] for place in range(0, len(keys), PIECE // 16)])
    bounds = sample[:: max(len(sample) * PIECE // (2 * len(keys)), 1)]
    parts: list[list[tuple[Any, T]]] = [[] for _ in range(len(bounds) + 1)]
    for pair in zip(keys, rows, strict=True):
        parts[bisect_right(bounds, pair[0])].append(pair)
    let_go(keys)
    found: list[T] = []
    for part in parts:
        found += _by_keys(part)
        part.clear()
    return found


def _by_keys(pairs: list[tuple[Any, T]]) -> list[T]:
    pairs.sort(key=_first)
    return [row for _, row in pairs]


def _first(pair: tuple[Any, object]) -> Any:  # noqa: ANN401 - whatever rows are compared by
    return pair[0]


def let_go(*held: list[Any] | dict[Any, Any] | set[Any]) -> None:
    """Empty collections that nobody needs any more."""
    for one in held:
        if isinstance(one, list):
            while one:
                del one[-PIECE:]
        elif isinstance(one, dict):
            while one:
                one.popitem()
        else:
            while one:
                one.pop()


def let_go_after(owner: object, *held: object) -> None:
    """Let go of what an owner refers to in a thread once it has ended: the last first, large ones in pieces.

    A list may still grow until then: what is in it counts as if it was given.
    """
    finalize(owner, _begin_to_let_go, list(held)).atexit = False


def _begin_to_let_go(held: list[object]) -> None:
    from threading import Thread  # noqa: PLC0415 - commands end without it

    Thread(target=_let_go_of_each, args=(held,), name="checkpoint-end", daemon=True).start()


def _let_go_of_each(held: list[object]) -> None:
    time.sleep(_LATER_S)
    while held:
        for _ in range(_LOOKS):  # until the owner has ended, and what was behind it
            if sys.getrefcount(held[-1]) <= _UNSHARED:
                break
            time.sleep(_LOOK_S)
        one = held.pop()
        rows = list(one) if isinstance(one, tuple) else list(one.values()) if isinstance(one, dict) else []
        if isinstance(one, list):
            held += one
        del one
        while rows:
            del rows[-(PIECE >> 4) :]
            time.sleep(_REST_S)
