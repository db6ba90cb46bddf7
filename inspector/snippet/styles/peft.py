"""Style `peft`: adapters such as LoRA's, which are put on a base model that is not in the file.

A folder of PEFT's names its base model in `adapter_config.json`; any other file is put into a model that
`get_peft_model` has made (`peft/utils/save_and_load.py`).
"""

from __future__ import annotations

import os.path

from inspector.snippet.device import Device, choose_device
from inspector.snippet.literals import literal, lookup
from inspector.snippet.loading import write_load
from inspector.snippet.request import Request
from inspector.snippet.script import Script
from inspector.snippet.traits import is_adapter_file

_YOURS = "# The model is yours: the base model, with get_peft_model and the configuration of the run."


def render(request: Request) -> str:
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
