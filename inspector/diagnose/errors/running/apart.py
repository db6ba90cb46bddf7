"""What a file has to do with tensors on two devices, in the step where they met.

load_state_dict copies into the tensors that a model has, and moves an optimizer's state to its parameters. So
where the tensors of a state dict were saved decides nothing afterwards; whole modules, whole optimizers and
tensors that are used as they were loaded are another matter, and findings tell those.
"""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import Context, Tied
from inspector.diagnose.errors.reading.scene import Step
from inspector.diagnose.errors.ties import of_finding
from inspector.diagnose.listing import listed, plain
from inspector.model.checkpoint import Tensor
from inspector.units import format_count

_OPTIMIZER_STEPS: frozenset[Step] = frozenset({"optimizer", "scaler", "load-optimizer"})
_OF_OPTIMIZER = ("step-off-accelerator", "step-on-accelerator", "optimizer-off-parameter-device")
_OF_MODEL = ("loss-buffer-left-behind", "mixed-devices", "rng-off-cpu", "hidden-device")
_ELSEWHERE: dict[Step, str] = {
    "loss": "the targets were not moved, or the loss with its class weights was not",
    "forward": "the model or its input was not moved, or a tensor is made in forward() without device=",
    "script": "a device is a constant of the traced code",
    "clip": "a part of the model was not moved",
    "data": "the dataset puts together what it made and what it loaded",
}
_ANYWHERE = (
    "the batch was not moved (inputs = inputs.to(device)), a tensor is made in forward() without device=, "
    "or the optimizer was created or loaded before the model was moved"
)
_WORD = re.compile(r"[a-z_]\w{2,60}")


def tie_apart(context: Context) -> Tied:
    """Look for tensors apart in the file; a file that lies on one device is not the cause."""
    step = context.scene.step
    in_optimizer = step in _OPTIMIZER_STEPS or "state_steps" in context.text
    ids = _OF_OPTIMIZER if in_optimizer else _OF_MODEL if step else (*_OF_MODEL, *_OF_OPTIMIZER)
    for id_ in ids:
        found = context.findings.get(id_)
        if found is not None and found.severity != "note":  # a note is of what breaks nothing by itself
            return of_finding(found, in_full=True)
    if in_optimizer:
        return _of_optimizer(context)
    return _of_code(context, _ELSEWHERE.get(step, _ANYWHERE))


def _of_code(context: Context, elsewhere: str) -> Tied:
    """Report that the code decides, and how it probably went wrong."""
    devices = sorted({tensor.device for tensor in context.checkpoint.tensors})
    if len(devices) < 2:
        where = f" is entirely on {devices[0]}" if devices else " holds no tensors"
        return Tied(fits="no", here=f"This file{where}, so it is not the cause. Probably {elsewhere}.")
    return Tied(
        fits="unknown",
        here=f"The tensors of this file are on {listed(devices)}, which does not decide: load_state_dict "
        "copies them to where the model is, and what torch keeps on the CPU is where it belongs. More "
        f"likely {elsewhere}.",
    )


def _of_optimizer(context: Context) -> Tied:
    """Name the state in this file that the optimizer's step met, and why its device does not decide."""
    slots = [row for row in context.checkpoint.tensors if row.slot is not None and row.slot != "step"]
    if not slots:
        here = (
            "This file holds no optimizer state: the optimizer got it from another file, or from your code."
        )
        return Tied(fits="no", here=here)
    named = _named(context, slots)
    devices = listed(sorted({row.device for row in named}))
    first = named[0]
    of = f" of {plain(first.parameter)}" if first.parameter else f" ({plain(first.path)})"
    more = f" and {format_count(len(named) - 1, 'more slot')}" if len(named) > 1 else ""
    return Tied(
        fits="unknown",
        here=f"This file holds the state: {plain(first.slot or '')}{of}{more}, saved on {devices}. That "
        "does not decide: optimizer.load_state_dict moves it to where each parameter is at that moment. "
        "The order in the code does: the optimizer was loaded before the model was moved, or its state was "
        "set by hand.",
        paths=[row.path for row in named],
    )


def _named(context: Context, slots: list[Tensor]) -> list[Tensor]:
    """Return the slots that the failing line of the optimizer names, all where it names none."""
    code = " ".join(frame.code for frame in context.pasted.frames[-2:] if frame.owner != "yours")
    words = {word.removeprefix("device_").removesuffix("s") for word in _WORD.findall(code)}
    return [row for row in slots if (row.slot or "").removesuffix("s") in words] or slots
