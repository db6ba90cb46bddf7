"""Keys of dictionaries that torch chokes on: an unpickler hashes every key, and this program none.

A list has no hash, so that loading raises. The hash of a tuple is that of its items: one that is nested a
million deep exhausts the stack of the process, one whose halves are the same tuple again and again takes
for ever. Nothing here recurses, and each tuple is looked through once, however often it is a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import cast

from inspector.model.arguments.kinds import UNHASHABLE_KINDS, kind_of
from inspector.model.checkpoint import KeyFault
from inspector.pickles.values import ByteArray, Call, Dict, Set, Value

_MODULUS = 2**61 - 1  # Python's hash of a larger integer is what is left when it is divided by this
_MOST_ALIKE = 5000

_SHORT_BITS = 60  # smaller integers hash to themselves
_SHORT_BITS_SHIFT = 9  # how much of a longer one is a part's worth of work
_MOST_DEPTH = 1000
_MOST_HASHES = 10_000_000
_SHORT = 8
_LOOKED_INTO = frozenset({list, tuple, Dict, Set, Call, ByteArray})


class KeyFaults:
    """Looks for bad keys in the dictionaries of one checkpoint, whose values stay alive meanwhile."""

    def __init__(self, look: Callable[[int], None] = lambda _: None) -> None:
        """Begin; `look` counts the parts looked at."""
        self._look = look
        self.odd: list[Value] = []  # keys of the last dictionary that are no plain values
        # For each tuple that is done, how deep it is and how many hashes it takes, by its `id`.
        self._done: dict[int, tuple[int, int]] = {}

    def find(self, pairs: Iterable[tuple[Value, Value]]) -> KeyFault | None:
        """Return what the first bad key of a dictionary does to torch; None where all are good."""
        hashes = []
        self.odd = []
        for key, _ in pairs:
            kind = type(key)
            if kind in _LOOKED_INTO:
                self.odd.append(key)
                fault = self._fault_of(key)
                if fault is not None:
                    return fault
            elif kind is int and cast("int", key).bit_length() > _SHORT_BITS:
                self._look(1 + (cast("int", key).bit_length() >> _SHORT_BITS_SHIFT))
                hashes.append(cast("int", key) % _MODULUS)
        return KeyFault.ALIKE if _most_alike(hashes) > _MOST_ALIKE else None

    def _fault_of(self, key: Value) -> KeyFault | None:
        if not isinstance(key, tuple):
            return KeyFault.UNHASHABLE if _is_unhashable(key) else None
        if len(key) <= _SHORT and not any(type(item) in _LOOKED_INTO for item in key):
            return None  # a pair of numbers, as nearly all are; of millions nothing is kept
        fault = self._measure(key)
        if fault is not None:
            return fault
        return KeyFault.ENDLESS if self._done[id(key)][1] > _MOST_HASHES else None

    def _measure(self, key: tuple[Value, ...]) -> KeyFault | None:
        """Count the hashes of a tuple and of all below it; give what makes that impossible, or None."""
        done = self._done
        stack = [(key, 1)]
        while stack:
            items, level = stack[-1]
            self._look(1 + len(items))
            if id(items) in done:
                stack.pop()
                continue
            inside = {id(item): item for item in items if isinstance(item, tuple)}
            missing = [(item, level + 1) for number, item in inside.items() if number not in done]
            depth = 1 + max((done[number][0] for number in inside if number in done), default=0)
            if max(depth, level) > _MOST_DEPTH:
                return KeyFault.DEEP
            if missing:
                stack.extend(missing)
                continue
            if any(_is_unhashable(item) for item in items):
                return KeyFault.UNHASHABLE
            hashes = len(items) + sum(done[id(item)][1] for item in items if isinstance(item, tuple))
            done[id(items)] = depth, min(hashes, _MOST_HASHES + 1)
        return None


def _most_alike(hashes: list[int]) -> int:
    """Count how often the most frequent of them occurs, without hashing any."""
    if len(hashes) <= _MOST_ALIKE:
        return 0
    hashes.sort()
    return max(len(list(same)) for _, same in groupby(hashes))


def _is_unhashable(value: Value) -> bool:
    if isinstance(value, Call):
        return kind_of(value) in UNHASHABLE_KINDS
    return isinstance(value, list | Dict | ByteArray) or (isinstance(value, Set) and not value.frozen)
