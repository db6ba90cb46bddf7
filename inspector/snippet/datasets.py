"""Files of data to learn from, rather than of a model: tensors side by side, samples, datasets, loaders.

No mark tells them from a state dict, so names and shapes have to. What is no model by all appearances is
offered as data; `plain` is there in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal

from inspector.model.checkpoint import Checkpoint, Key, Tensor
from inspector.records import dataclass
from inspector.snippet.models import Keys, has_parameters

_NAMES = frozenset(
    {"x", "y", "data", "image", "images", "input", "inputs", "feature", "features", "target", "targets"}
    | {"label", "labels", "sample", "samples", "train", "val", "valid", "test"}
    | {f"{column}_{part}" for column in "xy" for part in ("train", "val", "test")}
)
_MOST_COLUMNS = 4
_SOME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Data within a file.

    Attributes:
        kind: `columns` of one length, a `dataset` (a list of samples is one too), or a `loader`.
        places: Where the columns stand, or the one place of the dataset or loader.
    """

    kind: Literal["columns", "dataset", "loader"]
    places: tuple[Keys, ...]


def find_data(checkpoint: Checkpoint) -> Data | None:
    """Find the data of a file, or None if it is no file of data; of several parts, the first."""
    first = next((tensor for tensor in checkpoint.tensors if _is_data(tensor)), None)
    if first is None or checkpoint.optimizers or checkpoint.root == "module":
        return None
    attribute = next((place for place, key in enumerate(first.keys) if _is_attribute(key)), None)
    if attribute is not None:
        return _object(checkpoint, first.keys[:attribute])
    if not _are_names_of_data(checkpoint, first.keys):
        return None
    columns = tuple(islice(_columns(checkpoint, first), _MOST_COLUMNS + 1))
    if checkpoint.root == "sequence" and _are_samples(checkpoint, columns):
        return Data(kind="dataset", places=((),)) if _fit_a_batch(checkpoint, first) else None
    return Data(kind="columns", places=columns[:_MOST_COLUMNS])


def _are_names_of_data(checkpoint: Checkpoint, keys: Keys) -> bool:
    """Return whether no name is dotted, as in a state dict, and one is usual where there are only names."""
    if any(isinstance(key, str) and "." in key for key in keys):
        return False
    is_nameless = checkpoint.root in {"tensor", "sequence"}
    return is_nameless or any(str(key).lower() in _NAMES for key in keys)


def _are_samples(checkpoint: Checkpoint, columns: tuple[Keys, ...]) -> bool:
    """Return whether a list holds samples; the few entries of `(images, labels)` are columns instead."""
    last = next(tensor.keys[0] for tensor in reversed(checkpoint.tensors) if _is_data(tensor))
    return isinstance(last, int) and (last >= _MOST_COLUMNS or (last > 0 and len(columns) < 2))


def _is_data(tensor: Tensor) -> bool:
    return (
        tensor.role in {"parameter", "buffer", "other"}
        and tensor.part_of is None
        and bool(tensor.shape and tensor.shape[0])
    )


def _is_attribute(key: Key) -> bool:
    return isinstance(key, str) and key.startswith(".")


def _fit_a_batch(checkpoint: Checkpoint, first: Tensor) -> bool:
    """Return whether samples are of one shape, as far as the first ones tell."""
    return all(
        tensor.shape == first.shape
        for tensor in checkpoint.tensors[:_SOME]
        if tensor.keys[1:] == first.keys[1:]
    )


def _object(checkpoint: Checkpoint, place: Keys) -> Data | None:
    """Recognize an object by the names of the classes in its file; one that holds a module is no data."""
    names = [use.name.rpartition(".")[2].lower() for use in checkpoint.globals]
    if has_parameters(checkpoint):
        return None
    if any(name.endswith("dataloader") for name in names):
        return Data(kind="loader", places=(place,))
    is_dataset = any("dataset" in name or name.endswith("subset") for name in names)
    return Data(kind="dataset", places=(place,)) if is_dataset else None


def _columns(checkpoint: Checkpoint, first: Tensor) -> Iterator[Keys]:
    """Return the tensors beside the first that are as long as it is."""
    for tensor in checkpoint.tensors:
        if _is_data(tensor) and tensor.keys[:-1] == first.keys[:-1] and tensor.shape[0] == first.shape[0]:
            yield tensor.keys
