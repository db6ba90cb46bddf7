"""What DeepSpeed writes beside the states of ranks: the layers of a pipeline, and universal checkpoints.

`PipelineModule.ckpt_layer_path` in `deepspeed/runtime/pipe/module.py` names a file for each layer;
`deepspeed/checkpoint/ds_to_universal.py` writes a folder for each parameter, with a file for each slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inspector.containers.deepspeed.states import entry
from inspector.containers.folders.joined import Member
from inspector.pickles.values import Dict, Value

UNIVERSAL = "latest_universal"
_LAYER = re.compile(r"layer_[0-9]{2,5}(?:-model_[0-9]{2,4})?-model_states\.pt")
_SLOT = re.compile(r"zero/(?P<parameter>[^/]{1,500})/(?P<slot>[A-Za-z0-9_]{1,100})\.pt")
_WEIGHT, _VALUE = "fp32", "param"
_MOST_FILES = 20_000


class MoreFiles(NamedTuple):
    """Files of a tag besides those of ranks.

    Attributes:
        layers: Those of layers, in order.
        slots: Those of parameters, in order.
    """

    layers: tuple[str, ...]
    slots: tuple[str, ...]


def more_files(names: Iterable[str], tag: str) -> MoreFiles:
    """Return the files below a tag that are neither a model's states nor an optimizer's."""
    prefix = f"{tag}/" if tag else ""
    own = sorted(name for name in names if name.startswith(prefix))[:_MOST_FILES]
    layers = tuple(name for name in own if _LAYER.fullmatch(name, len(prefix)))
    return MoreFiles(layers, tuple(name for name in own if _SLOT.fullmatch(name, len(prefix))))


def branches_of(
    tag: str, layers: Sequence[Member], slots: Sequence[Member], *, has_weights: bool
) -> list[tuple[Value, Value]]:
    """Return what these files hold, as branches of the whole.

    Args:
        tag: The subfolder that they are in; empty for the folder itself.
        layers: Those of layers.
        slots: Those of parameters.
        has_weights: Whether the weights were joined already, of other files.
    """
    found: list[tuple[Value, Value]] = []
    if slots and not has_weights:
        found += _universal(tag, slots)
    if layers:
        named: list[tuple[Value, Value]] = [
            (member.name.rpartition("/")[2].removesuffix(".pt"), member.container.root) for member in layers
        ]
        found.append(("layers", Dict(named)))
    return found


def _universal(tag: str, slots: Sequence[Member]) -> list[tuple[Value, Value]]:
    """Return the weights in full precision by name, and the other slots as an optimizer's by name."""
    weights: list[tuple[Value, Value]] = []
    state: dict[str, list[tuple[Value, Value]]] = {}
    for member in slots:
        match = _SLOT.fullmatch(member.name, len(tag) + 1 if tag else 0)
        name, slot = (match["parameter"], match["slot"]) if match else ("", "")
        root = member.container.root
        value = entry(root, _VALUE) if isinstance(root, Dict) else root
        if slot == _WEIGHT:
            weights.append((name, value))
        else:
            state.setdefault(name, []).append((slot, value))
    names: list[Value] = list(state)
    rows: list[tuple[Value, Value]] = [(name, Dict(own)) for name, own in state.items()]
    groups: list[Value] = [Dict([("params", names)])]
    found: list[tuple[Value, Value]] = [(_WEIGHT, Dict(weights))] if weights else []
    if rows:
        found.append(("optimizer", Dict([("state", Dict(rows)), ("param_groups", groups)])))
    return found
