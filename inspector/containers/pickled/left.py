"""What is left of a pickle that breaks off: everything complete, in the containers that it was for."""

from __future__ import annotations

from itertools import takewhile

from inspector.containers.pickled.arrays import RECONSTRUCTS
from inspector.pickles.state import State
from inspector.pickles.values import Call, Dict, Global, Value

_MAPPINGS = frozenset({"collections.OrderedDict", "collections.defaultdict", "builtins.dict"})
_MOST_PENDING = 8


def folded(state: State) -> Value:
    """Return what an interrupted machine had made: what is complete, in the containers that it was for."""
    items = state.stack
    for below in reversed(state.marked):
        items = _filled(below, items)
    root = items[0] if items else None
    if len(items) > 1:
        _filled(items[:1], items[1:])
    return root


def _filled(below: list[Value], items: list[Value]) -> list[Value]:
    """Put what stands above a mark into the container below it, as far as it is complete."""
    target = below[-1] if below else None
    items = _complete(items)
    pairs = list(takewhile(_has_key, zip(items[::2], items[1::2], strict=False)))
    if isinstance(target, Dict):
        target.pairs.extend(pairs)
    elif isinstance(target, list):
        target.extend(items)
    elif isinstance(target, Call) and _is_mapping(target):
        target.pairs = [*(target.pairs or ()), *pairs]
    elif isinstance(target, Call | Global):
        return below[:-1]  # what was to be called, or completed
    return below


def _has_key(pair: tuple[Value, Value]) -> bool:
    """Return whether what stands in a key's place may be one, and is not a container that waits for more."""
    return isinstance(pair[0], str | int | float | bytes | tuple | None)


def _complete(items: list[Value]) -> list[Value]:
    """Return the items before the one that was being made when the stream broke off.

    Its function stands among the last, or the object itself, if its state was still to come.
    """
    for number in range(max(len(items) - _MOST_PENDING, 0), len(items)):
        item = items[number]
        is_made = isinstance(item, Call) and (item.kind == "newobj" or _name(item) in RECONSTRUCTS)
        if isinstance(item, Global) or (is_made and number == len(items) - 1):
            return items[:number]
    return items


def _name(call: Call) -> str:
    return call.func.present if isinstance(call.func, Global) else ""


def _is_mapping(call: Call) -> bool:
    return _name(call) in _MAPPINGS


def is_filled(root: Value) -> bool:
    """Return whether something is left of a pickle."""
    if isinstance(root, Dict | Call):
        return bool(root.pairs)
    return isinstance(root, list) and bool(root)
