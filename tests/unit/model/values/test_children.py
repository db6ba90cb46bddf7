"""What is inside a value, by key."""

from __future__ import annotations

import tracemalloc

import pytest

from inspector.model.values.children import (
    breadth_of,
    children_of,
    find_attribute,
    mapping_pairs,
    unlisted_arguments,
)
from inspector.model.values.text import TwinNumber, TwinOddKey, TwinText, step_text
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, Set, Value
from tests.sweep import table

INNER = Dict([("k", 1)])


def call(dotted: str, *args: Value) -> Call:
    module, _, name = dotted.rpartition(".")
    return Call(Global(module, name), args, "reduce")


def filled(made: Call, **parts: Value) -> Call:
    for name, value in parts.items():
        setattr(made, name, value)
    return made


@table(
    "value",
    [
        None,
        5,
        "text",
        Blob("text", 0, 1),
        Global("a", "b"),
        [],
        [1, "x", None, b"y", Global("a", "b"), Blob("int", 0, 5)],
        (1, 2),
        Dict([]),
        Set([1], frozen=True),
        PersistentId("x"),
        call("torch.Size", (1, [])),
        call("torch.device", INNER),
        call("torch.serialization._get_layout", INNER),
        call("__builtin__.complex", INNER),
        call("_codecs.encode", "x", "latin1"),
        call("numpy.core.multiarray.scalar", INNER, b""),
        call("a.B", 1, 2),
        call("collections.OrderedDict"),
        call("__builtin__.set", [1, 2]),
        call("copyreg._reconstructor", Global("a", "B"), Global("builtins", "object"), None),
        call("copyreg.__newobj__", INNER),
        Call(Global("a", "B"), 5, "reduce"),
    ],
)
def test_leaves(value: Value) -> None:
    assert not [*children_of(value)]


CONTAINERS: list[tuple[Value, list[tuple[str | int, Value]]]] = [
    ([1, INNER], [(0, 1), (1, INNER)]),
    ((INNER,), [(0, INNER)]),
    (Dict([("a", 1), (5, 2), ((1, 2), 3)]), [("a", 1), (5, 2), ("(1, 2)", 3)]),
    (Set([INNER], frozen=False), [(0, INNER)]),
    (PersistentId(INNER), [(0, INNER)]),
    (call("a.B", 1, INNER), [(0, 1), (1, INNER)]),
    (Call(Global("a", "B"), INNER, "reduce"), [(0, INNER)]),
    (call("collections.OrderedDict", [["a", 1], ("b", 2), "no pair", [1]]), [("a", 1), ("b", 2)]),
    (call("collections.Counter", Dict([("a", 1)])), [("a", 1)]),
    (call("collections.OrderedDict", 5), []),
    (filled(call("collections.OrderedDict"), pairs=[("a", 1)]), [("a", 1)]),
    (filled(call("collections.OrderedDict", [["a", 1]]), pairs=[("b", 2)]), [("a", 1), ("b", 2)]),
    (filled(call("collections.defaultdict", Global("a", "b")), pairs=[("a", 1)]), [("a", 1)]),
    (filled(call("mine.Mapping"), pairs=[("a", 1)], state=Dict([("x", 2)])), [("a", 1), (".x", 2)]),
    (filled(call("mine.List"), items=[1, 2]), [(0, 1), (1, 2)]),
    (call("collections.deque", [INNER], 5), [(0, INNER)]),
    (call("builtins.set", INNER), [(0, INNER)]),
    (call("builtins.set"), []),
    (call("copyreg._reconstructor", Global("a", "B"), Global("builtins", "dict"), INNER), [("k", 1)]),
    (call("copyreg._reconstructor", Global("a", "B"), Global("builtins", "list"), [INNER]), [(0, INNER)]),
    (Call(Global("a", "B"), (), "newobj", Dict([("name", 1)])), [(".name", 1)]),
    (filled(call("a.B"), state=(Dict([("x", 1)]), Dict([("y", 2)]))), [(".x", 1), (".y", 2)]),
    (filled(call("a.B"), state=(None, Dict([("y", 2)]))), [(".y", 2)]),
    (filled(call("a.B"), state=(Dict([("x", 1)]), 5)), [(".state", (Dict, 5))]),
    (filled(call("a.B"), state=7), [(".state", 7)]),
    (filled(Call(5, (), "reduce"), state=Dict([(1, 2)])), [(".1", 2)]),
    (
        filled(call("numpy.core.multiarray._reconstruct"), state=(1, (1,), None, False, [INNER])),
        [(0, INNER)],
    ),
    (filled(call("numpy.core.multiarray._reconstruct"), state=(1, (1,), None, False, b"x")), []),
]


@table(("value", "expected"), CONTAINERS)
def test_children(value: Value, expected: list[tuple[str | int, Value]]) -> None:
    found = children_of(value)
    assert [key for key, _ in found] == [key for key, _ in expected]
    for (_, item), (key, wanted) in zip(found, expected, strict=True):
        if key == ".state" and wanted != 7:
            assert isinstance(item, tuple)
        else:
            assert item == wanted


def test_pairs_of_mappings() -> None:
    assert mapping_pairs(Dict([("a", 1)])) == [("a", 1)]
    assert mapping_pairs(call("collections.OrderedDict")) == []
    assert mapping_pairs(call("collections.defaultdict")) == []
    assert mapping_pairs(call("a.B")) is None
    assert mapping_pairs([1]) is None
    assert mapping_pairs(Call(5, (), "reduce")) is None


@pytest.mark.wide
def test_sets_of_sets_are_not_looked_through() -> None:
    value: Value = call("builtins.set", [1])
    for _ in range(100_000):
        value = call("builtins.set", value)
    assert [key for key, _ in children_of(value)] == [0]


def test_children_of_several_kinds_come_in_order_and_are_counted() -> None:
    shared: list[Value] = [["a", 1], "no pair", ("b", [])]
    value = Call(Global("collections", "OrderedDict"), (shared,), "reduce")
    value.pairs = [("c", [])]
    value.state = (Dict([("x", 1)]), Dict([(5, [])]))
    found = children_of(value)
    expected = [("a", 1), ("b", []), ("c", []), (".x", 1), (".5", [])]
    assert (len(found), list(found), list(found)) == (5, expected, expected)
    assert mapping_pairs(value) == expected[:3]


@pytest.mark.wide
@table(("keys", "nbytes"), [(10_000, 100_000), (1, 50 * 10_000 * 5)])
def test_objects_that_share_their_arguments_share_their_children(keys: int, nbytes: int) -> None:
    shared: list[Value] = [(f"key{number % keys}", []) for number in range(10_000)]
    calls = [Call(Global("collections", "OrderedDict"), (shared,), "reduce") for _ in range(50)]
    tracemalloc.start()
    found = [children_of(call) for call in calls]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, found)) == 500_000
    assert kept < nbytes


def steps_of(value: Value) -> list[str]:
    return [step_text(key) for key, _ in children_of(value)]


def test_keys_that_read_alike_are_told_apart() -> None:
    value = Dict([(1, []), ("1", []), (None, []), ("None", []), ((1, 2), []), ("(1, 2)", []), (2, [])])
    assert steps_of(value) == ["1~#1", "1", "None~#1", "None", "(1, 2)~#1", "(1, 2)", "2"]
    assert [key for key, _ in children_of(value)][:3] == [1, "1", "None"]
    assert [type(key) for key, _ in children_of(value)][:4] == [TwinNumber, str, TwinOddKey, str]
    assert steps_of(Dict([("1", []), (1, []), ("2", []), (2, [])])) == ["1", "1~#1", "2", "2~#1"]


def test_of_a_key_that_is_given_again_the_last_is_plain() -> None:
    value = Dict([("a", []), ("b", []), ("a", []), ("a", [])])
    assert steps_of(value) == ["a~#2", "b", "a~#1", "a"]
    assert [type(key) for key, _ in children_of(value)][:2] == [TwinText, str]
    assert len(children_of(value)) == 4


def test_entries_go_before_arguments_and_attributes_that_read_the_same() -> None:
    call = Call(Global("a", "B"), ([], [1, []]), "reduce")
    call.pairs = [("0", []), (".x", []), ("1", [])]
    call.items = [[]]
    call.state = Dict([("x", []), ("y", [])])
    assert steps_of(call) == ["0~#2", "1~#1", "0", ".x", "1", "0~#1", ".x~#1", ".y"]


@pytest.mark.parametrize("one", ["~#1", "a~#1", "1~#1"])
def test_a_mark_is_no_key(one: str) -> None:
    value = Dict([(1, []), ("1", []), (one, [])])
    assert len(set(steps_of(value))) == 3


@table(
    ("value", "breadth"),
    [
        (None, 0),
        ("text", 0),
        ([1, 2], 2),
        ((1, [2, 3]), 2),
        (Dict([(1, 2)]), 1),
        (Set([1, 2], frozen=False), 2),
        (Call(None, (1, 2), "reduce"), 2),
        (Call(None, ([1, 2, 3],), "reduce"), 4),
        (Call(None, (Dict([(1, 2)]), Set([1], frozen=True)), "reduce"), 4),
        (Call(None, None, "reduce"), 0),
        (Call(None, (Call(None, ((1, 2, 3),), "reduce"),), "reduce"), 4),
        (Call(None, (Call(None, None, "reduce"),), "reduce"), 1),
        (Call(None, (), "newobj", Dict([(1, 2), (3, 4)])), 2),
    ],
)
def test_breadth_is_what_is_looked_at(value: Value, breadth: int) -> None:
    assert breadth_of(value) == breadth


def test_attributes_are_found_by_name() -> None:
    assert find_attribute((Dict([("a", 1)]), Dict([("b", 2), ("b", 3)])), ".b") == 2
    assert find_attribute(Dict([("a", 1)]), ".b") is None
    assert find_attribute(5, ".state") == 5


def test_arguments_that_are_no_children_are_those_beside_contents() -> None:
    own = Global("my", "Own")
    rows: list[tuple[Call, tuple[Value, ...]]] = [
        (call("my.Own", 1, "a"), (1, "a")),
        (call("my.Own", [INNER]), ()),
        (call("my.Own", INNER, 1), ()),
        (call("collections.deque", [INNER], 3), (3,)),
        (call("collections.OrderedDict"), ()),
        (call("collections.OrderedDict", [["k", 1]], 2), (2,)),
        (call("collections.OrderedDict", 2), (2,)),
        (call("copy_reg._reconstructor", own, Global("__builtin__", "object"), None), ()),
        (
            call("copyreg._reconstructor", own, Global("builtins", "tuple"), (1,)),
            (Global("builtins", "tuple"), (1,)),
        ),
        (call("copyreg.__newobj__", own, 1, None), (1, None)),
        (Call(1, 2, "reduce"), (2,)),
    ]
    for made, wanted in rows:
        found = unlisted_arguments(made)
        assert [getattr(one, "dotted", one) for one in found] == [
            getattr(one, "dotted", one) for one in wanted
        ]
