"""Style `deepspeed`: DeepSpeed's own file through its engine, any other before the engine is made.

`load_checkpoint` takes the folder and the tag, which is the folder in it (`deepspeed/runtime/engine.py`).
"""

from __future__ import annotations

import posixpath

from inspector.snippet.literals import literal
from inspector.snippet.loading import YOURS, fill_model, write_load
from inspector.snippet.request import Request
from inspector.snippet.script import Script, call
from inspector.snippet.traits import is_deepspeed

_CONFIG = "# ds_config.json is the configuration of the run; start this with: deepspeed script.py"


def render(request: Request) -> str:
    """Write the code for a model in DeepSpeed's engine."""
    script = Script(uses_torch=False)
    script.need("import deepspeed")
    if is_deepspeed(request.checkpoint):
        return _render_own(script, request)
    script.uses_torch = True
    write_load(script, request, request.placement.to_cpu())
    for name, model in request.models:
        script.paragraph(
            YOURS,
            *fill_model(script, request, name, model),
            _CONFIG,
            *_initialize(name, "engine" if len(request.models) == 1 else f"{name}_engine"),
        )
    if request.parts:
        script.paragraph("# DeepSpeed's optimizers take no other state: engine.save_checkpoint saves theirs.")
    return script.text()


def _initialize(name: str, engine: str) -> list[str]:
    items = (f"model={name}", f"model_parameters={name}.parameters()", 'config="ds_config.json"')
    head = f"{engine}, optimizer, _, scheduler = deepspeed.initialize("
    return call(head, *items)


def _render_own(script: Script, request: Request) -> str:
    tagged = posixpath.dirname(request.path.replace("\\", "/"))
    folder, tag = posixpath.split(tagged)
    items = (literal(folder or "."), f"tag={literal(tag)}") if tag else (literal("."),)
    script.paragraph("# The model is yours, built as in the run.", _CONFIG, *_initialize("model", "engine"))
    script.paragraph(
        "# All ranks load together: DeepSpeed reads what belongs to each of them.",
        *call("loaded, client_state = engine.load_checkpoint(", *items),
    )
    return script.text()
