"""Optimizers that leave out whole layers: a frozen backbone, or one of several optimizers of one model.

What a module registers itself (a weight with its bias) is trained together or not at all. So a parameter that
can stand nowhere in the groups says that its whole layer was left out, and that may decide the rest. Names
are given only where one way is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from inspector.model.checkpoint import Key
from inspector.model.optimizer.parameters import Parameters, Shape

_MOST_ROUNDS = 64
_PASSES = 4

Spend = Callable[[int], bool]
"""Counts parts that are about to be compared, and returns whether that may still be done."""


def names_of_layers(
    groups: Sequence[Sequence[Key]],
    shapes: Mapping[Key, Shape],
    classes: Sequence[Sequence[int]],
    model: Parameters,
    spend: Spend,
) -> dict[Key, str] | None:
    """Name the parameters of groups that are each a class without some layers; None where that is not clear.

    Args:
        classes: For each group, the parameters of the model it may hold, by number, in order.
    """
    names, offered = model.names, model.shapes
    layers = [name.rpartition(".")[0] for name in names]
    wanted = [[shapes.get(key) for key in group] for group in groups]
    left = [list(places) for places in classes]
    for _ in range(_MOST_ROUNDS):
        ways = [_ways(shape, places, offered, spend) for shape, places in zip(wanted, left, strict=True)]
        if any(way is None for way in ways):
            return None
        possible = {place for way in ways if way is not None for places in way for place in places}
        gone = {layers[place] for places in left for place in places if place not in possible}
        if not gone:
            return _only(groups, [way or [] for way in ways], names)
        left = [[place for place in places if layers[place] not in gone] for places in left]
    return None


def _ways(
    wanted: Sequence[Shape | None], places: Sequence[int], offered: Sequence[Shape], spend: Spend
) -> list[list[int]] | None:
    """Return all places that each parameter of a group can be at, in order; None where there is no way."""
    if not spend(_PASSES * len(places)):
        return None
    first = _earliest(wanted, places, offered)
    last = _earliest(wanted[::-1], places[::-1], offered)
    if first is None or last is None:
        return None
    rank = {place: number for number, place in enumerate(places)}
    bounds = list(zip(wanted, first, reversed(last), strict=True))
    if not spend(sum(rank[late] - rank[early] for _, early, late in bounds)):
        return None
    return [
        [place for place in places[rank[early] : rank[late] + 1] if shape in {None, offered[place]}]
        for shape, early, late in bounds
    ]


def _earliest(
    wanted: Sequence[Shape | None], places: Sequence[int], offered: Sequence[Shape]
) -> list[int] | None:
    found: list[int] = []
    left = iter(places)
    for shape in wanted:
        place = next((place for place in left if shape in {None, offered[place]}), None)
        if place is None:
            return None
        found.append(place)
    return found


def _only(
    groups: Sequence[Sequence[Key]], ways: Sequence[list[list[int]]], names: Sequence[str]
) -> dict[Key, str] | None:
    pairs = [
        (key, places)
        for group, way in zip(groups, ways, strict=True)
        for key, places in zip(group, way, strict=True)
    ]
    if any(len(places) != 1 for _, places in pairs):
        return None
    return {key: names[places[0]] for key, places in pairs}
