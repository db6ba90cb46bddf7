"""Losses: what they compare has to be on one device, and so have their weights."""

from __future__ import annotations

import ast

from inspector.diagnose.script.edits import appended
from inspector.diagnose.script.objects.tensors import fail_mixed, joined, move_edits
from inspector.diagnose.script.objects.values import UNKNOWN, Batch, ModuleObject, Tensor, Value
from inspector.diagnose.script.problems import Edit
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.records import replace


def argument_node(arguments: Arguments, stray: str) -> ast.expr | None:
    """Return how the call of the script writes the input that is on another device."""
    found = [
        node
        for node, value in arguments.written
        if isinstance(value, Tensor | Batch) and value.device == stray
    ]
    return found[0] if found else None


def call_loss(context: Context, module: ModuleObject, arguments: Arguments) -> Value:
    """Call a loss: input and target have to be on one device, and so have its weights."""
    tensors = [value for value in arguments.all if isinstance(value, Tensor)]
    if len(tensors) < 2:
        return UNKNOWN
    out, target = tensors[:2]
    asks = "nll" if module.cls in {"CrossEntropyLoss", "NLLLoss"} else "other"
    check_loss(context, out, target, asks, arguments)
    place = module.device if module.own else out.device
    if None not in {place, out.device} and place != out.device:
        fail_mixed(
            context,
            "weight" if asks == "nll" else "other",
            place or "",
            out.device or "",
            why=f"The weights of {module.cls} are on {place}, the output is on {out.device}: a loss "
            "with weights has to be moved as a model has.",
            edits=_loss_edits(context, module, out.device or ""),
        )
    return replace(joined(context, [out]), is_number=True)


def check_loss(context: Context, out: Tensor, target: Tensor, asks: str, arguments: Arguments) -> None:
    """Raise where what a loss compares is on two devices."""
    if None in {out.device, target.device} or out.device == target.device:
        return
    if True in {out.is_number, target.is_number}:
        return
    node = argument_node(arguments, target.device or "")
    fail_mixed(
        context,
        asks,
        target.device or "",
        out.device or "",
        why=f"The output is on {out.device}, and the target is on {target.device}: it was never moved.",
        edits=move_edits(context, node, out.device or "") if target.device == "cpu" else [],
    )


def _loss_edits(context: Context, module: ModuleObject, device: str) -> list[Edit]:
    word = context.device_word() or repr(device)
    for node in ast.walk(context.script.tree):
        is_it = isinstance(node, ast.Call) and node.lineno == module.line
        if is_it and context.script.source(node.func).endswith(module.cls):  # type: ignore[attr-defined]
            return [appended(context.script, node, f".to({word})")]  # type: ignore[arg-type]
    return []
