"""Which files make up a checkpoint together: told by names that trainers give, and by what lies beside them.

The names are those of `transformers` (`Trainer._save_checkpoint`) and `accelerate` (`save_state`), see
`transformers/trainer.py` and `accelerate/checkpointing.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection

_SHARD = re.compile(r"(.+)-[0-9]{5}-of-[0-9]{5}(\.(?:bin|safetensors))")
_STATE = re.compile(
    r"(?:optimizer|scheduler|sampler)(?:_[0-9]+)?\.(?:pt|bin)|scaler\.pt|rng_state(?:_[0-9]+)?\.pth|"
    r"random_states_[0-9]+\.pkl|custom_checkpoint_[0-9]+\.pkl"
)
ARGUMENTS = "training_args.bin"
_MODEL = re.compile(
    r"(?:(?:diffusion_)?pytorch_model|model|adapter_model)(?:_[0-9]+)?\.(?:safetensors|bin)(?:\.index\.json)?"
)
_CONFIGURATIONS = ("config.json", "adapter_config.json", "generation_config.json", "trainer_state.json")
INDEX = ".index.json"


def whole_of(path: str) -> str | None:
    """Return the path of the checkpoint that a file is part of; None where it is one by itself."""
    folder, name = os.path.split(path)
    shard = _SHARD.fullmatch(name)
    if shard is not None:
        index = os.path.join(folder, f"{shard[1]}{shard[2]}{INDEX}")  # noqa: PTH118 - a text
        return index if os.path.isfile(index) else None  # noqa: PTH113 - the same
    if _STATE.fullmatch(name) is None and name != ARGUMENTS:
        return None
    folder = folder or os.curdir
    try:
        names = os.listdir(folder)  # noqa: PTH208 - the same
    except (OSError, ValueError):
        return None
    return folder if is_training(names) else None


def is_training(names: Collection[str]) -> bool:
    """Return whether a folder with these files is what a trainer saves to go on from later."""
    return any(map(_STATE.fullmatch, names)) and any(map(_MODEL.fullmatch, names))


def is_pretrained(names: Collection[str]) -> bool:
    """Return whether these are the files of a model in a single file, with its configuration."""
    models = [name for name in names if _MODEL.fullmatch(name)]
    is_single = bool(models) and not any(name.endswith(INDEX) for name in models)
    return is_single and any(name in names for name in _CONFIGURATIONS)


def files_of(names: Collection[str]) -> list[str]:
    """Return the files to read of such a folder: the model first, then what goes on with the training.

    Of a model in two forms the one is read that loaders prefer: safetensors.
    """
    models = sorted(name for name in names if _MODEL.fullmatch(name))
    known = set(models)
    models = [name for name in models if not (".bin" in name and _safe(name) in known)]
    states = sorted(name for name in names if _STATE.fullmatch(name))
    arguments = [ARGUMENTS] if states and ARGUMENTS in names else []
    return [*models, *states, *arguments]


def configurations_of(names: Collection[str]) -> list[str]:
    """Return the configurations that lie beside them."""
    return [name for name in _CONFIGURATIONS if name in names]


def _safe(name: str) -> str:
    """Return what the same weights are called as safetensors."""
    return name.replace("pytorch_model", "model", 1).replace(".bin", ".safetensors", 1)
