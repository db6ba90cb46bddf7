"""Arguments that are wrong for certain, against what the functions themselves say."""

from __future__ import annotations

import _codecs
import collections
from typing import Any

import pytest

from inspector.model.arguments import may_take
from inspector.pickles.values import Call, Dict, Global, Set, Value

NOTHING = Call(Global("collections", "OrderedDict"), (), "reduce")


def taken(name: str, *args: Value) -> bool:
    return may_take(name, Call(Global(*name.rsplit(".", 1)), args, "reduce"))


@pytest.mark.parametrize(
    ("name", "function", "args"),
    [
        ("_codecs.encode", _codecs.encode, args)
        for args in [("a", "latin1"), ("a",), (), (1,), ("a", 1), ("\u20ac", "ascii"), ("a", "ascii")]
    ]
    + [
        ("builtins.complex", complex, args)
        for args in [(), (1.5, 2), ("1",), ("1", 2), ([],), (1, 2, 3), (True, 1)]
    ]
    + [("__builtin__.set", set, args) for args in [(), ([1],), ("ab",), (1,), ([], []), (None,)]]
    + [("collections.Counter", collections.Counter, args) for args in [(), ([1],), (7,), ([], [])]]
    + [
        ("collections.OrderedDict", collections.OrderedDict, args)
        for args in [(), ([("a", 1)],), ([["a", 1], "xy"],), ([1],), ([("a",)],), (5,), ([], [])]
    ],
)
def test_answer_is_that_of_the_function(name: str, function: Any, args: tuple[Any, ...]) -> None:
    try:
        function(*args)
    except (TypeError, ValueError, UnicodeError):
        assert not taken(name, *args)
    else:
        assert taken(name, *args)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("torch.Size", args)
        for args in [(), ([1, 2],), ((1,),), ([1.5],), ("a",), (5,), (None,), ([1], [2]), ([True],)]
    ]
    + [
        ("torch.device", args)
        for args in [("cpu",), ("cuda", 1), ("cuda:1",), ("nope",), ("cuda:01",), (), ("cpu", 0, 1), (0, 1)]
    ]
    + [("torch.float32", ()), ("torch.FloatStorage", ()), ("torch.cuda.HalfStorage", (1,))],
)
def test_answer_is_that_of_torch(name: str, args: tuple[Any, ...]) -> None:
    torch = pytest.importorskip("torch")
    from torch import _weights_only_unpickler as unpickler

    function = unpickler._get_allowed_globals().get(name, torch.device)
    try:
        function(*args)
    except (TypeError, ValueError, RuntimeError):
        assert not taken(name, *args)
    else:
        assert taken(name, *args)


def test_inert_values_stand_for_what_they_will_be() -> None:
    assert taken("collections.OrderedDict", Dict([]))
    assert taken("collections.OrderedDict", [NOTHING, ("a", 1)])
    assert taken("builtins.set", Set([], frozen=False))
    assert taken("torch.Size", NOTHING)
    assert taken("torch.device", 0)
    assert taken("mine.Anything", 1, 2)


def test_arguments_that_are_no_tuple() -> None:
    assert may_take("collections.OrderedDict", Call(Global("collections", "OrderedDict"), [], "reduce"))
    assert not may_take("mine.Anything", Call(Global("mine", "Anything"), 1, "reduce"))


def test_functions_have_no_instances() -> None:
    for dotted, taken_ in (("_codecs.encode", False), ("collections.OrderedDict", True)):
        assert may_take(dotted, Call(Global(*dotted.split(".")), ("a",), "newobj")) == taken_
