"""What a style is asked to write: the file, what is in it under which variables, and where it goes."""

from __future__ import annotations

import builtins
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations
from keyword import iskeyword, issoftkeyword

from inspector.model.checkpoint import Checkpoint, Key, Optimizer, Tensor
from inspector.model.optimizer.parameters import salted, slot_shape
from inspector.records import dataclass
from inspector.snippet.inventory import Inventory
from inspector.snippet.literals import lookup
from inspector.snippet.models import Keys, Model, Shape
from inspector.snippet.placement import Placement
from inspector.target.profile import Profile

# Variables for what a file holds, named after its keys: `netG` for what stands under `netG_state_dict`.
#
# A key enters only by its letters, digits and underscores, and never as a name that means something in
# Python, in torch or in the code around it; so no key can change what the code does.

_MOST_CHARS = 40
_ODD = re.compile(r"[^0-9A-Za-z]+")
_TAIL = re.compile(r"(^|_)(state_?dicts?|states?|sd|weights?|params|parameters)$", re.IGNORECASE)
_HEAD = re.compile(r"^state_?dict_?", re.IGNORECASE)
# These say what kind of thing it is, or nothing: the key above says more, and else the kind itself.
_GENERIC = frozenset(
    {"model", "models", "module", "modules", "network", "networks", "nets", "checkpoint", "ckpt", "best"}
)
_PLURALS = {
    "optimizers": "optimizer",
    "optims": "optim",
    "schedulers": "scheduler",
    "lr_schedulers": "lr_scheduler",
    "scalers": "scaler",
}
# By kind, what a name must have in it for people to see what it stands for.
_SIGNS = {
    "optimizer": ("opt",),
    "scheduler": ("sched", "lr", "warmup", "plateau"),
    "scaler": ("scal", "amp"),
}
# Variables and imports of the code itself.
_WORDS = """
    torch numpy np dist nn F dcp device checkpoint state_dict states data dataset loader batch saved tensor
    file files entries local_rank index options epoch step accelerator engine folder base tokenizer
    inputs outputs hyper_parameters MyModel program script k v part move to_cpu names groups group shared kind
    numbers rest deepspeed transformers accelerate peft safetensors lightning self cls
"""
_OWN = frozenset(_WORDS.split())


def is_free(name: str) -> bool:
    """Return whether a name means nothing in Python, in its library or in the code of the styles."""
    return not (
        iskeyword(name)
        or issoftkeyword(name)
        or name in _OWN
        or name in sys.stdlib_module_names
        or hasattr(builtins, name)
    )


class Names:
    """The variables of one snippet: each is given once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """Begin with names that are taken already, such as those of imports."""
        self._taken = set(taken)

    def give(self, kind: str, keys: tuple[Key, ...]) -> str:
        """Return a new variable for a thing of a kind: `model`, `optimizer`, `scheduler` or `scaler`."""
        words = list(_words(kind, keys))
        wanted = [_signed(kind, words[-1])] if words else [kind]
        if len(words) > 1 and words[-2] not in words[-1]:
            wanted.append(f"{words[-2]}_{wanted[0]}"[:_MOST_CHARS])
        name = next((name for name in wanted if name not in self._taken and is_free(name)), wanted[0])
        name = name if is_free(name) else f"{name}_{kind}"
        found, number = name, 2
        while found in self._taken:
            found, number = f"{name}_{number}", number + 1
        self._taken.add(found)
        return found


def _words(kind: str, keys: tuple[Key, ...]) -> Iterator[str]:
    """Yield what the keys say, from the outermost to the innermost."""
    for key in keys:
        name = _clean(key) if isinstance(key, str) else ""
        name = _PLURALS.get(name.lower(), name)
        if name and name.lower() not in _GENERIC and name.lower() != kind:
            yield name if name[0].isalpha() else f"{kind}_{name}"


def _clean(key: str) -> str:
    """Return what of a key can be part of a name: no underscore at its ends, which mean something."""
    name = _ODD.sub("_", key[: 4 * _MOST_CHARS]).strip("_")
    return _TAIL.sub("", _HEAD.sub("", name)).strip("_")[:_MOST_CHARS].strip("_")


def _signed(kind: str, name: str) -> str:
    signs = _SIGNS.get(kind, ())
    return name if not signs or any(sign in name.lower() for sign in signs) else f"{kind}_{name}"


# Which models an optimizer was made for: told by count, order and shapes, then by names.
#
# An optimizer's state dict numbers its parameters in the order in which they were handed over, so that one
# over two modules, `itertools.chain(encoder.parameters(), decoder.parameters())`, says in which order that
# was.

Shapes = dict[int, Shape]
"""By place in the optimizer."""

_MOST_CHAINED = 4
_MOST_MODELS = 6
_MOST_ORDERED = 5_000
_MOST_SLOTS = 8
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_REQUEST_WORDS = "optimizer optim opt scheduler sched lr net model state dict adam adamw sgd"
_EMPTY = frozenset(_REQUEST_WORDS.split())
# One of two models of one kind that no optimizer trains.
_FOLLOWERS = frozenset({"target", "ema", "teacher", "avg", "average", "momentum", "frozen", "old", "ref"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """What an optimizer holds.

    Attributes:
        models: The numbers of its models, in the order of its parameters; empty where nothing tells.
        is_part: Whether it holds some of their parameters only.
        is_ordered: Whether no other order fits as well.
    """

    models: tuple[int, ...] = ()
    is_part: bool = False
    is_ordered: bool = True


def find_owned(
    checkpoint: Checkpoint, optimizer: Optimizer, name: str, models: Sequence[tuple[str, Model]]
) -> Owned:
    """Find the models of an optimizer."""
    trained = [place for place, (_, model) in enumerate(models) if model.shapes and not model.is_average]
    shapes = _shapes(checkpoint, optimizer)
    in_order = len(optimizer.groups) < 2
    whole = [
        place
        for place in trained
        if _fits(optimizer.parameters, shapes, models[place][1].shapes, in_order=in_order)
    ]
    if whole:
        return Owned(models=(_by_name(name, whole, models),))
    chains = _chains(optimizer.parameters, shapes, trained[:_MOST_MODELS], models)
    if chains:
        return Owned(models=chains[0], is_ordered=len(chains) == 1)
    part = [
        place
        for place in trained
        if len(models[place][1].shapes) > optimizer.parameters and _is_part(shapes, models[place][1].shapes)
    ]
    return Owned(models=(_by_name(name, part, models),), is_part=True) if part and shapes else Owned()


def _shapes(checkpoint: Checkpoint, optimizer: Optimizer) -> Shapes:
    """Return the shapes that the slots tell, by the number of the parameter."""
    depth, start = len(optimizer.keys), f"{optimizer.path}/state/" if optimizer.path else "state/"
    slots: dict[str, list[Tensor]] = {}
    numbers: dict[str, Key] = {}
    for tensor in checkpoint.tensors:
        if tensor.slot is not None and tensor.path.startswith(start) and tensor.part_of is None:
            number = tensor.path[len(start) :].partition("/")[0]
            numbers[number] = tensor.keys[depth + 1]
            listed = slots.setdefault(number, [])
            if len(listed) < _MOST_SLOTS:
                listed.append(tensor)
    found = ((numbers[number], slot_shape(listed)) for number, listed in slots.items())
    return {
        number: shape
        for number, shape in found
        if isinstance(number, int) and 0 <= number < optimizer.parameters and shape is not None
    }


def _fits(count: int, shapes: Shapes, offered: Sequence[Shape], *, in_order: bool) -> bool:
    """Return whether these are all parameters of an optimizer."""
    if count != len(offered):
        return False
    if all(offered[place] == shape for place, shape in shapes.items()):
        return True
    return not in_order and _is_part(shapes, offered)


def _is_part(shapes: Shapes, offered: Sequence[Shape]) -> bool:
    return Counter(map(salted, shapes.values())) <= Counter(map(salted, offered))


def _chains(
    count: int, shapes: Shapes, trained: Sequence[int], models: Sequence[tuple[str, Model]]
) -> list[tuple[int, ...]]:
    """Return the orders of the models that hold just these parameters together, that of the file first."""
    for length in range(2, min(len(trained), _MOST_CHAINED) + 1):
        for chosen in combinations(trained, length):
            if sum(len(models[place][1].shapes) for place in chosen) != count:
                continue
            orders = permutations(chosen) if count <= _MOST_ORDERED else iter([chosen])
            found = [order for order in orders if _fits(count, shapes, _listed(order, models), in_order=True)]
            if found:
                return found
    return []


def _listed(order: Sequence[int], models: Sequence[tuple[str, Model]]) -> list[Shape]:
    return [shape for place in order for shape in models[place][1].shapes]


def _by_name(name: str, places: Sequence[int], models: Sequence[tuple[str, Model]]) -> int:
    """Return the model that is meant, of several that fit: by its name, else the one that others follow."""
    scores = [
        (likeness(name, models[place][0]), not _request_words(models[place][0]) & _FOLLOWERS, -at)
        for at, place in enumerate(places)
    ]
    return places[-max(scores)[2]]


def likeness(one: str, other: str) -> int:
    """Return how alike two names are, from 0 to 2: `optimizer_G` is of `netG`, or else of `generator`."""
    words, others = _request_words(one), _request_words(other)
    if words & others:
        return 2
    return int(any(word.startswith(short) or short.startswith(word) for word in words for short in others))


def _request_words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name)) - _EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Something with a state dict in the file besides the models."""

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
