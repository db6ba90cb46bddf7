"""Which models an optimizer was made for: told by count, order and shapes, then by names.

An optimizer's state dict numbers its parameters in the order in which they were handed over, so that one over
two modules, `itertools.chain(encoder.parameters(), decoder.parameters())`, says in which order that was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, permutations

from inspector.model.checkpoint import Checkpoint, Key, Optimizer, Tensor
from inspector.model.optimizer.parameters import salted, slot_shape
from inspector.records import dataclass
from inspector.snippet.models import Model, Shape

Shapes = dict[int, Shape]
"""By place in the optimizer."""

_MOST_CHAINED = 4
_MOST_MODELS = 6
_MOST_ORDERED = 5_000
_MOST_SLOTS = 8
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_WORDS = "optimizer optim opt scheduler sched lr net model state dict adam adamw sgd"
_EMPTY = frozenset(_WORDS.split())
# One of two models of one kind that no optimizer trains.
_FOLLOWERS = frozenset({"target", "ema", "teacher", "avg", "average", "momentum", "frozen", "old", "ref"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """What an optimizer holds.

    Attributes:
        models: The numbers of its models, in the order of its parameters; empty where nothing tells.
        is_part: Whether it holds some of their parameters only.
        is_ordered: Whether no other order fits as well.
    """

    models: tuple[int, ...] = ()
    is_part: bool = False
    is_ordered: bool = True


def find_owned(
    checkpoint: Checkpoint, optimizer: Optimizer, name: str, models: Sequence[tuple[str, Model]]
) -> Owned:
    """Find the models of an optimizer."""
    trained = [place for place, (_, model) in enumerate(models) if model.shapes and not model.is_average]
    shapes = _shapes(checkpoint, optimizer)
    in_order = len(optimizer.groups) < 2
    whole = [
        place
        for place in trained
        if _fits(optimizer.parameters, shapes, models[place][1].shapes, in_order=in_order)
    ]
    if whole:
        return Owned(models=(_by_name(name, whole, models),))
    chains = _chains(optimizer.parameters, shapes, trained[:_MOST_MODELS], models)
    if chains:
        return Owned(models=chains[0], is_ordered=len(chains) == 1)
    part = [
        place
        for place in trained
        if len(models[place][1].shapes) > optimizer.parameters and _is_part(shapes, models[place][1].shapes)
    ]
    return Owned(models=(_by_name(name, part, models),), is_part=True) if part and shapes else Owned()


def _shapes(checkpoint: Checkpoint, optimizer: Optimizer) -> Shapes:
    """Return the shapes that the slots tell, by the number of the parameter."""
    depth, start = len(optimizer.keys), f"{optimizer.path}/state/" if optimizer.path else "state/"
    slots: dict[str, list[Tensor]] = {}
    numbers: dict[str, Key] = {}
    for tensor in checkpoint.tensors:
        if tensor.slot is not None and tensor.path.startswith(start) and tensor.part_of is None:
            number = tensor.path[len(start) :].partition("/")[0]
            numbers[number] = tensor.keys[depth + 1]
            listed = slots.setdefault(number, [])
            if len(listed) < _MOST_SLOTS:
                listed.append(tensor)
    found = ((numbers[number], slot_shape(listed)) for number, listed in slots.items())
    return {
        number: shape
        for number, shape in found
        if isinstance(number, int) and 0 <= number < optimizer.parameters and shape is not None
    }


def _fits(count: int, shapes: Shapes, offered: Sequence[Shape], *, in_order: bool) -> bool:
    """Return whether these are all parameters of an optimizer."""
    if count != len(offered):
        return False
    if all(offered[place] == shape for place, shape in shapes.items()):
        return True
    return not in_order and _is_part(shapes, offered)


def _is_part(shapes: Shapes, offered: Sequence[Shape]) -> bool:
    return Counter(map(salted, shapes.values())) <= Counter(map(salted, offered))


def _chains(
    count: int, shapes: Shapes, trained: Sequence[int], models: Sequence[tuple[str, Model]]
) -> list[tuple[int, ...]]:
    """Return the orders of the models that hold just these parameters together, that of the file first."""
    for length in range(2, min(len(trained), _MOST_CHAINED) + 1):
        for chosen in combinations(trained, length):
            if sum(len(models[place][1].shapes) for place in chosen) != count:
                continue
            orders = permutations(chosen) if count <= _MOST_ORDERED else iter([chosen])
            found = [order for order in orders if _fits(count, shapes, _listed(order, models), in_order=True)]
            if found:
                return found
    return []


def _listed(order: Sequence[int], models: Sequence[tuple[str, Model]]) -> list[Shape]:
    return [shape for place in order for shape in models[place][1].shapes]


def _by_name(name: str, places: Sequence[int], models: Sequence[tuple[str, Model]]) -> int:
    """Return the model that is meant, of several that fit: by its name, else the one that others follow."""
    scores = [
        (likeness(name, models[place][0]), not _words(models[place][0]) & _FOLLOWERS, -at)
        for at, place in enumerate(places)
    ]
    return places[-max(scores)[2]]


def likeness(one: str, other: str) -> int:
    """Return how alike two names are, from 0 to 2: `optimizer_G` is of `netG`, or else of `generator`."""
    words, others = _words(one), _words(other)
    if words & others:
        return 2
    return int(any(word.startswith(short) or short.startswith(word) for word in words for short in others))


def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name)) - _EMPTY
