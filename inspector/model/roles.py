"""What a tensor is for, told from where it stands: the names on the way to it and what stands beside it.

A `Context` is handed down while the values are walked. It is a guess made of conventions, and it never
changes what a tensor is: only the role shown, and which state a remap leaves on the CPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from inspector.model.checkpoint import Key, Role
from inspector.model.dtypes import is_whole
from inspector.model.tensors import TensorFacts

_RNG = re.compile(r"(^|_)rng(_|$)|^rng|random_state|rng_state|^generator_state$", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched", re.IGNORECASE)
_EMA = re.compile(r"(^|[_.])(ema|swa|averaged|avg_model|shadow)([_.]|$)|^(ema|shadow|averaged)", re.IGNORECASE)
_OPTIMIZER = re.compile(r"^(optim|optimizer|optimizers|optimizer_state|optimizer_states|optimizer_state_dict)$")
_MODEL = re.compile(r"^(state_?dict|model|net|network|module|weights|params|.*_state_dict)$", re.IGNORECASE)
_BUFFERS = frozenset({"running_mean", "running_var", "num_batches_tracked", "position_ids", "inv_freq", "attn_mask"})


@dataclass(slots=True, eq=False)
class ModelDraft:
    """One set of parameters that an optimizer may belong to: a state dict, or a whole module.

    Attributes:
        keys: Where it stands.
        names: Names of its parameters in order.
        shapes: Their shapes.
        views: What identifies their data, so that tied parameters count once.
    """

    keys: tuple[Key, ...]
    names: list[str] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    views: list[object] = field(default_factory=list)

    def add(self, name: str, facts: TensorFacts) -> None:
        """Add a parameter."""
        self.names.append(name)
        self.shapes.append(facts.shape)
        self.views.append((facts.storage.key, facts.offset, facts.shape) if facts.storage else (name,))


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of a place from the way to it.

    Attributes:
        role: The role of everything below, or None while nothing says.
        model: The parameters being collected, or None.
        model_depth: How many keys lead to that model.
        optimizer: Index of the optimizer state dict around, or None.
        optimizer_depth: How many keys lead to it.
        kind: Inside a whole module, `parameter` or `buffer`, as its dictionaries say.
    """

    role: Role | None = None
    model: ModelDraft | None = None
    model_depth: int = 0
    optimizer: int | None = None
    optimizer_depth: int = 0
    kind: Role | None = None


def enter(context: Context, key: Key) -> Context:
    """Give the context below one step of the path."""
    if not isinstance(key, str):
        return context
    if key == "._parameters":
        return replace(context, kind="parameter")
    if key == "._buffers":
        return replace(context, kind="buffer")
    if context.optimizer is not None or context.model is not None:
        return context  # names inside a model or optimizer are parameters' names
    role = _role_of_key(key)
    return context if role is None or context.role is not None else replace(context, role=role)


def names_model(key: Key | None) -> bool:
    """Say whether a key is a usual name of a state dict; the root (None) is one too."""
    return key is None or (isinstance(key, str) and _MODEL.match(key) is not None)


def role_of_tensor(context: Context, keys: tuple[Key, ...], facts: TensorFacts) -> Role:
    """Say what a tensor is for."""
    if context.optimizer is not None:
        return "optimizer"
    if context.role is not None:
        return context.role
    last = keys[-1] if keys else None
    if isinstance(last, str) and _RNG.search(last) and facts.dtype == "uint8":
        return "rng"
    if context.kind is not None:
        return context.kind
    if facts.is_parameter:
        return "parameter"
    if context.model is None or not isinstance(last, str):
        return "other"
    is_buffer = is_whole(facts.dtype) or last.rpartition(".")[2] in _BUFFERS
    return "buffer" if is_buffer else "parameter"


def parameter_name(context: Context, keys: tuple[Key, ...]) -> str:
    """Give a parameter's name within its model: the dotted path without the dictionaries of `nn.Module`."""
    steps = keys[context.model_depth :]
    return ".".join(str(step) for step in steps if step not in {"._modules", "._parameters", "._buffers"})


def _role_of_key(key: str) -> Role | None:
    name = key.removeprefix(".")
    if _RNG.search(name):
        return "rng"
    if _EMA.search(name):
        return "ema"
    if _SCHEDULER.search(name):
        return "scheduler"
    return "optimizer" if _OPTIMIZER.match(name) else None
