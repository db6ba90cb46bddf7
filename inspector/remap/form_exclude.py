"""Entries left out of the objects of a checkpoint, by the paths that `show` gives them.

What stands in a dictionary, a list or an object's attributes can be left out; an item of a tuple or an
argument of a call cannot, since others would take its place.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector.errors import PlanError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.checkpoint import Key
from inspector.model.shapes import attributes_of, children_of, mapping_pairs
from inspector.model.texts import step_text
from inspector.pickles.values import Call, Dict, Global, Value
from inspector.remap.form_select import Patterns


class _Place(NamedTuple):
    """Where a child stands in the mapping or list that holds it."""

    owner: Value
    number: int


def find_drops(
    root: Value, patterns: Patterns, limits: Limits = DEFAULT_LIMITS
) -> tuple[dict[int, set[int]], list[str]]:
    """Give the entries that patterns leave out, by the object they stand in, and their paths.

    What is nested too deeply to be shown has no path, and stays.

    Raises:
        PlanError: What is to be left out cannot be.
    """
    drops: dict[int, set[int]] = {}
    paths: list[str] = []
    todo: list[tuple[str, int, Value]] = [("", 0, root)]
    entered = {id(root)}
    while todo:
        prefix, depth, value = todo.pop()
        below = []
        for key, child, place in _children(value):
            path = prefix + step_text(key)
            if patterns.cover(path):
                paths.append(path)
                _drop(drops, place, path)
            elif depth < limits.depth and id(child) not in entered and children_of(child):
                entered.add(id(child))
                below.append((f"{path}/", depth + 1, child))
        todo += reversed(below)
    return drops, paths


def _drop(drops: dict[int, set[int]], place: _Place | None, path: str) -> None:
    if place is None:
        raise PlanError(
            "an item of a tuple or an argument cannot be left out", where=path, remedy="name what holds it"
        )
    drops.setdefault(id(place.owner), set()).add(place.number)


def _children(value: Value) -> list[tuple[Key, Value, _Place | None]]:
    """Give what is inside a value as `children_of` does, each with its place."""
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
    """Give the places of an object's pairs; those in an argument have one in OrderedDict alone."""
    count, own = len(mapping_pairs(call) or []), len(call.pairs or [])
    if isinstance(call.func, Global) and call.func.dotted == "collections.OrderedDict":
        return [_Place(call, number) for number in range(count)]
    return [None] * (count - own) + [_Place(call, number) for number in range(own)]


def _attribute_places(state: Value) -> list[_Place | None]:
    """Give the places of an object's attributes, in the order of `attributes_of`."""
    count = len(attributes_of(state))
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    places: list[_Place | None] = []
    for part in parts:
        places += [_Place(part, number) for number in range(len(mapping_pairs(part) or []))]
    return places if len(places) == count else [None] * count
