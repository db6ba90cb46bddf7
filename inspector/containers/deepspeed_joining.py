"""The parameters of one model out of the flat vectors of all ranks, and the optimizer's state beside each.

ZeRO 1 and 2 cut one long vector of a group's parameters into a part for each rank. ZeRO 3 cuts each of the
parameters, and the vector of a rank consists of its parts. The rules are those of DeepSpeed's
`zero_to_fp32.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from inspector.containers.container import Chunk, Container, Gathered
from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.containers.rebuilds import FROM_TYPE, PARAMETERS, VIEWS
from inspector.pickles.values import Call, Dict, Global, PersistentId, Value

# --- what a file of states says -----------------------------------------------------------------------------


_MOST = 1 << 62
_MOST_DIMENSIONS = 64


def entry(value: Value, *keys: str) -> Value:
    """Return what the keys of nested dictionaries lead to; None where they lead nowhere."""
    for key in keys:
        pairs = pairs_of(value)
        value = next((item for name, item in pairs if isinstance(name, str) and name == key), None)
    return value


def pairs_of(value: Value) -> list[tuple[Value, Value]]:
    """Return the entries of a dict or an OrderedDict."""
    if isinstance(value, Dict):
        return value.pairs
    return value.pairs or [] if isinstance(value, Call) else []


def named(value: Value) -> dict[str, Value]:
    """Return the entries of a mapping whose keys are texts."""
    return {str(key): item for key, item in pairs_of(value) if isinstance(key, str)}


def items_of(value: Value) -> list[Value]:
    """Return the items of a list or a tuple, and anything else but None as the only item."""
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value is None else [value]


def shapes_of(value: Value) -> list[dict[str, tuple[int, ...]]]:
    """Return the shapes of parameters by name, for each group; groups that are damaged are empty."""
    found = []
    for group in items_of(value):
        shapes = {name: size_of(size) for name, size in named(group).items()}
        known = {name: shape for name, shape in shapes.items() if shape is not None}
        found.append(known if len(known) == len(shapes) else {})
    return found


def size_of(value: Value) -> tuple[int, ...] | None:
    """Read a `torch.Size`, or a tuple or list of sizes."""
    if isinstance(value, Call) and value.name.endswith("Size"):
        value = value.arguments[0] if value.arguments else ()
    if not isinstance(value, tuple | list) or len(value) > _MOST_DIMENSIONS:
        return None
    sizes = tuple(one for one in value if type(one) is int and 0 <= one < _MOST)
    return sizes if len(sizes) == len(value) else None


def stage_of(state: Value) -> int | None:
    """Return the ZeRO stage of an optimizer's state: as it says, else as its names say."""
    stage = entry(state, "zero_stage")
    if isinstance(stage, Call) and stage.arguments:
        stage = stage.arguments[0]
    if type(stage) is int:
        return stage
    names = named(state)
    if "fp32_flat_groups" in names:
        return 3
    return 2 if "single_partition_of_fp32_groups" in names else None


def count_of(value: Value) -> int:
    """Return a number of ranks; of several the largest; 0 where it says none."""
    return max((one for one in items_of(value) if type(one) is int and 0 < one < _MOST), default=0)


# --- vectors ------------------------------------------------------------------------------------------------


_LEAST_ARGUMENTS = 4
_MOST_WRAPPED = 4


class Flat(NamedTuple):
    """A vector within a storage of a file."""

    storage: StorageId
    part: int
    offset: int
    numel: int
    span: int = -1  # how many it stands for, where that is another number: those at its end may be filling


def flat_of(value: Value, container: Container, part: int) -> Flat | None:
    """Read a tensor as a vector whose bytes are in the file; None where it is anything else."""
    value, args = _unwrapped(value)
    func = value.func if isinstance(value, Call) else None
    is_view = isinstance(func, Global) and func.name in VIEWS and len(args) >= _LEAST_ARGUMENTS
    storage = parse_storage_id(args[0]) if is_view and isinstance(args[0], PersistentId) else None
    if storage is None or not isinstance(args[2], tuple) or not isinstance(args[3], tuple):
        return None
    first, sizes, steps = args[1:4]
    numbers = (first, *sizes, *steps)
    if not all(type(one) is int and 0 <= one < 1 << 62 for one in numbers) or not _is_dense(sizes, steps):
        return None
    stored, numel = container.stored.get(storage.key), prod(sizes)
    if stored is None or stored.offset is None or (first + numel) * storage.itemsize > stored.nbytes:
        return None
    return Flat(storage, part, stored.offset + first * storage.itemsize, numel)


def _unwrapped(value: Value) -> tuple[Value, tuple[Any, ...]]:
    """Return what makes the data of a tensor, without what makes a parameter or a subclass of it."""
    for _ in range(_MOST_WRAPPED):
        args: tuple[Any, ...] = value.arguments if isinstance(value, Call) else ()
        func = value.func if isinstance(value, Call) else None
        if not isinstance(func, Global) or not args:
            break
        if func.name in FROM_TYPE and len(args) > 2:
            value = Call(args[0], args[2], "reduce")
        elif func.name in PARAMETERS:
            value = args[0]
        else:
            return value, args
    return value, ()


def _is_dense(sizes: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    return len(sizes) == len(steps) and all(
        size == 1 or step == prod(sizes[number + 1 :])
        for number, (size, step) in enumerate(zip(sizes, steps, strict=True))
    )


def cut(flats: Sequence[Flat], start: int, numel: int, first: int = 0) -> Iterator[Chunk]:
    """Yield where some elements are of vectors in a row; the first of them is the `first` of the whole."""
    reached = 0
    for flat in flats:
        span = flat.numel if flat.span < 0 else flat.span
        low, high = max(start, reached), min(start + numel, reached + min(flat.numel, span))
        if low < high:
            itemsize = flat.storage.itemsize
            offset = flat.offset + (low - reached) * itemsize
            yield Chunk((first + low - start,), (high - low,), flat.part, offset, (high - low) * itemsize)
        reached += span


def cut_evenly(ranks: Sequence[Sequence[Flat]], start: int, numel: int) -> Iterator[Chunk]:
    """Yield where a parameter is of which each rank has the same share, the last one with a filling."""
    share = -(-numel // max(len(ranks), 1))
    for rank, flats in enumerate(ranks):
        first = rank * share
        yield from cut(flats, start, max(min(share, numel - first), 0), first)


# --- parameters ---------------------------------------------------------------------------------------------


_WEIGHTS = 3  # the stage that divides each parameter
_STATE = "optimizer_state_dict"


class Part(NamedTuple):
    """One file: what it holds, and its number."""

    container: Container
    number: int


class Parameter(NamedTuple):
    """A parameter, or a slot of the optimizer that is as large."""

    shape: tuple[int, ...]
    gathered: Gathered
    location: str  # the device that all of them were saved on; empty where they were on several


class Joined(NamedTuple):
    """What was joined."""

    weights: dict[str, Parameter]
    slots: dict[str, dict[str, Parameter]]  # the optimizer's state by name of the parameter, then of the slot
    steps: tuple[Value, ...]
    groups: tuple[tuple[str, ...], ...]
    consumed: tuple[Flat, ...]  # the vectors that these are made of
    fault: str  # why nothing was joined; empty where everything was


def parameter_of(
    label: str, shape: tuple[int, ...], flats: Sequence[Flat], chunks: tuple[Chunk, ...], used: Sequence[Flat]
) -> Parameter:
    """Return a parameter in chunks of vectors, of which some are used."""
    storage, tags = flats[0].storage, {one.storage.location for one in used}
    gathered = Gathered(label, storage.dtype, storage.itemsize, (prod(shape),), chunks)
    return Parameter(shape, gathered, tags.pop() if len(tags) == 1 else "")


class _Vectors(NamedTuple):
    """The vectors of one rank: one for each group, and of each slot as many."""

    masters: tuple[Flat, ...]
    slots: dict[str, tuple[Flat, ...]]
    steps: tuple[Value, ...]


def join_parameters(model: Value, optims: Sequence[Part], look: Callable[[int], object]) -> Joined:
    """Join the parameters of a model."""
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
    name, base = "single_partition_of_fp32_groups", "base_optimizer_state"
    if stage == _WEIGHTS:
        name, base = "fp32_flat_groups", _STATE
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
    offset: int  # where it begins in the vectors, of ZeRO 3 in those of each rank


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
            yield _Place(name, shape, number, offset)
            padding = own[index] if index < len(own) else 0
            offset += prod(shape) + (padding if type(padding) is int and padding > 0 else 0)
        total = sum(rank.masters[number].numel for rank in ranks)
        aligned = 2 * len(ranks)
        if -(-offset // aligned) != -(-total // aligned):
            yield None
            return


def _each_cut(
    ranks: Sequence[_Vectors],
    shapes: Sequence[dict[str, tuple[int, ...]]],
    _state: Value,
) -> Iterator[_Place | None]:
    """Yield the parameters of ZeRO 3: each of them is divided among all ranks."""
    offset = 0
    for number, group in enumerate(shapes):
        for name, shape in group.items():
            yield _Place(name, shape, number, offset)
            offset += -(-prod(shape) // len(ranks))
    if any(sum(flat.numel for flat in rank.masters) != offset for rank in ranks):
        yield None


# --- what they make -----------------------------------------------------------------------------------------


def _joined(
    places: Sequence[_Place],
    ranks: Sequence[_Vectors],
    shapes: Sequence[dict[str, tuple[int, ...]]],
    stage: int,
) -> Joined:
    def part(vectors: Sequence[tuple[Flat, ...]], place: _Place, label: str) -> Parameter:
        numel = prod(place.shape)
        if stage == _WEIGHTS:
            flats = [one for rank in vectors for one in rank]
            chunks = tuple(cut_evenly(vectors, place.offset, numel))
        else:
            flats = [rank[place.group] for rank in vectors]
            chunks = tuple(cut(flats, place.offset, numel))
        numbers = {chunk.part for chunk in chunks}
        return parameter_of(label, place.shape, flats, chunks, [one for one in flats if one.part in numbers])

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
