"""The model whose parameters an optimizer's own file trains: the file beside it that is named so.

Trainers write `optimizer.pt` beside `pytorch_model.bin`, and loops `optim_12.pth` beside `model_12.pth`. Only
the order and the shapes of the parameters are taken from there. safetensors files sort their tensors, so that
the order of the model is worked out; see `optimizer.ordering`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from inspector.containers.opening import read_container
from inspector.containers.packed import open_source
from inspector.errors import CheckpointError
from inspector.limits import Limits
from inspector.model.optimizer.parameters import Parameters, read_models
from inspector.model.tensors.views import Known
from inspector.model.walk import walk
from inspector.progress import Progress
from inspector.records import replace

_OPTIMIZER = re.compile(r"(?:(?<=[-_.])|^)(?:optimizers?|optim|opt)(?=[-_.0-9]|$)", re.IGNORECASE)
_MODELS = ("model", "net", "weights", "state", "")
_WEIGHTS = (
    "pytorch_model.bin",
    "model.pt",
    "model.pth",
    "model.bin",
    "adapter_model.bin",
    "model.safetensors",
    "adapter_model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin.index.json",
)
_ENDINGS = ("", ".pt", ".pth", ".bin", ".ckpt", ".safetensors")
_MOST_CONFIG = 1 << 20
_KIND = re.compile(rb'"model_type"\s*:\s*"([a-z0-9_-]{1,60})"')


def read_models_beside(path: str, limits: Limits, progress: Progress) -> list[list[Parameters]]:
    """Return the models in the first file beside an optimizer's that holds any, in each order they can have.

    Args:
        limits: The bounds for that other file, which are counted anew.
    """
    fresh = replace(limits, work=None, ends_s=float("inf"))
    for candidate in _candidates(path):
        progress.advance()
        try:
            found = _read(candidate, fresh.started(progress.advance), progress)
        except CheckpointError:
            continue  # it is not the file that was asked for, and nothing is said of it
        if found:
            return found
    return []


def _read(path: str, limits: Limits, progress: Progress) -> list[list[Parameters]]:
    container = read_container(path, limits, progress)
    found = walk(container.root, limits, progress, Known(container.storage_ids))
    name = os.path.basename(path)  # noqa: PTH119 - a name that is not UTF-8 stays as it is
    models = read_models(found.models, found.tensors)
    named = [
        replace(model, where=f"{model.paths[0]} of {name}" if model.paths[0] else name, paths=(), views=())
        for model in models
    ]
    if container.stream is not None or not named:
        return [named] if named else []
    from inspector.model.optimizer.ordering import registered_orders  # noqa: PLC0415 - few optimizers need it

    kind = _kind_of(path, limits)
    return [[model] for model in registered_orders(named[0], kind)]


def _kind_of(path: str, limits: Limits) -> str:
    """Return the type of model in the configuration beside a file; empty where there is none, or several."""
    config = os.path.join(os.path.dirname(path), "config.json")  # noqa: PTH118, PTH120 - see above
    try:
        with open_source(config, limits) as source:
            text = source.read(0, min(source.nbytes, _MOST_CONFIG))
    except CheckpointError:
        return ""
    kinds = set(_KIND.findall(text))
    return kinds.pop().decode() if len(kinds) == 1 else ""


def _candidates(path: str) -> Iterator[str]:
    """Yield the files that may hold the model: the same name with another word, then the usual names."""
    folder, name = os.path.split(path)
    stem, ending = os.path.splitext(name)  # noqa: PTH122 - see above
    match = _OPTIMIZER.search(stem)
    if match is None:
        return
    before, after = stem[: match.start()], stem[match.end() :]
    names = [
        f"{before}{word}{after}".strip("-_.") + end
        for word in _MODELS
        for end in dict.fromkeys((ending, *_ENDINGS))
    ]
    for other in dict.fromkeys((*names, *_WEIGHTS)):
        full = os.path.join(folder, other)  # noqa: PTH118 - see above
        if other != name and os.path.isfile(full):  # noqa: PTH113 - a path that cannot be is no error here
            yield full
