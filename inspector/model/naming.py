"""Optimizer slots under the name of their parameter: certain, or not at all.

A file that says the names is believed. Otherwise `Optimizer.state_dict` numbers parameters in the order in
which they were handed over, which is the model's order when nothing was regrouped. So a number is given a
name only if counts and shapes leave a single possibility; wherever two parameters could be meant, the slots
stay without a name and the optimizer says so.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from inspector.model.checkpoint import Key, Naming
from inspector.model.optimizer import OptimizerDraft
from inspector.model.roles import ModelDraft

Shape = tuple[int, ...]
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


def name_parameters(optimizer: OptimizerDraft, shapes: Shapes, models: list[ModelDraft]) -> Names:
    """Name an optimizer's parameters.

    Args:
        optimizer: The optimizer.
        shapes: For each parameter with state, the shape that its slots share (see `slot_shape`).
        models: The candidates to whose parameters it may belong.
    """
    said = _names_in_file(optimizer)
    if said is not None:
        return said
    outcomes = [outcome for model in models if (outcome := _match(optimizer, shapes, model)) is not None]
    best = [outcome for outcome in outcomes if outcome.naming == "order"] or outcomes
    if not best:
        return Names({}, "unknown", "No set of parameters in this file fits the optimizer's count and shapes.")
    if all(outcome.by_id == best[0].by_id for outcome in best):
        return best[0]
    return Names({}, "unknown", "Several sets of parameters in this file fit this optimizer equally well.")


def slot_shape(slots: list[tuple[str, Shape]]) -> Shape | None:
    """Give the shape of the parameter that these slots belong to, or None if they do not tell.

    Slots shaped like the parameter (`exp_avg`) outnumber or equal in rank all others (`step` is a scalar,
    factored moments have fewer dimensions), so the shape of highest rank counts, and it must be unique.
    """
    shapes = {shape for name, shape in slots if name != "step"}
    if not shapes:
        return None
    rank = max(len(shape) for shape in shapes)
    highest = [shape for shape in shapes if len(shape) == rank]
    return highest[0] if len(highest) == 1 else None


def _names_in_file(optimizer: OptimizerDraft) -> Names | None:
    ids = [key for group in optimizer.groups for key in group.ids]
    names = [name for group in optimizer.groups for name in group.names]
    if names and len(names) == len(ids):
        return Names(dict(zip(ids, names, strict=True)), "names", "The file names them (param_names).")
    texts = [key for key in optimizer.state_ids if isinstance(key, str)]
    if texts and len(texts) == len(optimizer.state_ids):
        return Names({key: key for key in texts}, "names", "The optimizer's state is kept by parameter name.")
    return None


def _match(optimizer: OptimizerDraft, shapes: Shapes, model: ModelDraft) -> Names | None:
    ids = [key for group in optimizer.groups for key in group.ids]
    parameters = _without_ties(model)
    where = "/".join(str(key) for key in model.keys) or "the checkpoint"
    if len(optimizer.groups) == 1 and len(ids) == len(parameters):
        if all(_fits(shapes.get(key), shape) for key, (_, shape) in zip(ids, parameters, strict=True)):
            names = {key: name for key, (name, _) in zip(ids, parameters, strict=True)}
            return Names(names, "order", f"Count, order and shapes agree with {where}.")
        return None
    return _match_by_shape(optimizer, shapes, parameters, where)


def _fits(slot: Shape | None, parameter: Shape) -> bool:
    return slot is None or slot == parameter


def _without_ties(model: ModelDraft) -> list[tuple[str, Shape]]:
    """Give the parameters as `Module.parameters` does: those that share their data count once."""
    first: dict[object, tuple[str, Shape]] = {}
    for name, shape, view in zip(model.names, model.shapes, model.views, strict=True):
        first.setdefault(view, (name, shape))
    return list(first.values())


def _match_by_shape(
    optimizer: OptimizerDraft, shapes: Shapes, parameters: list[tuple[str, Shape]], where: str
) -> Names | None:
    """Name what the shapes alone decide: a shape whose parameters all lie in one group keeps its order there."""
    wanted, offered = defaultdict(list), defaultdict(list)
    for number, group in enumerate(optimizer.groups):
        for key in group.ids:
            if key in shapes:
                wanted[shapes[key]].append((number, key))
    for name, shape in parameters:
        offered[shape].append(name)
    if not wanted or any(len(keys) > len(offered[shape]) for shape, keys in wanted.items()):
        return None
    names: dict[Key, str] = {}
    for shape, keys in wanted.items():
        if len(keys) == len(offered[shape]) and len({number for number, _ in keys}) == 1:
            names.update(zip((key for _, key in keys), offered[shape], strict=True))
    total = sum(len(keys) for keys in wanted.values())
    if not names:
        return None
    if len(names) == total:
        return Names(names, "shape", f"The shapes allow one assignment to {where} only.")
    return Names(names, "partial", f"The shapes decide {len(names)} of {total} against {where}; the others stay unnamed.")
