"""Devices as scripts write them, and what torch says where one is missing."""

from __future__ import annotations

import ast

from inspector.diagnose.script.edits import replaced
from inspector.diagnose.script.objects.values import NONE, Const, External, Items, Tensor, Value
from inspector.diagnose.script.problems import Edit
from inspector.diagnose.script.simulate.context import Arguments, Context, device_text
from inspector.model.roles.device_types import DEVICE_TYPES
from inspector.model.roles.devices import split_device
from inspector.target.restore import landing_place, send_failure


def read_device(context: Context, value: Value | None) -> str | None:
    """Return the device that an argument names: empty for none, None where it is not known."""
    if value is None or value == NONE:
        return ""
    if isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
        kind = context.best.partition(":")[0]
        return f"{'cuda' if kind == 'cpu' else kind}:{value.value}"
    return device_text(value)


def device_argument(context: Context, method: str, arguments: Arguments) -> str | None:
    """Return the device that `to`, `cuda` or `cpu` sends to: empty for none, None where it is not known."""
    if not arguments.whole:
        return None
    if method != "to":
        number = arguments.get(0, "device")
        if method == "cpu" or number is None or number == NONE:
            return method
        found = read_device(context, number)
        return found if found is None or not isinstance(number, Const) or ":" in found else method
    given = arguments.get(0, "device")
    if given is None or isinstance(given, External):
        return "" if given is None or given.name.startswith("torch.") else None
    if isinstance(given, Tensor | Items):
        return None
    return read_device(context, given)


def send(context: Context, device: str, node: ast.Call | None) -> str | None:
    """Return where a device is, as torch writes it; raise what torch raises where there is none."""
    parts = split_device(device)
    if parts is None or parts[0] not in DEVICE_TYPES:
        return None
    failure = send_failure(device, context.target)
    if failure is not None:
        context.fail(
            "no-device",
            failure[1],
            f"There is no {device} on the target.",
            edits=device_edits(context, device, node),
        )
    return landing_place(device, 0)


def device_edits(context: Context, device: str, node: ast.Call | None) -> list[Edit]:
    """Ask for the device that is there: where the script writes the one that is not."""
    literal = _literal(context, device, node)
    kind = device.partition(":")[0]
    if literal is not None:
        return [
            replaced(
                context.script, literal, _asked(context, kind, script_text=context.script.source(literal))
            )
        ]
    function = node.func if node is not None else None
    if node is None or not isinstance(function, ast.Attribute) or function.attr != kind:
        return []
    owner = context.script.source(function.value)
    word = context.device_word() or _asked(context, kind, script_text=f'"{kind}"')
    return [replaced(context.script, node, f"{owner}.to({word})")]


def _asked(context: Context, kind: str, *, script_text: str) -> str:
    """Return an expression for a device that falls back to what the target has."""
    best = context.best.partition(":")[0]
    if context.target.count(kind):
        return repr(context.best)  # it is the number that is not there
    available = DEVICE_TYPES[kind].available
    if available:
        return f'{script_text} if {available} else "{best}"'
    return repr(best)


def _literal(context: Context, device: str, node: ast.Call | None) -> ast.expr | None:
    """Return the text in the script that names a device which is looked for."""
    if node is None:
        return None
    wanted = {device, device.partition(":")[0]} if ":" not in device else {device}
    places = [*ast.walk(node), *ast.walk(context.script.tree)]
    # What a condition guards is right as it is, unless only the number of the device is wrong.
    guarded = set() if context.target.count(device.partition(":")[0]) else _tests(context)
    for found in places:
        if isinstance(found, ast.Constant) and found.value in wanted and found not in guarded:
            return found
    return None


def _tests(context: Context) -> set[ast.AST]:
    """Return the texts that are chosen by a condition already."""
    return {
        inner
        for choice in ast.walk(context.script.tree)
        if isinstance(choice, ast.IfExp)
        for inner in ast.walk(choice)
    }
