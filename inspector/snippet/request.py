"""What a style is asked to write: the file, what is in it under which variables, and where it goes."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, Optimizer
from inspector.records import dataclass
from inspector.snippet.inventory import Inventory
from inspector.snippet.literals import lookup
from inspector.snippet.models import Keys, Model
from inspector.snippet.owners import Owned, find_owned, likeness
from inspector.snippet.placement import Placement
from inspector.snippet.variables import Names
from inspector.target.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Something with a state dict in the file besides the models.

    Attributes:
        kind: `optimizer`, `scheduler`, `scaler` or `average`.
        is_object: Whether an optimizer itself stands there, not its state.
    """

    kind: str
    name: str
    keys: Keys
    owned: Owned = Owned()
    groups: tuple[int, ...] = ()
    optimizer: int | None = None
    is_object: bool = False

    def state_in(self, root: str) -> str:
        """Return the code for its state dict, in what was loaded."""
        return lookup(root, self.keys) + (".state_dict()" if self.is_object else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One snippet to be written.

    Attributes:
        all_models: The models with a variable for each, averages among them.
        parts: What else has a state dict: an optimizer, its schedulers, the next one, scalers, averages.
        plain: Counters and other values that are no tensors, with a variable for each.
    """

    checkpoint: Checkpoint
    inventory: Inventory
    placement: Placement
    target: Profile
    path: str
    all_models: tuple[tuple[str, Model], ...]
    parts: tuple[Part, ...]
    loose: tuple[tuple[str, Keys], ...]
    plain: tuple[tuple[str, Keys], ...] = ()

    @property
    def models(self) -> tuple[tuple[str, Model], ...]:
        """The models with a variable for each, but for averages of them, unless there is nothing else."""
        own = tuple((name, model) for name, model in self.all_models if not model.is_average)
        return own or self.all_models

    @property
    def averages(self) -> tuple[tuple[str, Model], ...]:
        """The averages of models, with a variable for each."""
        taken = {name for name, _ in self.models}
        return tuple((name, model) for name, model in self.all_models if name not in taken)

    @property
    def model_devices(self) -> tuple[str, ...]:
        """The saved devices of all models."""
        return tuple(device for model in self.inventory.models for device in model.devices)

    @property
    def root(self) -> str:
        """The variable for what `torch.load` gives back."""
        if self.checkpoint.root == "tensor":
            return "tensor"
        at_root = [model for model in self.inventory.models if not model.keys]
        if not at_root or at_root[0].is_mixed:
            return "checkpoint"
        if not at_root[0].is_module:
            return "state_dict"
        return next(name for name, model in self.all_models if not model.keys)


def build_request(
    checkpoint: Checkpoint, inventory: Inventory, placement: Placement, target: Profile, path: str
) -> Request:
    """Name everything in a file, each once."""
    names = Names(_imported(checkpoint))
    ordered = sorted(inventory.models, key=lambda model: bool(model.keys))  # the root's own name is fixed
    named = {id(model): names.give("model", model.keys) for model in ordered}
    models = tuple((named[id(model)], model) for model in inventory.models)
    return Request(
        checkpoint=checkpoint,
        inventory=inventory,
        placement=placement,
        target=target,
        path=path,
        all_models=models,
        parts=_parts(checkpoint, inventory, names, models),
        loose=tuple((names.give("tensor", keys), keys) for keys in inventory.loose),
        plain=(
            *inventory.counters,
            *((names.give("value", keys), keys) for keys in inventory.plain),
        ),
    )


def _imported(checkpoint: Checkpoint) -> set[str]:
    """Return the names that imports of the file's own globals may bind."""
    return {
        part
        for use in checkpoint.globals
        for part in (use.name.partition(".")[0], use.name.rpartition(".")[2])
    }


def _parts(
    checkpoint: Checkpoint, inventory: Inventory, names: Names, models: tuple[tuple[str, Model], ...]
) -> tuple[Part, ...]:
    optimizers = [_optimizer(checkpoint, optimizer, names, models) for optimizer in inventory.optimizers]
    schedulers = []
    for place, keys in enumerate(inventory.schedulers):
        name = names.give("scheduler", keys)
        optimizer = _optimizer_of(place, Part(kind="scheduler", name=name, keys=keys), inventory, optimizers)
        schedulers.append(Part(kind="scheduler", name=name, keys=keys, optimizer=optimizer))
    parts: list[Part] = []
    for number, optimizer_part in enumerate(optimizers):
        parts += [optimizer_part, *(part for part in schedulers if part.optimizer == number)]
    parts += [part for part in schedulers if part.optimizer is None]
    for kind, places in (("scaler", inventory.scalers), ("average", inventory.averages)):
        parts += [Part(kind=kind, name=names.give(kind, keys), keys=keys) for keys in places]
    return tuple(parts)


def _optimizer(
    checkpoint: Checkpoint, optimizer: Optimizer, names: Names, models: tuple[tuple[str, Model], ...]
) -> Part:
    name = names.give("optimizer", optimizer.keys)
    owned = find_owned(checkpoint, optimizer, name, models)
    return Part(
        kind="optimizer",
        name=name,
        keys=optimizer.keys,
        owned=owned,
        groups=optimizer.groups,
        is_object=optimizer.is_object,
    )


def _optimizer_of(place: int, scheduler: Part, inventory: Inventory, optimizers: list[Part]) -> int | None:
    """Return the optimizer of a scheduler: the only one, the one beside it, of its name, or of its place."""
    if len(optimizers) == 1:
        return 0
    beside = [at for at, part in enumerate(optimizers) if part.keys[:-1] == scheduler.keys[:-1]]
    if len(beside) == 1 and scheduler.keys[1:]:
        return beside[0]
    named = [at for at, part in enumerate(optimizers) if likeness(part.name, scheduler.name)]
    if len(named) == 1:
        return named[0]
    return place if len(inventory.schedulers) == len(optimizers) else None
