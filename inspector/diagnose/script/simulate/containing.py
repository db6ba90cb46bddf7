"""Whether a data set of the script puts its items on a device itself."""

from __future__ import annotations

import ast

from inspector.diagnose.script.objects.values import Class, InstanceObject, Value
from inspector.diagnose.script.simulate.context import Context

_MOVES = frozenset({"to", "cuda", "mps"})


def moves_items(context: Context, dataset: Value | None) -> bool:
    """Return whether the items of a data set may lie anywhere but on the CPU."""
    held = context.memory.get(dataset) if dataset is not None else None
    script = held.script if isinstance(held, InstanceObject) else None
    return isinstance(script, Class) and any(_is_move(node) for node in ast.walk(script.node))


def _is_move(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _MOVES
    return isinstance(node, ast.keyword) and node.arg == "device"
