"""The parts of a checkpoint that code restores one by one: models, losses, optimizers, random states, data.

The form in which a part lies in the file decides how code can restore it. A state dict is copied into tensors
that the code has made, an object brings its own tensors along, loose tensors are used as they come. So only
of the last two the file says where they are afterwards.

Rows are grouped by the text of their paths, not by their keys: Python hashes tuples of integers without a
secret, so that a file could make them collide.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from inspector.model.checkpoint import Checkpoint, Key, Role, Tensor
from inspector.model.once import once
from inspector.model.roles.roles import DICTIONARIES
from inspector.records import dataclass
from inspector.target.after.losses import is_loss_name, is_loss_weight
from inspector.target.after.states import state_folders

# What a model is built with: its loss is a part of it then, and moves with it.
_ARGUMENTS = frozenset({"hyper_parameters", "hparams", "config", "cfg", "args"})
_MOST_NESTED = 8
_OPTIMIZER_KEYS = frozenset({"state", "param_groups", ".state", ".param_groups"})


class Kind(StrEnum):
    """What a part is for."""

    MODEL = "model"
    LOSS = "loss"
    AVERAGE = "average"
    """Averaged weights (EMA, SWA)."""
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    RNG = "rng"
    DATA = "data"
    """Anything else: replay buffers, batches, anchors, embeddings, constants."""


class Form(StrEnum):
    """How a part lies in the file, which decides how code restores it."""

    STATE = "state"
    """A state dict: `load_state_dict` copies it into tensors that the code has."""
    OBJECT = "object"
    """A whole pickled object, such as a module: it comes with its own tensors."""
    TENSORS = "tensors"
    """Tensors that are used as `torch.load` returns them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part.

    Attributes:
        kind: What it is for.
        form: How it lies in the file.
        keys: Where it stands.
        path: The same as text.
        rows: Its tensors, as indexes of the checkpoint's rows; parts of composite tensors are left out.
    """

    kind: Kind
    form: Form
    keys: tuple[Key, ...]
    path: str
    rows: tuple[int, ...]

    def tensors(self, checkpoint: Checkpoint) -> tuple[Tensor, ...]:
        """Return its tensors."""
        return tuple(checkpoint.tensors[row] for row in self.rows)

    def devices(self, checkpoint: Checkpoint) -> tuple[str, ...]:
        """Return the devices that its tensors were saved on, each once, those without data left out."""
        rows = checkpoint.tensors
        found = dict.fromkeys([rows[row].device for row in self.rows])
        return tuple(device for device in found if device != "meta")


class Place(NamedTuple):
    """What a tensor belongs to.

    Attributes:
        kind: The kind of the part.
        form: Its form.
        length: How many of the tensor's keys lead to it.
    """

    kind: Kind
    form: Form
    length: int


@once
def parts_of(checkpoint: Checkpoint) -> tuple[Part, ...]:
    """Sort the tensors of a checkpoint into parts, in the order of their first tensor."""
    sorter = sorter_of(checkpoint)
    drafts: dict[tuple[str, Place], _Draft] = {}
    known: dict[tuple[str, Role], list[int]] = {}
    wide: dict[tuple[str, Role], list[int]] = {}
    for index, row in enumerate(checkpoint.tensors):
        if row.part_of is not None:
            continue
        # Most rows stand beside one of the same role, and belong where that belongs.
        folder = row.path[: row.path.rfind("/") + 1]
        beside = folder, row.role
        # So do the slots of all parameters of an optimizer.
        around = folder[: folder.rfind("/", 0, -1) + 1], row.role
        rows = known.get(beside) or wide.get(around)
        if rows is None:
            place = sorter.place(row)
            start = _start(row.path, place.length)
            draft = drafts.setdefault((start, place), _Draft(row.keys[: place.length], []))
            rows = draft.rows
            if not _is_by_name(row, place):
                known[beside] = rows
            if place.kind is Kind.OPTIMIZER and place.length < len(row.keys) - 1:
                wide[around] = rows
        rows.append(index)
    return tuple(
        Part(kind=place.kind, form=place.form, keys=draft.keys, path=path, rows=tuple(draft.rows))
        for (path, place), draft in drafts.items()
    )


class _Draft(NamedTuple):
    """A part that is being collected: where it stands, and its rows so far."""

    keys: tuple[Key, ...]
    rows: list[int]


def _is_by_name(row: Tensor, place: Place) -> bool:
    """Return whether the last key of a row had a say, so that it tells nothing of those beside it."""
    if place.form is Form.OBJECT:
        return len(row.keys) == place.length + 2
    return place.form is Form.TENSORS and place.kind in {Kind.LOSS, Kind.DATA}


def _start(path: str, length: int) -> str:
    return "/".join(path.split("/", length)[:length])


class Sorter:
    """Sorts the tensors of a checkpoint into the parts that they belong to."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Look for what makes a part: optimizers, whole modules, names of weights."""
        self._states = {one.path for one in checkpoint.optimizers}
        self._objects = set(_pickled_optimizers(checkpoint))
        self._modules = set(_modules(checkpoint))
        self._states_in = state_folders(checkpoint)

    def place(self, row: Tensor) -> Place:
        """Return what a tensor belongs to; one that is a part of another belongs where that does."""
        optimizer = self._optimizer(row)
        if optimizer is not None:
            return optimizer
        above = max(len(row.keys) - 1, 0)
        if row.role == "rng":
            return Place(Kind.RNG, Form.TENSORS, above)
        module = self.module_of(row)
        if module is not None:
            return Place(_kind_of_module(row, module), Form.OBJECT, module)
        if row.role == "scheduler":
            return Place(Kind.SCHEDULER, Form.STATE, above)
        return self._in_folder(row, above)

    def _optimizer(self, row: Tensor) -> Place | None:
        """Return the optimizer that a row belongs to: one whose path the row's begins with."""
        for length in _places_of(row, _OPTIMIZER_KEYS):
            start = _start(row.path, length)
            if start in self._objects:
                return Place(Kind.OPTIMIZER, Form.OBJECT, length)
            if start in self._states:
                return Place(Kind.OPTIMIZER, Form.STATE, length)
        if row.role == "optimizer":
            return Place(Kind.OPTIMIZER, Form.TENSORS, max(len(row.keys) - 1, 0))
        return None

    def module_of(self, row: Tensor) -> int | None:
        """Return how many keys lead to the whole module that a row belongs to, or None.

        A tensor that is a plain attribute of it stands in none of its dictionaries.
        """
        if not _has_attributes(row):
            return None
        first = next(_places_of(row, DICTIONARIES), None)
        attributes = (at for at, key in enumerate(row.keys) if isinstance(key, str) and key.startswith("."))
        for at in islice(attributes, _MOST_NESTED if self._modules else 0):
            if at == first or _start(row.path, at) in self._modules:
                return at
        return first

    def _in_folder(self, row: Tensor, above: int) -> Place:
        """Sort a row outside of modules and optimizers: by what it stands among."""
        form = Form.STATE if row.path.rpartition("/")[0] in self._states_in else Form.TENSORS
        if row.role == "ema":
            return Place(Kind.AVERAGE, form, above)
        if form is Form.STATE:
            return Place(
                Kind.LOSS if above and is_loss_name(row.keys[above - 1]) else Kind.MODEL, form, above
            )
        is_loss = bool(row.keys) and is_loss_weight(row.keys[-1]) and row.keys[0] not in _ARGUMENTS
        return Place(Kind.LOSS if is_loss else Kind.DATA, form, above)


@once
def sorter_of(checkpoint: Checkpoint) -> Sorter:
    """Return what sorts the tensors of a checkpoint, which is looked through once."""
    return Sorter(checkpoint)


def _places_of(row: Tensor, names: frozenset[str]) -> Iterator[int]:
    """Return where these names stand among the keys of a row, the first few."""
    found = (at for at, key in enumerate(row.keys) if key in names)
    return islice(found, _MOST_NESTED)


def _pickled_optimizers(checkpoint: Checkpoint) -> Iterator[str]:
    """Find whole optimizers: objects that list their parameters themselves, not by number."""
    for row in _with_attributes(checkpoint):
        keys = row.keys
        if len(keys) > 3 and keys[-4] == ".param_groups" and keys[-2] == "params":
            yield _start(row.path, len(keys) - 4)


def _modules(checkpoint: Checkpoint) -> Iterator[str]:
    """Find whole modules: objects with dictionaries of parameters, buffers or other modules."""
    for row in _with_attributes(checkpoint):
        yield from (_start(row.path, at) for at in islice(_places_of(row, DICTIONARIES), 1))


@once
def _with_attributes(checkpoint: Checkpoint) -> tuple[Tensor, ...]:
    return tuple(filter(_has_attributes, checkpoint.tensors))


def _has_attributes(row: Tensor) -> bool:
    """Return whether attributes lead to a row; quickly, since most files have none."""
    return "/." in row.path or row.path.startswith(".")


def _kind_of_module(row: Tensor, inside: int) -> Kind:
    """Return whether it is a loss or a model: a loss is called so, or has weights that only a loss has."""
    if row.role == "ema":
        return Kind.AVERAGE
    is_loss = (inside and is_loss_name(row.keys[inside - 1])) or (
        len(row.keys) == inside + 2 and is_loss_weight(row.keys[-1])
    )
    return Kind.LOSS if is_loss else Kind.MODEL
