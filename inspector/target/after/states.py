"""Which mappings of tensors are state dicts: what code hands to `load_state_dict`, and what it copies from.

Nothing in a file says so. A mapping from names to tensors is one, unless it looks like data: the columns of a
replay buffer or of a batch, or the samples of a data set, many mappings of the same names.
"""

from __future__ import annotations

import re

from inspector.model.checkpoint import Checkpoint, OddKey, Tensor
from inspector.model.once import once
from inspector.target.after.losses import is_loss_name

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
