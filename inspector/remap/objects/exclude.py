"""Entries left out of the objects of a checkpoint, by the paths that `show` gives them.

What stands in a dictionary, a list or an object's attributes can be left out; an item of a tuple or an
argument of a call cannot, since others would take its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from inspector.errors import PlanError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.checkpoint import Key
from inspector.model.values.children import attributes_of, children_of, mapping_pairs
from inspector.model.values.text import step_text
from inspector.pickles.values import Call, Dict, Value
from inspector.remap.convert.patterns import Patterns
from inspector.remap.objects.views import filled_pairs

_MOST_AGAIN = 100_000
"""Entries looked at once more, by another path to what holds them."""


Owner = list[Value] | Dict | Call


class _Place(NamedTuple):
    """Where a child stands in the mapping or list that holds it."""

    owner: Owner
    number: int


class Gone(NamedTuple):
    """An entry that is left out.

    Attributes:
        path: Where it stood.
        same_as: Where a pattern named it, if that was at another place: what holds it is one object in both.
    """

    path: str
    same_as: str | None = None


def leave_out(root: Value, patterns: Patterns, limits: Limits = DEFAULT_LIMITS) -> list[Gone]:
    """Take the entries that patterns cover out of a value, and return every path that they had.

    An object that several others share stays shared, so what is taken out of it is gone wherever it stood.
    What is nested too deeply to be shown has no path, and stays.
    """
    drops: dict[tuple[int, int], str] = {}
    owners: dict[int, Owner] = {}
    gone: list[Gone] = []

    def choose(path: str, place: _Place | None) -> bool:
        if not patterns.name((path,)):  # what is above was looked at before
            return False
        if place is None:
            raise PlanError(
                "an item of a tuple or an argument cannot be left out",
                where=path,
                remedy="name what holds it",
            )
        owners[id(place.owner)] = place.owner
        drops.setdefault((id(place.owner), place.number), path)
        return True

    def name(path: str, place: _Place | None) -> bool:
        first = None if place is None else drops.get((id(place.owner), place.number))
        if first is not None:
            gone.append(Gone(path, None if patterns.name((path,)) else first))
        return first is not None

    _visit(root, limits, choose)
    if drops:
        _visit(root, limits, name)
    for owner in owners.values():
        _remove(owner, {number for found, number in drops if found == id(owner)})
    return gone


def _visit(root: Value, limits: Limits, is_gone: Callable[[str, _Place | None], bool]) -> None:
    """Go through all paths; what is shared has several. Nothing below what is gone is looked at."""
    todo: list[tuple[str, tuple[int, ...], Value]] = [("", (id(root),), root)]
    entered: set[int] = set()
    again = 0
    while todo:
        prefix, above, value = todo.pop()
        children = _children(value)
        if id(value) in entered:
            again += len(children)
            if again > _MOST_AGAIN:
                raise PlanError(
                    "the objects are shared so often that their paths cannot all be visited",
                    remedy="export without --exclude",
                )
        entered.add(id(value))
        below = []
        for key, child, place in children:
            path = prefix + step_text(key)
            if is_gone(path, place) or len(above) > limits.depth or id(child) in above:
                continue
            if children_of(child):
                below.append((f"{path}/", (*above, id(child)), child))
        todo += reversed(below)


def _remove(owner: Owner, numbers: set[int]) -> None:
    if isinstance(owner, list):
        owner[:] = [item for number, item in enumerate(owner) if number not in numbers]
        return
    if isinstance(owner, Dict):
        owner.pairs = _others(owner.pairs, numbers)
        return
    owner.args, pairs = filled_pairs(owner)
    owner.pairs = _others(pairs, numbers)


def _others(pairs: list[tuple[Value, Value]], numbers: set[int]) -> list[tuple[Value, Value]]:
    return [pair for number, pair in enumerate(pairs) if number not in numbers]


def _children(value: Value) -> list[tuple[Key, Value, _Place | None]]:
    """Return what is inside a value as `children_of` does, each with its place."""
    children = children_of(value)
    places: list[_Place | None] = [None] * len(children)
    if isinstance(value, Dict | list):
        places = [_Place(value, number) for number in range(len(children))]
    elif isinstance(value, Call):
        attributes = _attribute_places(value.state)
        pairs = _pair_places(value)
        end = len(children) - len(attributes)
        behind = len(value.items or []) + len(attributes_of(value.kwargs))
        start = end - behind - len(pairs)
        if start >= 0:  # else it is shown by what it means, as arrays are
            places[start : start + len(pairs)] = pairs
            places[end:] = attributes
    return [(key, child, place) for (key, child), place in zip(children, places, strict=True)]


def _pair_places(call: Call) -> list[_Place | None]:
    """Return the places of an object's pairs; those in an argument have one in OrderedDict alone."""
    count, own = len(mapping_pairs(call) or []), len(filled_pairs(call)[1])
    return [None] * (count - own) + [_Place(call, number) for number in range(own)]


def _attribute_places(state: Value) -> list[_Place | None]:
    """Return the places of an object's attributes, in the order of `attributes_of`."""
    count = len(attributes_of(state))
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    places: list[_Place | None] = []
    for part in parts:
        if isinstance(part, Dict | Call):
            places += [_Place(part, number) for number in range(len(mapping_pairs(part) or []))]
    return places if len(places) == count else [None] * count
