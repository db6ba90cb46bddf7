"""What kind of file it is, as far as that decides which styles it offers.

The window asks this whenever it composes its screen: so one look at the rows has to do, and nothing is
counted that a single row can tell.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from inspector.model.checkpoint import Checkpoint, Key, Tensor
from inspector.model.once import once
from inspector.model.roles.devices import is_accelerator
from inspector.model.roles.processes import find_shards
from inspector.records import dataclass
from inspector.snippet.models import Keys, has_model, has_parameters

# Files of data to learn from, rather than of a model: tensors side by side, samples, datasets, loaders.
#
# No mark tells them from a state dict, so names and shapes have to. What is no model by all appearances is
# offered as data; `plain` is there in any case.

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


# What `from_pretrained` looks for in a folder: `transformers/utils/__init__.py`, WEIGHTS_NAME and its shards.
_ADAPTERS = frozenset({"adapter_model.bin", "adapter_model.safetensors"})  # peft/utils/constants.py
_ADAPTER = re.compile(r"(^|\.)(lora_|ia3_|adalora_|hada_|lokr_|oft_|prompt_embeddings)")
_FSDP = re.compile(r"_fsdp_wrapped_module\.|(^|\.)_?flat_param")  # torch/distributed/fsdp/_common_utils.py
_PRETRAINED = r"(pytorch_model(-\d{5}-of-\d{5})?\.bin|model(-\d{5}-of-\d{5})?\.safetensors)(\.index\.json)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a file is.

    Attributes:
        has_model: Whether it holds a model: a state dict or a whole module.
        is_pretrained: Whether its name is one that `from_pretrained` looks for.
        has_config: Whether, if it is, the `config.json` that the model is built of lies beside it.
        is_data: Whether it is data to learn from, rather than a model.
        is_adapter: Whether it holds the weights of adapters such as LoRA's and no base model.
        is_adapter_file: Whether its name is the one that PEFT looks for.
        is_spread: Whether several GPUs or processes had a part in it.
        is_sharded: Whether it holds parts of tensors, or names that FSDP gives.
    """

    has_model: bool
    has_module: bool
    has_optimizer: bool
    is_lightning: bool
    is_pretrained: bool
    is_data: bool
    is_adapter: bool = False
    is_adapter_file: bool = False
    is_deepspeed: bool = False
    has_config: bool = False
    is_spread: bool = False
    is_sharded: bool = False


@once
def look_at(checkpoint: Checkpoint) -> Traits:
    """Look at a file's rows, and at its name."""
    is_data = find_data(checkpoint) is not None
    holds_model = not is_data and has_model(checkpoint)
    is_sharded = holds_model and is_of_fsdp(checkpoint)
    return Traits(
        has_model=holds_model,
        has_module=holds_model and has_parameters(checkpoint),
        has_optimizer=bool(checkpoint.optimizers),
        is_lightning=is_lightning(checkpoint),
        is_pretrained=is_pretrained(checkpoint.path),
        has_config=is_pretrained(checkpoint.path) and has_config(checkpoint.path),
        is_data=is_data,
        is_adapter=holds_model and is_adapter(checkpoint),
        is_adapter_file=is_adapter_file(checkpoint.path),
        is_deepspeed=is_deepspeed(checkpoint),
        is_spread=holds_model and (is_sharded or is_spread(checkpoint)),
        is_sharded=is_sharded,
    )


def is_adapter(checkpoint: Checkpoint) -> bool:
    """Return whether all weights of a file are those of adapters."""
    names = [
        str(row.keys[-1]) for row in checkpoint.tensors if row.role in {"parameter", "buffer"} and row.keys
    ]
    return bool(names) and all(_ADAPTER.search(name) for name in names)


def is_adapter_file(path: str) -> bool:
    """Return whether PEFT would find a file by its name."""
    return path.replace("\\", "/").rpartition("/")[2] in _ADAPTERS


def is_deepspeed(checkpoint: Checkpoint) -> bool:
    """Return whether DeepSpeed's engine wrote a file: its version stands beside the module's weights."""
    return any(value.path == "ds_version" for value in checkpoint.values) and any(
        tensor.keys[:1] == ("module",) for tensor in checkpoint.tensors
    )


def is_spread(checkpoint: Checkpoint) -> bool:
    """Return whether a file was saved on several GPUs, or from within DistributedDataParallel or the like."""
    gpus = {storage.device for storage in checkpoint.storages if is_accelerator(storage.device)}
    return len(gpus) > 1 or any(
        isinstance(key, str) and key.startswith("module.")
        for row in checkpoint.tensors
        for key in row.keys[-1:]
    )


def is_of_fsdp(checkpoint: Checkpoint) -> bool:
    """Return whether a file holds parts of tensors, or names that FSDP's wrapper gives."""
    return find_shards(checkpoint) is not None or any(
        _FSDP.search(str(row.keys[-1])) for row in checkpoint.tensors if row.keys
    )


def is_lightning(checkpoint: Checkpoint) -> bool:
    """Return whether Lightning's Trainer wrote a file: its version and weights have keys of their own."""
    return any(value.path == "pytorch-lightning_version" for value in checkpoint.values) and any(
        tensor.keys[:1] == ("state_dict",) for tensor in checkpoint.tensors
    )


def is_pretrained(path: str) -> bool:
    """Return whether `from_pretrained` would find a file by its name."""
    name = path.replace("\\", "/").rpartition("/")[2]
    # Few files ask for it, so the expression is compiled when the first of them does.
    return "model" in name and re.fullmatch(_PRETRAINED, name) is not None


def has_config(path: str) -> bool:
    """Return whether `from_pretrained` finds the model's description beside a file.

    Accelerate and DeepSpeed write weights under the same names, without one.
    """
    return os.path.isfile(os.path.join(os.path.dirname(path), "config.json"))  # noqa: PTH113, PTH118, PTH120 - a path as it was named
