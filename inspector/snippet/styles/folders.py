"""Code for folders: which of their files is loaded by what, told by their names."""

from __future__ import annotations

import os

from inspector.containers.belonging import INDEX, files_of
from inspector.containers.sharded import find_index
from inspector.snippet.device import Device
from inspector.snippet.literals import literal
from inspector.snippet.script import Script, call

_STATES = ("optimizer", "scheduler", "scaler")
_SAFELY = ('map_location="cpu"', "weights_only=True")


def index_of(path: str) -> str:
    """Return the path of the index of a model in several files, given that or the folder."""
    if path.endswith(INDEX):
        return path
    return os.path.join(path, find_index(_names(path)) or "")  # noqa: PTH118 - goes into code as it was given


def training_code(path: str, device: Device) -> str:
    """Write code that goes on from what a trainer saved."""
    names = files_of(_names(path))
    model = next((name for name in names if not name.endswith(INDEX)), "")
    script = Script()
    script.need("from pathlib import Path")
    script.paragraph(*device.choice)
    lines = call("folder = Path(", literal(path))
    if model.endswith(".safetensors"):
        script.need("from safetensors.torch import load_file")
        lines += call("state_dict = load_file(", f"folder / {literal(model)}")
    elif model:
        lines += call("state_dict = torch.load(", f"folder / {literal(model)}", *_SAFELY)
    states = [(kind, name) for kind in _STATES for name in names if name.startswith(f"{kind}.")]
    for kind, name in states:
        lines += call(f"{kind}_state = torch.load(", f"folder / {literal(name)}", *_SAFELY)
    script.paragraph(*lines)
    script.paragraph(
        "# The model and what trains it are yours. transformers does all this by itself:",
        "# trainer.train(resume_from_checkpoint=folder)",
        *device.move("model"),
        "model.load_state_dict(state_dict)",
        *(f"{kind}.load_state_dict({kind}_state)" for kind, _ in states),
    )
    return script.text()


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208 - a text
    except (OSError, ValueError):
        return []
