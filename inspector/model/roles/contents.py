"""What a container is, told from what is in it: a model, the average of one, or data."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.model.checkpoint import Key
from inspector.model.roles.roles import names_model
from inspector.model.tensors.rebuild import describe_tensor, looks_like_tensor
from inspector.model.tensors.views import Known
from inspector.model.values.children import Inside
from inspector.model.values.text import class_of
from inspector.pickles.values import Call, Dict, Value

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
