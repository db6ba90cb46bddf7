"""Optimizer slots under the name of their parameter: certain, or not at all.

A file that says the names is believed. Otherwise `Optimizer.state_dict` numbers parameters in the order in
which they were handed over. A single group is handed over in the model's order: `Adam(model.parameters())`,
or what a filter left of it. Nothing of the kind holds for several groups, which are filled by name, by layer
or by number of dimensions, sorted or not; there only a shape that occurs once can tell a parameter. Wherever
two parameters could be meant, the slots stay without a name and the optimizer says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from inspector.model.checkpoint import Key, Naming
from inspector.model.optimizer import OptimizerDraft
from inspector.model.parameters import Parameters, Shape
from inspector.model.texts import cut_name
from inspector.records import dataclass

Shapes = dict[Key, Shape]


@dataclass(frozen=True, slots=True)
class Names:
    """The outcome for one optimizer.

    Attributes:
        by_id: The parameter's name for each number or name of the optimizer's own, where it is certain.
        naming: How.
        detail: Why, in one sentence.
    """

    by_id: dict[Key, str]
    naming: Naming
    detail: str


@dataclass(frozen=True, slots=True)
class Owned:
    """An optimizer with what its slots tell of its parameters.

    Attributes:
        optimizer: The optimizer.
        shapes: The shapes of those parameters whose slots tell it.
        together: Whether one state serves all parameters, as that of LBFGS does.
    """

    optimizer: OptimizerDraft
    shapes: Shapes
    together: bool = False

    @property
    def ids(self) -> list[Key]:
        """The parameters that its groups list, in order."""
        return [key for group in self.optimizer.groups for key in group.ids]


def name_parameters(owned: Sequence[Owned], models: Sequence[Parameters]) -> list[Names]:
    """Name the parameters of all optimizers of a file.

    A model all of whose parameters belong to one optimizer is not looked at for a part that another, whose
    own model may not be in the file, could fit by chance.
    """
    whole = [[model for model in models if _fits_wholly(one, model)] for one in owned]
    claimed = {id(model) for fitting in whole for model in fitting}
    free = [model for model in models if id(model) not in claimed]
    return [_name(one, fitting, free) for one, fitting in zip(owned, whole, strict=True)]


def _name(owned: Owned, whole: Sequence[Parameters], free: Sequence[Parameters]) -> Names:
    said = _names_in_file(owned.optimizer)
    if said is not None:
        return said
    if owned.together:
        return Names({}, "unknown", "It keeps one state for all its parameters together.")
    found = [_match(owned, model) for model in whole or (free if len(owned.shapes) > 1 else ())]
    outcomes = [outcome for outcome in found if outcome is not None]
    if not outcomes:
        return Names(
            {}, "unknown", "No set of parameters in this file fits the optimizer's count and shapes."
        )
    if any(outcome.by_id != outcomes[0].by_id for outcome in outcomes):
        return Names(
            {}, "unknown", "Several sets of parameters in this file fit this optimizer equally well."
        )
    return outcomes[0]


def _names_in_file(optimizer: OptimizerDraft) -> Names | None:
    groups = optimizer.groups
    if groups and all(group.names and len(group.names) == len(group.ids) for group in groups):
        names = {
            key: cut_name(name) for group in groups for key, name in zip(group.ids, group.names, strict=True)
        }
        return Names(names, "names", "The file names them (param_names).")
    texts = [key for key in optimizer.state_ids if isinstance(key, str)]
    # Numbers that went through JSON are texts and still no names.
    if texts and len(texts) == len(optimizer.state_ids) and not all(text.isdecimal() for text in texts):
        return Names(
            {key: cut_name(key) for key in texts}, "names", "The optimizer's state is kept by parameter name."
        )
    return None


# --- one optimizer against one model ------------------------------------------------------------------------


def _fits_wholly(owned: Owned, model: Parameters) -> bool:
    """Say whether an optimizer has all parameters of a model: count, shapes and (in one group) order."""
    ids = owned.ids
    if not ids or owned.together or len(ids) != len(model.names):
        return False
    if len(owned.optimizer.groups) == 1:
        return all(
            owned.shapes.get(key, shape) == shape for key, shape in zip(ids, model.shapes, strict=True)
        )
    return Counter(owned.shapes.values()) <= Counter(model.shapes)


def _match(owned: Owned, model: Parameters) -> Names | None:
    """Name what a model leaves only one name for; None if the optimizer cannot be of this model."""
    if len(owned.optimizer.groups) == 1:
        return _match_by_order(owned, model)
    return _match_by_shape(owned, model)


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
        if early == end - late
    }
    return _outcome(owned, model, names, "order")


def _pick(wanted: Sequence[Shape | None], offered: Sequence[Shape]) -> list[int] | None:
    """Give the places of the first offered shapes that are the wanted ones in this order; None fits any."""
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
    offered = Counter(model.shapes)
    if len(owned.ids) > len(model.names) or not Counter(owned.shapes.values()) <= offered:
        return None
    name_of = dict(zip(model.shapes, model.names, strict=True))
    names = {key: name_of[shape] for key, shape in owned.shapes.items() if offered[shape] == 1}
    return _outcome(owned, model, names, "shape")


def _outcome(owned: Owned, model: Parameters, names: dict[Key, str], naming: Naming) -> Names:
    total = len(owned.shapes)
    named = sum(1 for key in owned.shapes if key in names)
    if named == total:
        reason = {
            "order": f"Count, order and shapes agree with {model.where}.",
            "shape": f"Each shape occurs once in {model.where}.",
        }[naming]
        return Names(names, naming, reason)
    groups = "its groups may be filled in any order" if naming == "shape" else "some may be left out"
    reason = (
        f"The shapes decide {named} of {total} against {model.where}, the others could be several: {groups}."
    )
    return Names(names, "partial" if named else "unknown", reason)
