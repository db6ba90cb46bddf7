"""The part of a model that an optimizer trains: the one that it is named after, or all but frozen copies.

Agents keep several networks in one state dict and an optimizer for each: `actor.optimizer` trains what stands
below `actor.` (`_get_torch_save_params` in `stable_baselines3/sac/sac.py`). A network that is evaluated as a
target is a copy of another that no optimizer sees (`stable_baselines3/dqn/policies.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from inspector.model.checkpoint import Key
from inspector.model.optimizer.parameters import Parameters, Shape

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
        for part in _parts(keys, models)
        if spend(len(shapes)) and len(part.shapes) == len(shapes) and all(map(_fits, shapes, part.shapes))
    ]
    return fitting[0] if len(fitting) == 1 else None


def _fits(told: Shape | None, shape: Shape) -> bool:
    return told is None or told == shape


def _parts(keys: Sequence[Key], models: Sequence[Parameters]) -> Iterator[Parameters]:
    last = keys[-1] if keys else ""
    named = _OWNER.match(last) if isinstance(last, str) else None
    name = named[1] if named is not None else ""
    for model in models:
        branches = _branches(model)
        if not model.is_ordered or not 1 < len(branches) <= _MOST_BRANCHES:
            continue
        copies = _copies(branches)
        if name in branches:
            yield _part(model, branches[name], f"{name} of {model.where}")
        elif copies:
            left = [place for own, places in branches.items() if own not in copies for place in places]
            yield _part(model, sorted(left), f"{model.where} without {' and '.join(sorted(copies))}")


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


def _part(model: Parameters, places: Sequence[int], where: str) -> Parameters:
    names, shapes = [model.names[place] for place in places], [model.shapes[place] for place in places]
    return Parameters(where, names, shapes, model.paths)
