"""Style `transformers`: the folder of a Hugging Face model.

`from_pretrained` takes the folder, since the model is built of the `config.json` in it, and puts the weights
on the CPU wherever they were saved.
"""

from __future__ import annotations

import os.path

from inspector.snippet.device import Device, choose_device
from inspector.snippet.literals import literal
from inspector.snippet.request import Request
from inspector.snippet.script import Script
from inspector.snippet.traits import has_config


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
