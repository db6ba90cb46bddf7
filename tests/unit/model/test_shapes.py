"""What is inside a value, for every kind of container."""

from __future__ import annotations

import collections
import pickle

import numpy as np
import pytest

from inspector.model.shapes import attributes_of, children_of, mapping_pairs
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call, Dict, Global, PersistentId, Set, Value

LIST: list[Value] = [1, []]


def read(value: object, protocol: int = 2) -> Value:
    return read_pickle(pickle.dumps(value, protocol)).root


def call(name: str, *args: Value) -> Call:
    module, _, short = name.rpartition(".")
    return Call(Global(module, short), args, "reduce")


def keys(value: Value) -> list[object]:
    return [key for key, _ in children_of(value)]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1, 2: 3, (1, 2): 4}, ["a", 2, "(1, 2)"]),
        ([1, "a", None], []),
        ([1, [2]], [0, 1]),
        ((1, [2]), [0, 1]),
        (collections.OrderedDict(a=1, b=2), ["a", "b"]),
        (collections.Counter("aab"), ["a", "b"]),
        (collections.defaultdict(list, a=[1]), ["a"]),
        (collections.deque([1, [2]]), [0, 1]),
        ({1, 2}, []),
        (1 + 2j, []),
        (b"abc", []),
        (np.zeros(3), []),
        (np.float32(1), []),
        (np.array([[1], None, {}], dtype=object), [0, 1, 2]),
        (7, []),
    ],
)
def test_plain_python(value: object, expected: list[object], protocol: int) -> None:
    assert keys(read(value, protocol)) == expected


class Thing:
    def __init__(self) -> None:
        self.name = [1]
        self.other = {}


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a, self.b = [[]], 2


class Filled(list):
    pass


@pytest.mark.parametrize("protocol", range(2, 6))
def test_objects_show_their_attributes(protocol: int) -> None:
    assert keys(read(Thing(), protocol)) == [".name", ".other"]
    assert keys(read(Slotted(), protocol)) == [".a", ".b"]


def test_a_list_with_attributes_shows_both() -> None:
    filled = Filled([1, [2]])
    filled.extra = 3
    assert keys(read(filled)) == [0, 1, ".extra"]


def test_what_copyreg_rebuilds_holds_its_base_value() -> None:
    assert keys(read(Filled([1, [2]]), 0)) == [0, 1]
    assert keys(call("copy_reg._reconstructor", None, None, Dict([("a", 1)]))) == ["a"]
    assert keys(call("copy_reg._reconstructor", None, None, 5)) == []
    assert keys(call("copy_reg._reconstructor", None)) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Set(LIST, frozen=False), [0, 1]),
        (PersistentId(LIST), [0]),
        (PersistentId("x"), []),
        (call("builtins.set", LIST), [0, 1]),
        (call("builtins.set", 5), []),
        (call("builtins.set"), []),
        (call("m.f", 1, LIST), [0, 1]),
        (call("m.f", 1, "a"), []),
        (Call(Global("m", "f"), LIST, "reduce"), [0]),
        (Call(None, (LIST,), "reduce"), [0]),
        (call("torch.Size", (1, 2)), []),
        (call("collections.OrderedDict", [["a", 1], ["b", 2], ["odd"], 5]), ["a", "b"]),
        (call("collections.OrderedDict", Dict([("a", 1)])), ["a"]),
        (call("collections.OrderedDict", 5), []),
    ],
)
def test_nodes(value: Value, expected: list[object]) -> None:
    assert keys(value) == expected


def test_mapping_pairs() -> None:
    assert mapping_pairs(5) is None
    assert mapping_pairs(call("m.f")) is None
    assert mapping_pairs(call("collections.defaultdict")) == []
    assert mapping_pairs(Call(None, (), "reduce")) is None


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (None, []),
        (Dict([("a", 1), (2, 3)]), [".a", ".2"]),
        ((None, Dict([("b", 1)])), [".b"]),
        ((Dict([("a", 1)]), None), [".a"]),
        ((1, 2), [".state"]),
        ("text", [".state"]),
        ((1, 2, 3), [".state"]),
    ],
)
def test_attributes(state: Value, expected: list[str]) -> None:
    assert [key for key, _ in attributes_of(state)] == expected


def test_keyword_arguments_are_attributes() -> None:
    value = Call(Global("m", "A"), (), "newobj", Dict([("a", 1)]))
    assert keys(value) == [".a"]
