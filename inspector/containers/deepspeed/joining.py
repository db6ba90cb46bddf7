"""The parameters of one model out of the flat vectors of all ranks, and the optimizer's state beside each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import NamedTuple

from inspector.containers.container import Container
from inspector.containers.deepspeed.flat import Flat, cut, cut_evenly, flat_of
from inspector.containers.deepspeed.states import (
    count_of,
    entry,
    items_of,
    named,
    pairs_of,
    shapes_of,
    stage_of,
)
from inspector.containers.gathered.chunks import Chunk, Gathered
from inspector.pickles.values import Value

_WEIGHTS = 3  # the stage that divides each parameter
_STATE = "optimizer_state_dict"


class Part(NamedTuple):
    """One file: what it holds, and its number."""

    container: Container
    number: int


class Parameter(NamedTuple):
    """A parameter, or a slot of the optimizer that is as large.

    Attributes:
        shape: Its sizes.
        gathered: Where its elements are.
        location: The device that all of them were saved on; empty where they were on several.
    """

    shape: tuple[int, ...]
    gathered: Gathered
    location: str


class Joined(NamedTuple):
    """What was joined.

    Attributes:
        weights: The parameters by name.
        slots: The optimizer's state by name of the parameter, then of the slot.
        steps: The number of steps of each group, as it stands in the first file.
        groups: The names of each group's parameters.
        consumed: The vectors that these are made of.
        fault: Why nothing was joined; empty where everything was.
    """

    weights: dict[str, Parameter]
    slots: dict[str, dict[str, Parameter]]
    steps: tuple[Value, ...]
    groups: tuple[tuple[str, ...], ...]
    consumed: tuple[Flat, ...]
    fault: str


class _Vectors(NamedTuple):
    """The vectors of one rank: one for each group, and of each slot as many."""

    masters: tuple[Flat, ...]
    slots: dict[str, tuple[Flat, ...]]
    steps: tuple[Value, ...]


_Cut = Callable[[Sequence[Sequence[Flat]]], Iterator[Chunk]]


def join_parameters(model: Value, optims: Sequence[Part], look: Callable[[int], object]) -> Joined:
    """Join the parameters of a model.

    Args:
        model: The state of the model, as the first of its files has it.
        optims: The files of the optimizer, in the order of the ranks.
        look: Counts the parts that are looked at.
    """
    states = [entry(part.container.root, _STATE) for part in optims]
    stage = stage_of(states[0]) if states else None
    if stage is None:
        return _nothing("there is no state of ZeRO in the folder" if states else "")
    wanted = count_of(entry(states[0], "partition_count"))
    if wanted and wanted != len(optims):
        return _nothing(
            f"{wanted} ranks saved their part of the optimizer, and {len(optims)} of them are there"
        )
    ranks = [_vectors(state, part, stage) for state, part in zip(states, optims, strict=True)]
    shapes = shapes_of(entry(model, "param_shapes"))
    look(sum(len(rank.masters) for rank in ranks) + sum(map(len, shapes)) * len(ranks))
    fault = _mismatch(ranks, shapes)
    if fault:
        return _nothing(fault)
    plan = _each_cut if stage == _WEIGHTS else _group_cuts
    found = list(plan(ranks, shapes, states[0]))
    if not found or found[-1] is None:
        return _nothing("the vectors are not as long as the parameters together")
    return _joined([one for one in found if one is not None], ranks, shapes, stage)


def _nothing(fault: str) -> Joined:
    return Joined({}, {}, (), (), (), fault)


def _vectors(state: Value, part: Part, stage: int) -> _Vectors:
    name, base = (
        ("fp32_flat_groups", _STATE)
        if stage == _WEIGHTS
        else (
            "single_partition_of_fp32_groups",
            "base_optimizer_state",
        )
    )
    masters = _flats(items_of(entry(state, name)), part)
    numbered = {key: item for key, item in pairs_of(entry(state, base, "state")) if type(key) is int}
    states = [named(numbered.get(number)) for number in range(len(masters))]
    # Of the two only one may be saved without the filling at the end of the last rank's vector.
    filled = items_of(entry(state, "group_paddings"))
    paddings = [filled[number] if number < len(filled) else 0 for number in range(len(masters))]
    slots = {}
    for slot in states[0] if states else {}:
        flats = _flats([one.get(slot) for one in states], part)
        if len(flats) == len(masters) and all(map(_is_as_long, flats, masters, paddings)):
            slots[slot] = tuple(
                flat._replace(span=master.numel) for flat, master in zip(flats, masters, strict=True)
            )
    return _Vectors(masters, slots, tuple(one.get("step") for one in states))


def _is_as_long(slot: Flat, master: Flat, padding: Value) -> bool:
    return abs(master.numel - slot.numel) <= (padding if type(padding) is int else 0)


def _flats(values: Sequence[Value], part: Part) -> tuple[Flat, ...]:
    """Return vectors; none where any of them is something else, or missing."""
    found = [flat_of(value, part.container, part.number) for value in values]
    whole = tuple(one for one in found if one is not None)
    return whole if len(whole) == len(found) else ()


def _mismatch(ranks: Sequence[_Vectors], shapes: Sequence[dict[str, tuple[int, ...]]]) -> str:
    if not all(rank.masters for rank in ranks):
        return "a rank has no vector of weights whose bytes are whole"
    if not any(shapes):
        return "the model's file does not say the shapes of its parameters"
    if len({len(rank.masters) for rank in ranks}) > 1:
        return "the ranks differ in how many groups they have"
    if len({one.storage.dtype for rank in ranks for one in rank.masters}) > 1:
        return "the ranks differ in the type of their weights"
    return ""


# --- where each parameter is --------------------------------------------------------------------------------


class _Place(NamedTuple):
    name: str
    shape: tuple[int, ...]
    group: int
    cut: _Cut


def _group_cuts(
    ranks: Sequence[_Vectors], shapes: Sequence[dict[str, tuple[int, ...]]], state: Value
) -> Iterator[_Place | None]:
    """Yield the parameters of ZeRO 1 and 2: each group is one vector over all ranks."""
    if len(shapes) != len(ranks[0].masters):
        yield None
        return
    paddings = items_of(entry(state, "param_alignment_paddings"))
    for number, group in enumerate(shapes):
        own = items_of(paddings[number]) if number < len(paddings) else []
        offset = 0
        for index, (name, shape) in enumerate(group.items()):
            yield _Place(name, shape, number, _cut_group(offset, prod(shape)))
            padding = own[index] if index < len(own) else 0
            offset += prod(shape) + (padding if type(padding) is int and padding > 0 else 0)
        total = sum(rank.masters[number].numel for rank in ranks)
        aligned = 2 * len(ranks)
        if -(-offset // aligned) != -(-total // aligned):
            yield None
            return


def _cut_group(offset: int, numel: int) -> _Cut:
    def cut_one(ranks: Sequence[Sequence[Flat]]) -> Iterator[Chunk]:
        return cut([flats[0] for flats in ranks], offset, numel)

    return cut_one


def _each_cut(
    ranks: Sequence[_Vectors],
    shapes: Sequence[dict[str, tuple[int, ...]]],
    _state: Value,
) -> Iterator[_Place | None]:
    """Yield the parameters of ZeRO 3: each of them is divided among all ranks."""
    offset = 0
    for number, group in enumerate(shapes):
        for name, shape in group.items():
            yield _Place(name, shape, number, _cut_each(offset, prod(shape)))
            offset += -(-prod(shape) // len(ranks))
    if any(sum(flat.numel for flat in rank.masters) != offset for rank in ranks):
        yield None


def _cut_each(offset: int, numel: int) -> _Cut:
    def cut_one(ranks: Sequence[Sequence[Flat]]) -> Iterator[Chunk]:
        return cut_evenly(ranks, offset, numel)

    return cut_one


# --- what they make -----------------------------------------------------------------------------------------


def _joined(
    places: Sequence[_Place],
    ranks: Sequence[_Vectors],
    shapes: Sequence[dict[str, tuple[int, ...]]],
    stage: int,
) -> Joined:
    def part(vectors: Sequence[tuple[Flat, ...]], place: _Place, label: str) -> Parameter:
        chosen = vectors if stage == _WEIGHTS else [(flats[place.group],) for flats in vectors]
        storage = chosen[0][0].storage
        chunks = tuple(place.cut(chosen))
        numbers = {chunk.part for chunk in chunks}
        tags = {one.storage.location for flats in chosen for one in flats if one.part in numbers}
        gathered = Gathered(label, storage.dtype, storage.itemsize, (prod(place.shape),), chunks)
        return Parameter(place.shape, gathered, tags.pop() if len(tags) == 1 else "")

    common = [slot for slot in ranks[0].slots if all(slot in rank.slots for rank in ranks)]
    weights = {place.name: part([rank.masters for rank in ranks], place, place.name) for place in places}
    slots = {
        place.name: {
            slot: part([rank.slots[slot] for rank in ranks], place, f"{place.name}/{slot}") for slot in common
        }
        for place in places
    }
    consumed = [one for rank in ranks for one in rank.masters]
    consumed += [one for rank in ranks for slot in common for one in rank.slots[slot]]
    groups = tuple(tuple(group) for group in shapes)
    return Joined(weights, slots, ranks[0].steps, groups, tuple(consumed), "")
