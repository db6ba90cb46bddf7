"""Styles `transformers` and `peft`, and code for folders of Hugging Face's libraries.

`from_pretrained` takes the folder, since the model is built of the `config.json` in it, and puts the weights
on the CPU wherever they were saved. Adapters such as LoRA's are put on a base model that is not in the file:
a folder of PEFT's names it in `adapter_config.json`; any other file is put into a model that `get_peft_model`
has made (`peft/utils/save_and_load.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from inspector.containers.belonging import INDEX, files_of
from inspector.containers.sharded import find_index
from inspector.snippet.device import Device, choose_device
from inspector.snippet.literals import literal, lookup
from inspector.snippet.loading import write_load
from inspector.snippet.request import Request
from inspector.snippet.script import Script, call
from inspector.snippet.traits import has_config, is_adapter_file

_YOURS = "# The model is yours: the base model, with get_peft_model and the configuration of the run."
_STATES = ("optimizer", "scheduler", "scaler")
_KINDS = ("model", "optimizer", "scheduler")
_PREPARED = re.compile(r"(?:pytorch_)?(model|optimizer|scheduler)(?:_([0-9]{1,4}))?\.(?:bin|safetensors)")
_RANDOM_STATES = re.compile(r"random_states_[0-9]+\.pkl")
_SAFELY = ('map_location="cpu"', "weights_only=True")


def render(request: Request) -> str:
    """Write the code for the folder around a file of weights."""
    device = request.placement.one_device(request.placement.places, choose_device(request.target))
    return transformers_code(os.path.dirname(request.path) or ".", device)  # noqa: PTH120 - text, not a place here


def transformers_code(folder: str, device: Device) -> str:
    """Write the code for a folder."""
    script = Script()
    if not has_config(os.path.join(folder, "")):  # noqa: PTH118 - as it was named
        script.paragraph("# The folder lacks the config.json of the model: put it there first.")
    script.need("from transformers import AutoModel, AutoTokenizer")
    script.paragraph(*device.choice)
    script.paragraph(
        f"folder = {literal(folder)}",
        "# AutoModel has no head: use AutoModelForCausalLM or similar for a task.",
        "model = AutoModel.from_pretrained(folder)",
        *device.move("model"),
    )
    script.paragraph(
        "tokenizer = AutoTokenizer.from_pretrained(folder)",
        'inputs = tokenizer("Some text.", return_tensors="pt").to(model.device)',
        "with torch.inference_mode():",
        "    outputs = model(**inputs)",
    )
    return script.text()


def render_adapter(request: Request) -> str:
    """Write the code for a file of adapters."""
    if is_adapter_file(request.path):
        device = request.placement.one_device(request.placement.places, choose_device(request.target))
        return adapter_code(request.path, device)
    script = Script()
    script.paragraph(*request.placement.choice_for(request.model_devices))
    write_load(script, request, request.placement.for_copying())
    lines = [_YOURS]
    for name, model in request.models:
        weights = lookup(request.root, model.keys)
        lines += request.placement.move(name, model.devices)
        if any(".default." in key for key in model.names):  # saved by the model itself, not by PEFT
            lines.append(f"{name}.load_state_dict({weights}, strict=False)")
        else:
            script.need("from peft import set_peft_model_state_dict")
            lines.append(f"set_peft_model_state_dict({name}, {weights})")
    script.paragraph(*lines)
    return script.text()


def adapter_code(path: str, device: Device) -> str:
    """Write the code for a folder of PEFT's."""
    script = Script(uses_torch=bool(device.choice))
    script.need("from peft import AutoPeftModelForCausalLM")
    script.paragraph(*device.choice)
    script.paragraph(
        f"folder = {literal(os.path.dirname(path) or '.')}",  # noqa: PTH120 - text, not a place here
        "# adapter_config.json names the base model; other tasks have classes of their own.",
        "model = AutoPeftModelForCausalLM.from_pretrained(folder)",
        *device.move("model"),
        "model.eval()",
    )
    return script.text()


def index_of(path: str) -> str:
    """Return the path of the index of a model in several files, given that or the folder."""
    if path.endswith(INDEX):
        return path
    return os.path.join(path, find_index(_names(path)) or "")  # noqa: PTH118 - goes into code as it was given


def training_code(path: str, device: Device) -> str:
    """Write code that goes on from what a trainer saved."""
    names = files_of(_names(path))
    model = next((name for name in names if not name.endswith(INDEX)), "")
    if any(_RANDOM_STATES.fullmatch(name) for name in names):
        return _accelerate_code(path, names)
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


def _accelerate_code(path: str, names: Sequence[str]) -> str:
    """Write the code for what `Accelerator.save_state` saved: it numbers what it was given of each kind."""
    script = Script(uses_torch=False)
    script.need("from accelerate import Accelerator")
    script.paragraph("accelerator = Accelerator()")
    found = [match for name in names if (match := _PREPARED.match(name)) is not None]
    ordered = sorted(found, key=lambda match: (_KINDS.index(match[1]), int(match[2] or 0)))
    objects = list(dict.fromkeys(f"{match[1]}_{match[2]}" if match[2] else match[1] for match in ordered))
    script.paragraph(
        "# These are yours, built as they were, and handed over in the order in which they were then.",
        *call(f"{', '.join(objects)} = accelerator.prepare(", *objects),
        *call("accelerator.load_state(", literal(path)),
    )
    return script.text()


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208 - a text
    except (OSError, ValueError):
        return []
