"""Optimizer slots under the name of their parameter: certain, by a recipe that it names, or not at all.

A file that says the names is believed. Otherwise `Optimizer.state_dict` numbers parameters in the order in
which they were handed over. A single group is handed over in the model's order: `Adam(model.parameters())`,
or what a filter left of it. Several groups are filled by name, by layer or by number of dimensions: a shape
that occurs once tells a parameter, then the order within each group and the recipes of `recipes.py` where
they fit. Wherever two parameters could be meant, the slots stay without a name and the optimizer says so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

from inspector.model.checkpoint import Key, Naming, Tensor
from inspector.model.optimizer.parameters import Parameters, Shape, View, join_parameters, salted, view_of
from inspector.model.optimizer.recipes import names_of_layers
from inspector.model.optimizer.state_dict import OptimizerDraft
from inspector.model.tensors.rebuild import describe_tensor
from inspector.model.tensors.views import Known
from inspector.model.values.text import cut_name
from inspector.records import dataclass, field, replace

# The parameters of an optimizer that was pickled whole: it holds them itself.
#
# In such a file a model's tensors are the same ones, or share their storages, since `torch.save` writes
# what lies at one address once. So what a slot belongs to is known for certain, and nothing is compared by
# shape.


def held_views(optimizer: OptimizerDraft, known: Known) -> dict[Key, View]:
    """Return what each parameter that an optimizer holds views, by its key there."""
    found: dict[Key, View] = {}
    for key, value in optimizer.held.items():
        known.look(1)
        facts = describe_tensor(value, known)
        storage = None if facts is None else facts.storage
        view = None if facts is None or storage is None else view_of(storage.key, facts.offset, facts.shape)
        if view is not None:
            found[key] = view
    return found


def names_held(held: Mapping[Key, View], model: Parameters) -> dict[Key, str]:
    """Return the names of those parameters that are a model's."""
    names = {view: name for view, name in zip(model.views, model.names, strict=False) if view is not None}
    return {key: names[view] for key, view in held.items() if view in names}


Shapes = dict[Key, Shape]
MOST_COMPARED = 8_000_000
"""Parameters compared for one file; 350,000 of a model beside two copies of it take 3 million."""
_MOST_PERMUTED = 3
_MOST_PAIRED = 12
_MOST_GROUPS = 16
_WAYS = 4


@dataclass(frozen=True, slots=True)
class Names:
    """The outcome for one optimizer.

    Attributes:
        by_place: Whether their order alone tells apart parameters of one shape.
    """

    by_id: dict[Key, str]
    naming: Naming
    detail: str
    models: tuple[str, ...] = ()
    by_place: bool = False


_NONE_FITS = Names({}, "unknown", "No set of parameters in this file fits the optimizer's count and shapes.")
_TOO_MANY = Names({}, "unknown", "The file holds too many models and optimizers to compare.")


@dataclass(frozen=True, slots=True)
class Owned:
    """An optimizer with what its slots tell of its parameters.

    Attributes:
        together: Whether one state serves all parameters, as that of LBFGS does.
        held: What its parameters view, where it was pickled whole and holds them.
    """

    optimizer: OptimizerDraft
    shapes: Shapes
    owners: Collection[Key] = ()
    together: bool = False
    held: Mapping[Key, View] = field(default_factory=dict)

    @property
    def ids(self) -> list[Key]:
        """The parameters that its groups list, in order."""
        groups = self.optimizer.listed.groups
        return groups[0].ids if len(groups) == 1 else [key for group in groups for key in group.ids]


class _Room:
    """How much may still be compared: a file can hold a thousand models and a thousand optimizers."""

    def __init__(self) -> None:
        self._left = MOST_COMPARED

    def spend(self, parts: int) -> bool:
        """Count parts that are about to be compared; says whether that is still to be done."""
        self._left -= parts + 1
        return self._left >= 0


def name_parameters(owned: Sequence[Owned], models: Sequence[Parameters]) -> list[Names]:
    """Name the parameters of all optimizers of a file.

    A model all of whose parameters belong to one optimizer is not looked at for a part that another, whose
    own model may not be in the file, could fit by chance. Where so many models and optimizers stand in one
    file that comparing them takes too long, the rest of the optimizers stays without names.
    """
    room = _Room()
    by_count: dict[int, list[Parameters]] = defaultdict(list)
    for model in models:
        by_count[len(model.names)].append(model)
    whole = [_find_whole(one, by_count.get(one.optimizer.listed.parameters, []), room) for one in owned]
    twins = find_twins(owned, whole, models, room.spend)
    claimed = {id(model) for fitting in whole for model in fitting or ()}
    free = [model for model in models if id(model) not in claimed]
    return [
        _TOO_MANY if fitting is None else _of_twin(one, twin, room) or _name(one, fitting, free, models, room)
        for one, fitting, twin in zip(owned, whole, twins, strict=True)
    ]


def _find_whole(owned: Owned, models: Sequence[Parameters], room: _Room) -> list[Parameters] | None:
    found = []
    for model in models:
        if not room.spend(owned.optimizer.listed.parameters):
            return None
        if _fits_wholly(owned, model):
            found.append(model)
    return found


def _name(
    owned: Owned,
    whole: Sequence[Parameters],
    free: Sequence[Parameters],
    models: Sequence[Parameters],
    room: _Room,
) -> Names:
    optimizer = owned.optimizer
    listed = optimizer.listed.parameters + len(optimizer.listed.groups)
    if not room.spend(listed + len(optimizer.state_ids)):
        return _TOO_MANY
    said = _names_in_file(owned)
    if said is not None:
        return said
    if owned.held:
        return _names_of_held(owned, models, room)
    if owned.together:
        return Names({}, "unknown", "It keeps one state for all parameters together.")
    part = None if whole else _name_part(owned, models, room)
    if part is not None:
        return part
    candidates = whole or (free if len(owned.shapes) > 1 else ())
    outcome = _agreed(owned, candidates, room)
    if outcome is None and len(owned.shapes) > 1:
        outcome = _agreed(owned, _joined(free, optimizer.listed.parameters), room)
    return outcome or _NONE_FITS


def _name_part(owned: Owned, models: Sequence[Parameters], room: _Room) -> Names | None:
    """Name the parameters of an optimizer that trains a part of a model, where that part tells itself."""
    if len(owned.optimizer.listed.groups) != 1:
        return None
    part = trained_part(
        owned.optimizer.keys, [owned.shapes.get(key) for key in owned.ids], models, room.spend
    )
    if part is None:
        return None
    named = zip(owned.ids, part.names, strict=True)
    names = {key: name for key, name in named if key in owned.owners}
    reason = f"Count, order and shapes agree with {part.where}."
    return Names(names, "recipe", reason, part.paths, _by_place(owned))


def _agreed(owned: Owned, models: Iterable[Parameters], room: _Room) -> Names | None:
    listed = owned.optimizer.listed.parameters + len(owned.optimizer.listed.groups)
    outcome: Names | None = None
    for model in models:
        if not room.spend(listed + len(model.names)):
            return _TOO_MANY
        other = _match(owned, model, room)
        outcome = outcome or other
        if outcome is not None and other is not None and other.by_id != outcome.by_id:
            if sorted(other.models) == sorted(outcome.models) and other.naming == "order" and other.models:
                reason = f"The models fit in any order, and that of the file is taken. {outcome.detail}"
                if outcome.naming == "order":
                    outcome = replace(outcome, naming="recipe", by_place=True, detail=reason)
                continue
            several = "Several sets of parameters in this file fit this optimizer equally well."
            return Names({}, "unknown", several)
    return outcome


def _joined(models: Sequence[Parameters], count: int) -> Iterator[Parameters]:
    """Yield models that one optimizer could train together: all in the file's order, few in any, pairs."""
    sizes: Iterable[int] = range(2, len(models) + 1)
    if len(models) > _MOST_PERMUTED:
        yield from _that_count([tuple(models)], count)
        sizes = (2,) if len(models) <= _MOST_PAIRED else ()
    for size in sizes:
        yield from _that_count(permutations(models, size), count)


def _that_count(groups: Iterable[tuple[Parameters, ...]], count: int) -> Iterator[Parameters]:
    for group in groups:
        if sum(len(model.names) for model in group) == count:
            yield join_parameters(group)


def _names_in_file(owned: Owned) -> Names | None:
    groups, owners = owned.optimizer.listed.groups, owned.owners
    if groups and all(group.names and len(group.names) == len(group.ids) for group in groups):
        names = {
            key: cut_name(name)
            for group in groups
            for key, name in zip(group.ids, group.names, strict=True)
            if key in owners
        }
        return Names(names, "names", "The file names them (param_names).")
    ids = owned.optimizer.state_ids
    # Numbers that went through JSON are texts and still no names.
    if ids and all(type(key) is str for key in ids) and not all(str(key).isdecimal() for key in ids):
        kept = "The optimizer's state is kept by parameter name."
        return Names({key: cut_name(key) for key in owners if isinstance(key, str)}, "names", kept)
    return None


def _names_of_held(owned: Owned, models: Sequence[Parameters], room: _Room) -> Names:
    best: dict[Key, str] = {}
    where: Parameters | None = None
    for model in models:
        if not room.spend(len(model.names) + len(owned.held)):
            return _TOO_MANY
        found = names_held(owned.held, model)
        if len(found) > len(best):
            best, where = found, model
    if where is None:
        return Names({}, "unknown", "It holds its parameters itself, and no model in this file has them.")
    naming: Naming = "names" if len(best) == len(owned.held) else "partial"
    reason = (
        f"It holds its parameters itself, and {len(best)} of {len(owned.held)} are those of {where.where}."
    )
    names = {key: name for key, name in best.items() if key in owned.owners}
    return Names(names, naming, reason, where.paths)


# --- one optimizer against one model ------------------------------------------------------------------------


def _fits_wholly(owned: Owned, model: Parameters) -> bool:
    """Return whether an optimizer has all parameters of a model: count, shapes and (in one group) order."""
    ids = owned.ids
    if not ids or owned.together:
        return False
    if len(owned.optimizer.listed.groups) == 1 and model.is_ordered:
        return all(
            owned.shapes.get(key, shape) == shape for key, shape in zip(ids, model.shapes, strict=True)
        )
    return _count(owned.shapes.values()) <= _count(model.shapes)


def _match(owned: Owned, model: Parameters, room: _Room) -> Names | None:
    """Name what a model leaves only one name for; None if the optimizer cannot be of this model."""
    if len(owned.optimizer.listed.groups) == 1 and model.is_ordered:
        found = _match_by_order(owned, model)
        return (
            found if found is None or found.naming == "order" else _match_by_layers(owned, model, found, room)
        )
    found = _match_by_shape(owned, model)
    if not model.is_ordered:
        return found
    return found if found is None or found.naming == "shape" else _match_by_custom(owned, model, found, room)


def _match_by_order(owned: Owned, model: Parameters) -> Names | None:
    """Pick parameters of these shapes in the model's order.

    The first that can be picked and the last that can be picked bound all other ways to do it, so where both
    are the same parameter there is no other.
    """
    ids = owned.ids
    shapes = [owned.shapes.get(key) for key in ids]
    first = _pick(shapes, model.shapes)
    last = _pick(shapes[::-1], model.shapes[::-1])
    if first is None or last is None:
        return None
    end = len(model.shapes) - 1
    names = {
        key: model.names[early]
        for key, early, late in zip(ids, first, reversed(last), strict=True)
        if early == end - late and key in owned.owners
    }
    return _outcome(owned, model, names, "order")


def _match_by_layers(owned: Owned, model: Parameters, certain: Names, room: _Room) -> Names:
    """Add what follows where layers were left out whole, if that leaves one way."""
    everything = [range(len(model.names))]
    found = names_of_layers([owned.ids], owned.shapes, everything, model, room.spend)
    if found is None:
        return certain
    names = {key: name for key, name in found.items() if key in owned.owners}
    reason = f"The shapes fit {model.where} in its order, whole layers left out."
    return Names(names, "recipe", reason, model.paths, _by_place(owned))


def _match_by_custom(owned: Owned, model: Parameters, certain: Names, room: _Room) -> Names:
    """Add what a recipe that fits, or else the order within each group, says of the other parameters."""
    from inspector.model.optimizer.recipes import recognize  # noqa: PLC0415 - most optimizers have one group

    groups = [group.ids for group in owned.optimizer.listed.groups]
    recognized = recognize(groups, owned.shapes, model, room.spend)
    if recognized is not None:
        found, custom = recognized.by_id, recognized.reason
    else:
        found = _names_in_order(groups, owned.shapes, model, room)
        custom = "each lists parameters in the model's order"
    if any(found.get(key, name) != name for key, name in certain.by_id.items()):
        return certain
    names = {key: name for key, name in {**found, **certain.by_id}.items() if key in owned.owners}
    named = sum(1 for key in owned.shapes if key in names)
    if named <= sum(1 for key in owned.shapes if key in certain.by_id):
        return certain
    reason = f"The groups fit {model.where} in sizes, order and shapes as {custom}."
    if named == len(owned.shapes):
        return Names(names, "recipe", reason, model.paths, _by_place(owned))
    reason = f"{reason} This decides {named} of {len(owned.shapes)}, the others could be several."
    return Names(names, "partial", reason, model.paths)


def _names_in_order(
    groups: Sequence[Sequence[Key]], shapes: Shapes, model: Parameters, room: _Room
) -> dict[Key, str]:
    """Name what is clear once each group keeps the model's order; none of a group that fits backwards too."""
    found: dict[Key, int] = {}
    taken: set[int] = set()
    before = -1
    while before < len(found) and len(groups) <= _MOST_GROUPS:
        before = len(found)
        for ids in groups:
            if room.spend(_WAYS * len(model.names)):
                places = _places_in_order(ids, shapes, model, taken, found)
                found |= places
                taken.update(places.values())
    return {key: model.names[place] for key, place in found.items()}


def _places_in_order(
    ids: Sequence[Key], shapes: Shapes, model: Parameters, taken: set[int], found: dict[Key, int]
) -> dict[Key, int]:
    """Return where the parameters of one group must stand, among what other groups have not taken."""
    own = {found[key] for key in ids if key in found}
    free = [place for place in range(len(model.names)) if place not in taken or place in own]
    offered = [model.shapes[place] for place in free]
    wanted = [shapes.get(key) for key in ids]
    first, last = _pick(wanted, offered), _pick(wanted[::-1], offered[::-1])
    if first is None or last is None or (len(wanted) > 1 and _pick(wanted[::-1], offered) is not None):
        return {}
    end = len(free) - 1
    ends = zip(ids, first, reversed(last), strict=True)
    return {key: free[early] for key, early, late in ends if early == end - late}


def _pick(wanted: Sequence[Shape | None], offered: Sequence[Shape]) -> list[int] | None:
    """Return the places of the first offered shapes that are the wanted ones in this order; None fits any."""
    places: list[int] = []
    place = 0
    for shape in wanted:
        while place < len(offered) and shape is not None and offered[place] != shape:
            place += 1
        if place == len(offered):
            return None
        places.append(place)
        place += 1
    return places


def _match_by_shape(owned: Owned, model: Parameters) -> Names | None:
    """Name the parameters whose shape no other parameter of the model has."""
    offered = _count(model.shapes)
    if owned.optimizer.listed.parameters > len(model.names) or not _count(owned.shapes.values()) <= offered:
        return None
    name_of = dict(zip(map(salted, model.shapes), model.names, strict=True))
    found = ((key, salted(shape)) for key, shape in owned.shapes.items())
    names = {key: name_of[shape] for key, shape in found if offered[shape] == 1}
    return _outcome(owned, model, names, "shape")


def _by_place(owned: Owned) -> bool:
    """Return whether two parameters of one group have one shape, so that nothing shows a swap of them."""
    groups = owned.optimizer.listed.groups
    known = ([owned.shapes[key] for key in group.ids if key in owned.shapes] for group in groups)
    return any(len(_count(shapes)) < len(shapes) for shapes in known)


def _count(shapes: Iterable[Shape]) -> Counter[tuple[object, ...]]:
    return Counter(map(salted, shapes))


def _outcome(owned: Owned, model: Parameters, names: dict[Key, str], naming: Naming) -> Names:
    total = len(owned.shapes)
    named = sum(1 for key in owned.shapes if key in names)
    if named == total:
        reason = {
            "order": f"Count, order and shapes agree with {model.where}.",
            "shape": f"Each shape occurs once in {model.where}.",
        }[naming]
        return Names(names, naming, reason, model.paths, naming == "order" and _by_place(owned))
    groups = "its groups may be filled in any order" if naming == "shape" else "some may be left out"
    if not model.is_ordered:
        groups = "safetensors sorts its tensors, so that their order tells nothing"
    reason = (
        f"The shapes decide {named} of {total} against {model.where}, the others could be several: {groups}."
    )
    return Names(names, "partial" if named else "unknown", reason, model.paths if named else ())


# --- models that fit equally well ---------------------------------------------------------------------------
#
# Two critics, the two networks of a GAN, a student with its teacher have one shape. What an optimizer is
# called tells which is meant, or what the model is for; where neither has a name, the first trains the first
# (`Accelerator.save_state` and Lightning's `configure_optimizers` number both).

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_SILENT = frozenset(
    {"optimizer", "optimizers", "optim", "optims", "opt", "state", "states", "dict", "adam", "adamw", "sgd"}
    | {"bin", "pt", "pth", "lr"}
)
_FOLLOWERS = frozenset({"target", "ema", "teacher", "avg", "average", "averaged", "momentum", "frozen"})
_LONE = frozenset({"log"})
_MOST_TWINS = 9  # of more, the texts of their numbers may be in another order
_AS: dict[Naming, Naming] = {"order": "recipe", "shape": "recipe", "recipe": "recipe", "partial": "partial"}


class Twin(NamedTuple):
    """The model of an optimizer, of several that fit, and why."""

    model: Parameters
    reason: str
    by_place: bool = False  # whether nothing but the order tells it


def _of_twin(owned: Owned, twin: Twin | None, room: _Room) -> Names | None:
    if twin is None or owned.held or owned.together or _names_in_file(owned) is not None:
        return None
    named = _match(owned, twin.model, room)
    if named is None or not named.by_id:
        return None
    by_place, detail = named.by_place or twin.by_place, f"{twin.reason} {named.detail}"
    return replace(named, naming=_AS[named.naming], by_place=by_place, detail=detail)


def find_twins(
    owned: Sequence[Owned],
    whole: Sequence[Sequence[Parameters] | None],
    models: Sequence[Parameters],
    spend: Callable[[int], bool],
) -> list[Twin | None]:
    """Return for each optimizer the model that it trains, where several fit and something tells which."""
    fits = [
        list(fitting) if fitting else _fitting_branches(one, models, spend)
        for one, fitting in zip(owned, whole, strict=True)
    ]
    called = [".".join(map(str, one.optimizer.keys)) for one in owned]
    names = [_words(text) - _SILENT for text in called]
    rivals: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, found in enumerate(fits):
        if 1 < len(found) <= _MOST_TWINS:
            rivals[tuple(model.where for model in found)].append(number)
    twins: list[Twin | None] = [None] * len(owned)
    for numbers in rivals.values():
        for rank, number in enumerate(numbers):
            twins[number] = _twin(fits[number], called[number], rank, [names[other] for other in numbers])
    return twins


def _twin(
    found: Sequence[Parameters], called: str, rank: int, names: Sequence[frozenset[str]]
) -> Twin | None:
    """Return which of several models is meant by an optimizer of this name, the `rank`-th of its rivals."""
    name, numbers = names[rank], _DIGITS.findall(called)
    if name:
        alike = [model for model in found if all(_is_said(word, _words(model.where)) for word in name)]
        if len(alike) > 1:
            alike = [model for model in alike if _DIGITS.findall(model.where) == numbers]
        return Twin(alike[0], "It is named after its model.") if len(alike) == 1 else None
    leading = [model for model in found if _words(model.where).isdisjoint(_FOLLOWERS)]
    if len(names) == 1 and len(leading) == 1:
        return Twin(leading[0], "Of the models that fit, the others follow this one.")
    if len(names) == len(found) == len(leading) and not any(names):
        return Twin(
            found[rank], f"{len(found)} models and optimizers are of one shape, in one order.", by_place=True
        )
    return None


def name_lone(owned: Owned, tensors: Iterable[Tensor]) -> Names | None:
    """Name the only parameter of an optimizer that is called after it, as SAC's temperature is."""
    name = _words(".".join(map(str, owned.optimizer.keys))) - _SILENT
    if owned.optimizer.listed.parameters != 1 or len(owned.owners) != 1 or not name or owned.held:
        return None
    key, shape = owned.ids[0], owned.shapes.get(owned.ids[0])
    found = [
        tensor
        for tensor in tensors
        if tensor.slot is None
        and tensor.shape == shape
        and tensor.keys
        and name <= _words(str(tensor.keys[-1])) <= name | _LONE
    ]
    if len(found) != 1 or key not in owned.owners:
        return None
    called = cut_name(str(found[0].keys[-1]))
    return Names({key: called}, "recipe", f"It is named after its only parameter, {found[0].path}.")


def _is_said(word: str, words: Collection[str]) -> bool:
    return any(other.startswith(word) or (len(other) > 1 and word.startswith(other)) for other in words)


def _words(text: str) -> frozenset[str]:
    """Return the words of a name, without numbers."""
    return frozenset(word.lower() for word in _WORD.findall(text) if not word.isdecimal())


def _fitting_branches(
    owned: Owned, models: Sequence[Parameters], spend: Callable[[int], bool]
) -> list[Parameters]:
    """Return the parts of models, such as the networks of a GAN, all of whose parameters an optimizer has."""
    ids, found = owned.ids, []
    if owned.together or owned.held or len(owned.optimizer.listed.groups) != 1 or len(owned.shapes) < _FEWEST:
        return []
    last = str(owned.optimizer.keys[-1]) if owned.optimizer.keys else ""
    owner = _OWNER.match(last)
    for model in models:
        branches = _branches(model) if model.is_ordered and spend(len(model.names)) else {}
        if owner is not None and owner[1] in branches:
            return []  # `trained_part` knows it
        for name, places in branches.items() if len(branches) <= _MOST_BRANCHES else ():
            part = _part_of(model, places, f"{name} of {model.where}")
            told = [owned.shapes.get(key) for key in ids] if len(places) == len(ids) else []
            if told and all(map(_fits, told, part.shapes)):
                found.append(part)
    return found


# --- the part of a model that an optimizer trains: the one that it is named after, or all but copies --------
#
# Agents keep several networks in one state dict and an optimizer for each: `actor.optimizer` trains what
# stands below `actor.` (`_get_torch_save_params` in `stable_baselines3/sac/sac.py`). A network that is
# evaluated as a target is a copy of another that no optimizer sees (`stable_baselines3/dqn/policies.py`).

_OWNER = re.compile(r"(.+?)[._]optim", re.IGNORECASE)
_TARGETS = ("{}_target", "target_{}")
_MOST_BRANCHES = 64
_FEWEST = 2  # parameters by which a part is known


def trained_part(
    keys: Sequence[Key],
    shapes: Sequence[Shape | None],
    models: Sequence[Parameters],
    spend: Callable[[int], bool],
) -> Parameters | None:
    """Return the part of a model that an optimizer trains, where there is only one that fits.

    Args:
        shapes: Those of its parameters, in order; None where its slots do not tell.
        spend: Counts what is about to be compared; says whether that is still to be done.

    Returns:
        The part, called by what it is in sentences.
    """
    if sum(shape is not None for shape in shapes) < _FEWEST:
        return None
    fitting = [
        part
        for part in _trained_parts(keys, models)
        if spend(len(shapes)) and len(part.shapes) == len(shapes) and all(map(_fits, shapes, part.shapes))
    ]
    return fitting[0] if len(fitting) == 1 else None


def _fits(told: Shape | None, shape: Shape) -> bool:
    return told is None or told == shape


def _trained_parts(keys: Sequence[Key], models: Sequence[Parameters]) -> Iterator[Parameters]:
    last = keys[-1] if keys else ""
    named = _OWNER.match(last) if isinstance(last, str) else None
    name = named[1] if named is not None else ""
    for model in models:
        branches = _branches(model)
        if not model.is_ordered or not 1 < len(branches) <= _MOST_BRANCHES:
            continue
        copies = _copies(branches)
        if name in branches:
            yield _part_of(model, branches[name], f"{name} of {model.where}")
        elif copies:
            left = [place for own, places in branches.items() if own not in copies for place in places]
            yield _part_of(model, sorted(left), f"{model.where} without {' and '.join(sorted(copies))}")


def _branches(model: Parameters) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, name in enumerate(model.names):
        found.setdefault(name.partition(".")[0], []).append(place)
        if len(found) > _MOST_BRANCHES:
            break
    return found


def _copies(branches: dict[str, list[int]]) -> set[str]:
    """Return the names of networks that are targets: as large as another one, and named after it."""
    return {
        form.format(name)
        for name, places in branches.items()
        for form in _TARGETS
        if len(branches.get(form.format(name), ())) == len(places)
    }


def _part_of(model: Parameters, places: Sequence[int], where: str) -> Parameters:
    names, shapes = [model.names[place] for place in places], [model.shapes[place] for place in places]
    return Parameters(where, names, shapes, model.paths)
