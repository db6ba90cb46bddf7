"""What a tensor is for, told from where it stands: the names on the way to it and what stands beside it.

A `Context` is handed down while the values are walked. It is a guess made of conventions, and it never
changes what a tensor is: only the role shown, and which state a remap leaves on the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from inspector.model.checkpoint import Key, Role, Tensor
from inspector.model.tensors.dtypes import is_whole
from inspector.model.tensors.rebuild import describe_tensor, looks_like_tensor
from inspector.model.tensors.views import Known, TensorFacts
from inspector.model.values.children import Inside
from inspector.model.values.text import class_of
from inspector.pickles.values import Call, Dict, Value
from inspector.records import dataclass, field

_RNG = re.compile(r"(^|_)rng(_|$)|^rng|random_state|rng_state|^generator_state$", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched", re.IGNORECASE)
_EMA = re.compile(
    r"(^|[_.])(ema|swa|averaged|avg_model|average_model|shadow)([_.]|$)|^(ema|shadow|averaged)", re.IGNORECASE
)
_OPTIMIZER = re.compile(r"(^|_)(optim|optimizer)(s|_?[a-z0-9]|_states?|_state_dict)?$", re.IGNORECASE)
# The CPU's Mersenne Twister; CUDA's Philox today (16) and up to torch 1.7 (816, and 824 with its offset).
_CPU_GENERATOR_NBYTES = 5056
_GENERATOR_NBYTES = frozenset({_CPU_GENERATOR_NBYTES, 16, 816, 824})
_GENERATOR_OWNER = re.compile(r"cuda|xpu|mps|npu|seed|generator|random", re.IGNORECASE)
_MODEL = re.compile(r"^(state_?dict|model|net|network|module|weights|params|.*_state_dict)$", re.IGNORECASE)
_BUFFERS = frozenset(
    {"running_mean", "running_var", "num_batches_tracked", "position_ids", "inv_freq", "attn_mask"}
)
# The ends of names of torch's spectral norm and pruning, GPyTorch's constraints, rotary embeddings and GPT-2.
# (`weight_v` is a buffer of an old spectral norm, and a parameter of the weight norm.)
_BUFFER_ENDS = (
    *(f".{place}._{part}" for place in range(3) for part in "uv"),
    *("weight_mask", "bias_mask", "weight_u", "masked_bias"),
    *("_constraint.lower_bound", "_constraint.upper_bound"),
    *(f"._buffered_{name}" for name in ("loc", "scale", "concentration", "rate")),
    *("original_inv_freq", "cos_cached", "sin_cached"),
)
# What Lightning was called with: a module among it is a copy of a part of the model, or no part of it.
_SETTINGS = frozenset({"hyper_parameters", "datamodule_hyper_parameters"})
DICTIONARIES = frozenset({"._modules", "._parameters", "._buffers"})
"""The dictionaries of `nn.Module`, which are no part of a parameter's name."""


@dataclass(slots=True, eq=False)
class ModelDraft:
    """One set of parameters that an optimizer may belong to: a state dict, or a whole module."""

    keys: tuple[Key, ...]
    path: str
    rows: list[int] = field(default_factory=list)
    is_average: bool = False


class Context(NamedTuple):
    """What is known of a place from the way to it.

    Attributes:
        kind: Inside a whole module, `parameter` or `buffer`, as its dictionaries say, or `other` beside them.
        steps: Inside of that, 0 at its top, 1 in its `state`, 2 in a parameter's, and so on; -1 elsewhere.
        owner: The parameter of its own that the state around belongs to, by number or name, or None.
        slot: The way from the parameter to here, as text with a slash behind.
    """

    role: Role | None = None
    model: ModelDraft | None = None
    kind: Role | None = None
    optimizer: int | None = None
    steps: int = 0
    owner: Key | None = None
    slot: str = ""


NOWHERE = Context()


def enter(context: Context, key: Key, step: str) -> Context:
    """Return the context below one step of the path."""
    if context.optimizer is not None:
        return _enter_optimizer(context, key, step)
    if key in {"._parameters", "._packed_params"}:
        return context._replace(kind="parameter")
    if key == "._buffers":
        return context._replace(kind="buffer")
    if context.role is not None or context.model is not None:
        return context  # names inside a model are parameters' names
    role = role_of_key(key)
    return context if role is None else Context(role)


def _enter_optimizer(context: Context, key: Key, step: str) -> Context:
    role, model, kind, optimizer, steps, owner, slot = context
    if steps < 0:
        return context
    if steps == 0:
        return context._replace(steps=1 if key in {"state", ".state"} else -1)
    if steps == 1:
        return Context(role, model, kind, optimizer, 2, key, "")
    return Context(role, model, kind, optimizer, steps + 1, owner, f"{slot}{step}/")


WRAPPER_PREFIXES = ("module.", "_orig_mod.")
"""What DataParallel (also distributed) and torch.compile put before every name."""


def names_model(key: Key | None) -> bool:
    """Return whether a key is a usual name of a state dict; the root (None) is one too."""
    return key is None or (isinstance(key, str) and _MODEL.match(key) is not None)


def role_of_tensor(context: Context, keys: tuple[Key, ...], facts: TensorFacts) -> Role:
    """Return what a tensor is for."""
    if context.optimizer is not None:  # one that was pickled whole lists the parameters themselves
        return "parameter" if context.steps < 0 and facts.is_parameter else "optimizer"
    last = keys[-1] if keys else ""
    role = context.role
    if role is None and context.model is None:
        role = role_of_key(last)
    if role is not None:
        return role
    if facts.dtype == "uint8" and _is_generator_state(keys, facts):
        return "rng"
    return context.kind or _role_in_model(context, last, facts)


def is_averaged_parameter(context: Context, key: Key, facts: TensorFacts) -> bool:
    """Return whether a tensor of averaged weights would be a parameter in the model that is averaged."""
    return (context.kind or _role_in_model(context, key, facts)) == "parameter"


def _role_in_model(context: Context, last: Key, facts: TensorFacts) -> Role:
    if facts.is_parameter:
        return "parameter"
    if context.model is None or not isinstance(last, str):
        return "other"
    return "buffer" if is_buffer(last, facts.dtype) else "parameter"


def is_buffer(name: str, dtype: str) -> bool:
    """Return whether a tensor of a state dict is a buffer, which has no mark there but its name and dtype."""
    return name.rpartition(".")[2] in _BUFFERS or name.endswith(_BUFFER_ENDS) or is_whole(dtype)


def parameter_name(model: ModelDraft, keys: tuple[Key, ...]) -> str:
    """Return a parameter's name within its model: the dotted path without the dictionaries of `nn.Module`."""
    steps = keys[len(model.keys) :]
    return ".".join(str(step) for step in steps if step not in DICTIONARIES)


def role_of_key(key: Key) -> Role | None:
    """Return the role that a key names for everything below it, or None."""
    if not isinstance(key, str):
        return None
    name = key.removeprefix(".")
    if _RNG.search(name):
        return "rng"
    if name in _SETTINGS:
        return "other"
    if _EMA.search(name):
        return "ema"
    if _SCHEDULER.search(name):
        return "scheduler"
    return "optimizer" if _OPTIMIZER.search(name) else None


def _is_generator_state(keys: tuple[Key, ...], facts: TensorFacts) -> bool:
    """Return whether bytes are a random generator's state: named so, or as long as one in a likely place."""
    names = [key for key in keys[-2:] if isinstance(key, str)]
    if any(_RNG.search(name) for name in names[-1:]):
        return True
    if len(facts.shape) != 1 or facts.shape[0] not in _GENERATOR_NBYTES:
        return False
    return facts.shape[0] == _CPU_GENERATOR_NBYTES or any(_GENERATOR_OWNER.search(name) for name in names)


# --- what a container is, told from what is in it: a model, the average of one, or data ---------------------

COUNT_OF_AVERAGES = "n_averaged"
"""The buffer of `AveragedModel` in torch's `torch/optim/swa_utils.py`, which is no weight."""
_AVERAGED = ("module.", COUNT_OF_AVERAGES)
_DATA_CLASSES = "torch_geometric.data."
_TEXTS = ".__metadata__"
_MOST_DATA = 64
_DATA_KEY = "edge_index"  # of a graph, as `Data.to_dict` of PyTorch Geometric writes it


def is_module(value: Value, children: Iterable[tuple[Key, Value]]) -> bool:
    """Return whether a value is a whole pickled module."""
    # Compared one by one: a set would hash integer keys, which a hostile file can make collide.
    return isinstance(value, Call) and any(key == "._parameters" for key, _ in children)


def looks_like_model(keys: tuple[Key, ...], value: Value, children: Inside, known: Known) -> bool:
    """Return whether a container is a model: a mapping from names to mostly tensors.

    Tensors that are all single numbers are a model only where the key says so: they are scores and losses.
    """
    if not isinstance(value, Dict | Call):
        return False
    tensors = [item for key, item in children if type(key) is str and looks_like_tensor(item)]
    # The texts beside the tensors of a safetensors file are no part of the model.
    is_most = 2 * len(tensors) > len(children) - any(key == _TEXTS for key, _ in children)
    if names_model(keys[-1] if keys else None):
        return bool(tensors) and (bool(keys) or is_most)
    return len(tensors) > 1 and is_most and _has_dimensions(tensors, known)


def _has_dimensions(tensors: Iterable[Value], known: Known) -> bool:
    for item in tensors:
        known.look(1)
        facts = describe_tensor(item, known)
        if facts is not None and facts.shape:
            return True
    return False


def holds_averages(value: Value, children: Iterable[tuple[Key, Value]]) -> bool:
    """Return whether a state dict or module is that of an `AveragedModel`, which counts its averages."""
    if isinstance(value, Call) and (class_of(value) or "").endswith(".AveragedModel"):
        return True
    if not any(key == COUNT_OF_AVERAGES for key, _ in children):
        return False
    return all(
        key.startswith(_AVERAGED) for key, item in children if type(key) is str and looks_like_tensor(item)
    )


def holds_data(value: Value, children: Inside) -> bool:
    """Return whether a container holds data and no weights, whatever its tensors are called."""
    if isinstance(value, Call) and (class_of(value) or "").startswith(_DATA_CLASSES):
        return True
    is_small = isinstance(value, Dict) and len(children) <= _MOST_DATA
    return is_small and any(key == _DATA_KEY for key, _ in children)


# --- state that torch keeps on the CPU whatever the model's device, told from where it stands ---------------
#
# An optimizer's counters are told by `optimizer.state_dict`, random generator states by their role.

NONE_PINNED: frozenset[Key] = frozenset()
_PINNED: dict[str, frozenset[Key]] = {
    "torch.nn.utils.rnn.PackedSequence": frozenset({1}),  # its batch sizes
    "torch.distributed.device_mesh.DeviceMesh": frozenset({"._rank_map", ".mesh"}),
    "torch.distributed._tensor.device_mesh.DeviceMesh": frozenset({".mesh"}),
}
_SEQUENCE_LENGTHS: frozenset[Key] = frozenset({"min_seqlen", "max_seqlen"})
_NESTED_METADATA = frozenset({("sizes",), ("strides",), ("offsets",)})
_MESH_RANKS = frozenset({(".mesh", "._rank_map"), (".mesh", ".mesh")})  # its name today and its former one


def pinned_keys(value: Value, key: Key | None) -> frozenset[Key]:
    """Return the keys inside a value whose tensors torch keeps on the CPU wherever the others are.

    Args:
        key: Its own key: the sequence lengths of a jagged tensor are cached in a plain dictionary.
    """
    if key in {"_metadata_cache", "._metadata_cache"}:
        return _SEQUENCE_LENGTHS
    if not isinstance(value, Call):
        return NONE_PINNED
    return _PINNED.get(class_of(value) or "", NONE_PINNED)


def is_metadata_on_cpu(whole: Tensor, keys: tuple[Key, ...]) -> bool:
    """Return whether a part of a tensor only describes it, and must lie on the CPU wherever the tensor is.

    These are the sizes, strides and offsets of nested tensors (`NestedTensorImpl` in torch's
    `aten/src/ATen/NestedTensorImpl.cpp`) and the ranks of a DTensor's mesh (in torch's
    `torch/distributed/device_mesh.py`).
    """
    if whole.layout == "nested":
        return keys[len(whole.keys) :] in _NESTED_METADATA
    return keys[-2:] in _MESH_RANKS
