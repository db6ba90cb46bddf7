"""Computing with constants: never anything large."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from inspector.diagnose.script.objects.values import UNKNOWN, Const, Value

MOST_TEXT = 2000
_Operation = Callable[[object, object], object]
_OPERATIONS: Mapping[type[ast.operator], _Operation] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}


def text_value(text: str) -> Value:
    """Return a text as a value; unknown where it is long."""
    return Const(value=text) if len(text) <= MOST_TEXT else UNKNOWN


def computed(kind: type[ast.operator], one: object, two: object) -> Value:
    """Compute with constants, never anything large."""
    if isinstance(one, str):
        return _text_of(kind, one, two)
    if isinstance(two, str) or kind not in _OPERATIONS:
        return UNKNOWN
    if any(not isinstance(part, int | float) or abs(part) > 1e15 for part in (one, two)):
        return UNKNOWN
    try:
        return Const(value=_OPERATIONS[kind](one, two))
    except ArithmeticError:
        return UNKNOWN


def _text_of(kind: type[ast.operator], one: str, two: object) -> Value:
    """Join two texts, or put one value into the one place of a text."""
    if kind is ast.Add and isinstance(two, str):
        return text_value(one + two) if len(one) + len(two) <= MOST_TEXT else UNKNOWN
    place = "%s" if "%s" in one else "%d"
    if kind is ast.Mod and one.count("%") == one.count(place) == 1:
        return text_value(one.replace(place, str(two)[:MOST_TEXT]))
    return UNKNOWN
