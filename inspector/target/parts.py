"""The parts of a checkpoint that code restores one by one: models, losses, optimizers, data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import NamedTuple

from inspector.model.checkpoint import Checkpoint, Key, OddKey, Tensor
from inspector.model.once import once
from inspector.model.roles.roles import DICTIONARIES
from inspector.records import dataclass

_MOST_NAME = 80


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what tells a loss and the weights of one by their names, compiled when they are needed."""
    part = r"(?:cls|class|bbox|box|reg|iou|mask|obj|dfl|ce|bce|kl|mse|l1)"
    loss = rf"(?:\w{{1,30}}_)?(?:criteri(?:on|a)|loss(?:es)?|loss_?f(?:n|unc|unction)|loss_{part})[0-9_]*"
    weights = r"(?:.*[._])?(?:pos|class|cls|loss)_weights?"
    return re.compile(loss, re.IGNORECASE), re.compile(weights, re.IGNORECASE)


def is_loss_name(key: Key) -> bool:
    """Return whether a key is a usual name of a loss module: `criterion`, `loss_fn`, `loss_cls`."""
    return isinstance(key, str) and _patterns()[0].fullmatch(key.removeprefix(".")) is not None


def is_loss_weight(key: Key) -> bool:
    """Return whether a key is a usual name of the weights of a loss: `pos_weight`, `class_weights`."""
    return isinstance(key, str) and _patterns()[1].fullmatch(key[-_MOST_NAME:]) is not None


# ------------------------------------------------------------------------------------------------------------
# Which mappings of tensors are state dicts: what code hands to `load_state_dict`, and what it copies from.
#
# Nothing in a file says so. A mapping from names to tensors is one, unless it looks like data: the columns of
# a replay buffer or of a batch, or the samples of a data set, many mappings of the same names.

_OF_MODEL = frozenset({"parameter", "buffer", "ema", "other"})
"""The roles of tensors that can be part of a model; the last needs a name that says so."""
_WEIGHT = re.compile(r"\.(weight|bias)$")
# What a replay buffer or a batch calls its columns; a state dict of one layer has none of these names.
_WORDS = """
    obs ob observation observations next_obs next_observation next_observations state states next_state
    next_states action actions reward rewards done dones terminal terminals truncated mask masks log_prob
    log_probs logp value values returns return advantage advantages x y input inputs target targets label
    labels image images img imgs data batch sample samples priorities
"""
_COLUMNS = frozenset(_WORDS.split())
_MOST_ALIKE = 4


@once
def weights_by_folder(checkpoint: Checkpoint) -> dict[str, list[Tensor]]:
    """Return the tensors that can be weights, by the mapping that they stand in: data among them."""
    folders: dict[str, list[Tensor]] = {}
    for tensor in checkpoint.tensors:
        if tensor.role in _OF_MODEL and _is_weight(tensor):
            folders.setdefault(tensor.path.rpartition("/")[0], []).append(tensor)
    return folders


@once
def state_folders(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the mappings that are state dicts, by their paths; those within whole modules are among them."""
    alike: dict[str, int] = {}
    folders = weights_by_folder(checkpoint)
    return frozenset(
        folder
        for folder, tensors in folders.items()
        if not _are_attributes(tensors) and not _are_samples(tensors, alike)
    )


def _are_attributes(tensors: list[Tensor]) -> bool:
    return any(str(tensor.keys[-1]).startswith(".") for tensor in tensors)


def _is_weight(tensor: Tensor) -> bool:
    """Return whether a tensor can be part of a model: it stands under a name and is not a part itself."""
    name = tensor.keys[-1] if tensor.keys else 0
    if not isinstance(name, str) or isinstance(name, OddKey):
        return False
    if tensor.part_of is not None or tensor.layout == "storage":
        return False
    if tensor.role == "other":  # a mapping of one tensor may be anything, unless a name says what it is
        above = tensor.keys[-2] if len(tensor.keys) > 1 else ""
        return _WEIGHT.search(name) is not None or is_loss_name(above)
    return True


def _are_samples(tensors: list[Tensor], alike: dict[str, int]) -> bool:
    """Return whether tensors side by side are rows of data, and no state dict."""
    names = [str(tensor.keys[-1]) for tensor in tensors]
    if any("." in name or name in {"weight", "bias"} for name in names):
        return False
    if any(name.lower() in _COLUMNS for name in names):
        return True
    if not any(isinstance(key, int) for key in tensors[0].keys):
        return False
    kind = "\n".join(names)
    alike[kind] = alike.get(kind, 0) + 1
    return alike[kind] > _MOST_ALIKE


# ------------------------------------------------------------------------------------------------------------
# The parts of a checkpoint that code restores one by one: models, losses, optimizers, random states, data.
#
# The form in which a part lies in the file decides how code can restore it. A state dict is copied into
# tensors that the code has made, an object brings its own tensors along, loose tensors are used as they come.
# So only of the last two the file says where they are afterwards.
#
# Rows are grouped by the text of their paths, not by their keys: Python hashes tuples of integers without a
# secret, so that a file could make them collide.

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
    """What a tensor belongs to."""

    kind: Kind
    form: Form
    length: int


@once
def parts_of(checkpoint: Checkpoint) -> tuple[Part, ...]:
    """Sort the tensors of a checkpoint into parts, in the order of their first tensor."""
    sorter = sorter_of(checkpoint)
    drafts: dict[tuple[str, Place], tuple[tuple[Key, ...], list[int]]] = {}
    for index, row in enumerate(checkpoint.tensors):
        if row.part_of is None:
            place = sorter.place(row)
            start = _start(row.path, place.length), place
            drafts.setdefault(start, (row.keys[: place.length], []))[1].append(index)
    return tuple(
        Part(kind=place.kind, form=place.form, keys=keys, path=path, rows=tuple(rows))
        for (path, place), (keys, rows) in drafts.items()
    )


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
