"""States that BUILD sets, beside what torch does with the same objects and states."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any

from inspector.model.programs.uses import may_set
from inspector.pickles.values import Call, Dict, Global, Value
from tests.sweep import table

OD = Call(Global("collections", "OrderedDict"), (), "reduce")
STRANGER = Call(Global("mine", "Thing"), (), "reduce")


@table(
    ("kind", "state", "is_set"),
    [
        ("?", 5, True),
        ("Size", STRANGER, True),
        ("bytes", Dict([]), False),
        ("layout", None, False),
        ("Tensor", (), True),
        ("Tensor", None, False),
        ("Tensor", (1,), False),
        ("Tensor", (OD,), False),
        ("Tensor", (STRANGER,), True),
        ("Tensor", (STRANGER, 0, (4,), (1,)), True),
        ("Tensor", (STRANGER, 0, (4.0,), (1,)), False),
        ("Tensor", (STRANGER, 0), False),
        ("Parameter", (True, None, OD), True),
        ("Parameter", (1, 2, 3), False),
        ("Parameter", (True, None), False),
        ("Parameter", None, False),
        ("Parameter", (STRANGER, None, None, False, OD), True),
        ("Parameter", (1, None, None, False, OD), False),
    ],
)
def test_states_of_torchs_types(kind: str, state: Value, is_set: bool) -> None:
    assert may_set(kind, state) == is_set


@table("state", [None, {}, {"a": 1}, [], [("a", 1)], [1], 5, "ab", (None, {"a": 1}), ({}, {})])
@table("made", [OrderedDict, Counter, set])
def test_states_of_pythons_types(made: type[Any], state: Any) -> None:
    inst, given = made(), state
    try:
        if made is OrderedDict:
            inst.__dict__.update(given)
        else:
            slots = None
            if isinstance(given, tuple):
                given, slots = given
            if given:
                inst.__dict__.update(given)
            for key, value in (slots or {}).items():
                setattr(inst, key, value)
        taken = True
    except (TypeError, AttributeError, ValueError):
        taken = False
    assert may_set(made.__name__, _inert(state)) == taken


def _inert(value: Any) -> Value:
    if isinstance(value, dict):
        return Dict(list(value.items()))
    return tuple(map(_inert, value)) if isinstance(value, tuple) else value
