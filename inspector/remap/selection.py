"""Which model of a checkpoint is meant, and what its tensors are called, told from the rows alone.

A row's role says whether it is a weight; what it stands in is its model. Nothing is guessed where two models
could be meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inspector.containers.formats import format_of
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint, Key, Role, Tensor, ValueRow
from inspector.model.once import once
from inspector.model.roles.roles import COUNT_OF_AVERAGES, DICTIONARIES, WRAPPER_PREFIXES
from inspector.remap.forms import Form, LeftOut
from inspector.units import cut_text

_WEIGHTS: frozenset[Role] = frozenset({"parameter", "buffer"})
_MOST_NAMES = 6
_MOST_CHARS = 80
_WHY: dict[Role, str] = {
    "parameter": "another model",
    "buffer": "another model",
    "optimizer": "the state of an optimizer",
    "scheduler": "the state of a scheduler",
    "rng": "the state of a random generator",
    "ema": "averaged weights",
    "other": "not among the model's weights",
}
_NO_TENSOR = "no tensor"
# Beside the averages, which Lightning's `WeightAveraging` saves as the state dict.
_BEFORE_AVERAGING = ("current_model_state",)
_GRAPH = "edge_index"  # of data, see `model.roles.roles`
_NO_WEIGHT = "an attribute or a constant of the program, which a state dict does not hold"

_PACKED = "its module packs it in its own way"


class Model(NamedTuple):
    """A model in a checkpoint.

    Attributes:
        path: The same as text; empty for the root.
        is_module: Whether it is a module with its class, not a dictionary of tensors.
        is_program: Whether its modules are mappings within mappings: names are the ways to the tensors.
    """

    keys: tuple[Key, ...]
    path: str
    is_module: bool
    is_average: bool
    is_program: bool = False

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.path or "the checkpoint itself"


# --- models -------------------------------------------------------------------------------------------------


def select_model(checkpoint: Checkpoint, form: Form) -> Model:
    """Return the model that a form takes."""
    if checkpoint.is_program:
        return _program(checkpoint)
    models = _models(checkpoint)
    wanted = form.path
    if wanted is None and any(model.path == form.strip_prefix for model in models if model.path):
        wanted = form.strip_prefix
    if wanted is not None:
        below = f"{wanted}/"
        found = [model for model in models if model.path == wanted]
        found = found or [model for model in models if model.path.startswith(below)]
        return _only(found, f"no weights stand at {wanted}", models)
    if form.ema:
        found = [model for model in models if model.is_average]
        return _only(found, "no averaged weights were recognized", models)
    found = [model for model in models if not model.is_average] or list(models)
    found = [model for model in found if model.keys[-1:] != _BEFORE_AVERAGING] or found
    main = format_of(checkpoint.format).weights_at
    found = [model for model in found if main and model.path == main] or found
    return _only(found, "no weights of a model were recognized", models)


def _program(checkpoint: Checkpoint) -> Model:
    if not any(row.role in _WEIGHTS for row in checkpoint.tensors):
        raise PlanError(
            "the model has no weights with names",
            where=checkpoint.path,
            remedy="it was frozen or packed, or is a function: no state dict has what it computes with",
        )
    return Model((), "", is_module=False, is_average=False, is_program=True)


def _only(found: Sequence[Model], otherwise: str, models: Sequence[Model]) -> Model:
    if len(found) == 1:
        return found[0]
    names = ", ".join(cut_text(model.label, _MOST_CHARS) for model in (found or models)[:_MOST_NAMES])
    if found:
        raise PlanError(
            "the file holds several models", where=names, remedy="name one: --strip-prefix with its path"
        )
    raise PlanError(otherwise, where=names or None)


@once
def _models(checkpoint: Checkpoint) -> tuple[Model, ...]:
    """Return the models of a checkpoint in file order; those within another are parts of it."""
    found: dict[tuple[Key, ...], Model] = {}
    strangers: dict[tuple[Key, ...], Model] = {}
    data: set[tuple[Key, ...]] = set()
    for row in checkpoint.tensors:
        if row.part_of is None and row.keys and isinstance(row.keys[-1], str):
            keys = _owner(row.keys)
            is_weight = row.role in _WEIGHTS or row.role == "ema"
            if not is_weight and _is_data(row):
                data.add(keys)
            where = found if is_weight else strangers
            if keys not in where and (is_weight or row.role == "other"):
                path = "/".join(row.path.split("/")[: len(keys)])
                where[keys] = Model(keys, path, row.keys[len(keys)] in DICTIONARIES, row.role == "ema")
    models = found or {keys: model for keys, model in strangers.items() if keys not in data}
    return tuple([model for keys, model in models.items() if not _is_inside(keys, models)])


def _is_data(row: Tensor) -> bool:
    """Return whether what holds a tensor is data: an object's own, or a graph."""
    return row.keys[-1] == _GRAPH or any(isinstance(key, str) and key.startswith(".") for key in row.keys)


def _owner(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    for place, key in enumerate(keys):
        if key in DICTIONARIES:
            return keys[:place]
    return keys[:-1]


def _is_inside(keys: tuple[Key, ...], models: Iterable[tuple[Key, ...]]) -> bool:
    return any(keys[:length] in models for length in range(len(keys)))


# --- names --------------------------------------------------------------------------------------------------


def name_in(model: Model, row: Tensor) -> str | None:
    """Return a row's name in its model as torch would; None if it has none there."""
    steps = row.keys[len(model.keys) :]
    if row.part_of is not None or not steps or row.keys[: len(model.keys)] != model.keys:
        return None
    if model.is_program:
        return ".".join(map(str, steps)) if row.role in _WEIGHTS else None
    if not model.is_module:
        return str(steps[0]) if len(steps) == 1 else None
    inner = steps[::2]
    is_regular = len(steps) % 2 == 0 and all(step in DICTIONARIES for step in inner)
    is_regular = is_regular and all(step == "._modules" for step in inner[:-1]) and inner[-1] != "._modules"
    return ".".join(map(str, steps[1::2])) if is_regular else None


def why_unwanted(model: Model, name: str) -> str:
    """Return why an entry of a model is none of its weights, or nothing."""
    is_count = model.is_average and name == COUNT_OF_AVERAGES
    return "counts what was averaged, and is no weight" if is_count else ""


def find_prefix(form: Form, names: Sequence[str]) -> str:
    """Return what is removed from the front of all names: what was asked for, or what wrappers put there."""
    asked = form.strip_prefix or ""
    if asked:
        others = [name for name in names if not name.startswith(asked) or name == asked]
        if others:
            shown = ", ".join(cut_text(name, _MOST_CHARS) for name in others[:_MOST_NAMES])
            raise PlanError(f"{len(others):,} names do not begin with {asked!r}", where=shown)
        return asked
    found = ""
    while form.only_weights and (more := _wrapper_of(names, found)):
        found += more
    return found


def _wrapper_of(names: Sequence[str], found: str) -> str:
    for wrapper in WRAPPER_PREFIXES:
        prefix = found + wrapper
        if names and all(name.startswith(prefix) and name != prefix for name in names):
            return wrapper
    return ""


def without_choice(form: Form, model: Model) -> Form:
    """Take the prefix out of a form where it named a model instead."""
    if form.path is None and form.strip_prefix is not None and form.strip_prefix == model.path:
        return form.with_path(model.path)
    return form


# --- what is left out ---------------------------------------------------------------------------------------


def left_beside(checkpoint: Checkpoint, model: Model) -> list[LeftOut]:
    """Return the branches of a checkpoint that are not the model, each in one row."""
    rows: dict[tuple[Key, ...], LeftOut] = {}
    if not (model.keys or model.is_program or model.is_module):
        return []  # the checkpoint itself: nothing stands beside it
    every: tuple[Tensor | ValueRow, ...] = (*checkpoint.tensors, *checkpoint.values)
    for row in every:
        depth = _common(row.keys, model.keys)
        if model.is_program and isinstance(row, Tensor) and row.part_of is None and row.role == "other":
            rows[row.keys] = LeftOut(row.path, _NO_WEIGHT, 1, row.nbytes)
        if model.is_module and isinstance(row, Tensor) and _is_packed(model, row):
            rows[row.keys] = LeftOut(row.path, _PACKED, 1, row.nbytes, is_lost=True)
        if depth == len(model.keys):
            continue
        branch = row.keys[: depth + 1]
        known = rows.get(branch)
        if known is None:
            path = "/".join(row.path.split("/")[: depth + 1])
            known = LeftOut(path, _WHY[row.role] if isinstance(row, Tensor) else _NO_TENSOR, 0, 0)
        if isinstance(row, Tensor) and row.part_of is None:
            why = known.why if known.tensors else _WHY[row.role]
            known = LeftOut(known.path, why, known.tensors + 1, known.nbytes + row.nbytes)
        rows[branch] = known
    return list(rows.values())


def _is_packed(model: Model, row: Tensor) -> bool:
    """Return whether a weight of a module stands where its state dict has no name for it."""
    is_own = row.keys[: len(model.keys)] == model.keys and row.part_of is None
    return is_own and row.role in _WEIGHTS and name_in(model, row) is None


def _common(keys: tuple[Key, ...], others: tuple[Key, ...]) -> int:
    depth = 0
    for key, other in zip(keys, others, strict=False):
        if key != other:
            break
        depth += 1
    return depth
