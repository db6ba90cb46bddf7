"""Style `accelerate`: the model is filled before Hugging Face's Accelerate wraps and moves it.

What `prepare` returns takes the state dicts of what it was given (`accelerate/optimizer.py`, `scheduler.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.snippet.literals import lookup
from inspector.snippet.loading import YOURS, YOURS_ALL, fill_model, write_load
from inspector.snippet.request import Request
from inspector.snippet.script import Script, call, comment_lines
from inspector.snippet.styles.resume import describe

_PREPARED = ("optimizer", "scheduler")


def render(request: Request) -> str:
    """Write the code that `accelerate launch` runs."""
    script = Script()
    script.need("from accelerate import Accelerator")
    script.paragraph("# Start it with: accelerate launch script.py", "accelerator = Accelerator()")
    write_load(script, request, request.placement.to_cpu())
    lines = [YOURS_ALL if len(request.models) > 1 else YOURS]
    for name, model in request.models:
        lines += fill_model(script, request, name, model)
    script.paragraph(*lines)
    parts = [part for part in request.parts if part.kind in _PREPARED]
    names = [*(name for name, _ in request.models), *(part.name for part in parts)]
    head = f"{', '.join(names)} = accelerator.prepare("
    script.paragraph(
        *(line for part in parts for line in comment_lines(describe(request, part))),
        "# prepare() wraps the model and moves it; only then states of optimizers are loaded.",
        *call(head, *tuple(names)),
        *(f"{part.name}.load_state_dict({part.state_in(request.root)})" for part in parts),
        *_scaler(request),
    )
    return script.text()


def _scaler(request: Request) -> Iterator[str]:
    """Yield the lines for a gradient scaler, which Accelerate makes itself where it needs one."""
    for part in request.parts:
        if part.kind == "scaler":
            yield "if accelerator.scaler is not None:"
            yield f"    accelerator.scaler.load_state_dict({lookup(request.root, part.keys)})"
