"""Pairs of files with the same tensors and values in other containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.diff.compare import Chosen, Wish
from inspector.diff.containers import holders_of
from inspector.report.comparing.text import format_diff
from inspector.report.comparing.words import doubt_texts, verdict_text
from tests.builders import pickles as p
from tests.builders.states import Pairs, Raw, T, save_safetensors
from tests.sweep import put_through
from tests.unit.diff.test_compare import V, W, compared, said

NUMBERS = {"w": T([2.0]), "v": T([3.0])}


def made(dotted: str, *args: bytes, state: bytes = b"", **pairs: int) -> Raw:
    """An object that is a mapping, or has attributes."""
    items = b"".join(p.text(key) + p.number(value) for key, value in pairs.items())
    code = p.call(dotted, *args) + (p.MARK + items + p.op("SETITEMS") if items else b"")
    return Raw(code + (state + p.op("BUILD") if state else b""))


def attributes(**pairs: int) -> bytes:
    return p.dict_(*((p.text(key), p.number(value)) for key, value in pairs.items()))


def old(dotted: str, base: str, value: bytes, **state: int) -> Raw:
    """An object as protocols below 2 write it."""
    return made("copy_reg._reconstructor", p.name(dotted), p.name(base), value, state=attributes(**state))


def words(*texts: str) -> bytes:
    return p.tuple_(*map(p.text, texts))


def a_set(*items: bytes, name: str = "__builtin__.set") -> Raw:
    return Raw(p.call(name, p.list_(*items)))


OD = "collections.OrderedDict"
LIST = [T(W)]
BASED = "my.Own(my.Own, __builtin__.tuple, (\u2026))"
LONG = 'my.Own("' + "x" * 191 + "\u2026"
SELF: list[Any] = [T(W)]
SELF.append(SELF)
WITHIN: list[Any] = [T(W)]
WITHIN.append([WITHIN])
ALIKE: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "list and tuple": ([T(W)], (T(W),), {"containers": {"": ("list", "tuple")}}),
    "within": ({"a": [T(W)]}, {"a": (T(W),)}, {"containers": {"a": ("list", "tuple")}}),
    "dict and OrderedDict": (
        {"a": {"x": 1}},
        {"a": made(OD, x=1)},
        {"containers": {"a": ("dict", "collections.OrderedDict")}},
    ),
    "two ways of filling an OrderedDict": (
        {"a": made(OD, x=1)},
        {"a": made(OD, p.list_(p.list_(p.text("x"), p.number(1))))},
        {},
    ),
    "two classes with the same attributes": (
        {"a": made("argparse.Namespace", state=attributes(x=1))},
        {"a": made("types.SimpleNamespace", state=attributes(x=1))},
        {"containers": {"a": ("argparse.Namespace", "types.SimpleNamespace")}},
    ),
    "one class under its old and its new name": (
        {"a": made("UserDict.UserDict", state=attributes(x=1))},
        {"a": made("collections.UserDict", state=attributes(x=1))},
        {},
    ),
    "what an object was made with": (
        {"a": made("my.Own", p.number(1), state=attributes(x=1))},
        {"a": made("my.Own", p.number(2), state=attributes(x=1))},
        {"containers": {"a": ("my.Own(1)", "my.Own(2)")}},
    ),
    "what it was made with, behind what is shown": (
        {"a": made("my.Own", p.text("x" * 300), state=attributes(x=1))},
        {"a": made("my.Own", p.text("x" * 301), state=attributes(x=1))},
        {"containers": {"a": (LONG, f"{LONG} (other arguments)")}},
    ),
    "the length of a queue": (
        {"a": made("collections.deque", p.tuple_(p.tuple_(p.number(1))), p.number(2))},
        {"a": made("collections.deque", p.tuple_(p.tuple_(p.number(1))), p.number(3))},
        {"containers": {"a": ("collections.deque((\u2026), 2)", "collections.deque((\u2026), 3)")}},
    ),
    "the base of an object": (
        {"a": old("my.Own", "__builtin__.tuple", p.tuple_(p.number(1)), x=1)},
        {"a": old("my.Own", "__builtin__.tuple", p.tuple_(p.number(2)), x=1)},
        {"containers": {"a": (BASED, f"{BASED} (other arguments)")}},
    ),
    "an object in two protocols": (
        {"a": old("my.Own", "__builtin__.object", p.NONE, x=1)},
        {"a": Raw(p.new("my.Own", (p.text("x"), p.number(1))))},
        {},
    ),
    "the factory of a defaultdict": (
        {
            "a": made("collections.defaultdict", p.name("builtins.list"), x=1),
            "b": Raw(p.name("builtins.int")),
        },
        {"a": made("collections.defaultdict", p.name("builtins.int"), x=1), "b": Raw(p.name("builtins.int"))},
        {
            "containers": {
                "a": ("collections.defaultdict(builtins.list)", "collections.defaultdict(builtins.int)")
            }
        },
    ),
    "classes that TorchScript named anew": (
        {"a": made("__torch__.___torch_mangle_3.Net", state=attributes(x=1))},
        {"a": made("__torch__.___torch_mangle_11.Net", state=attributes(x=1))},
        {},
    ),
    "a list in itself, and in a list of its own": (
        SELF,
        WITHIN,
        {"containers": {"1": ("list", "list (of another length)")}},
    ),
    "a list of its own, and itself": (
        WITHIN,
        SELF,
        {"containers": {"1": ("list", "list (of another length)")}},
    ),
    "long tuples as keys that are shown alike": (
        {"a": Pairs((((*range(100), 7), T(W)),))},
        {"a": Pairs((((*range(100), 8), T(W)),))},
        {"containers": {"a": ("dict", "dict (other keys)")}},
    ),
    "the same long keys": (
        {"a": Pairs((((*range(100), 7), T(W)), (1 << 600, 1)))},
        {"a": Pairs((((*range(100), 7), T(W)), (1 << 600, 1)))},
        {},
    ),
    "large numbers as keys that are shown alike": (
        {"a": Pairs(((1 << 600, T(W)),))},
        {"a": Pairs((((1 << 600) + 1, T(W)),))},
        {"containers": {"a": ("dict", "dict (other keys)")}},
    ),
    "a number and its text as keys in another order": (
        Pairs(((1, T(W)), ("1", T(V)))),
        Pairs((("1", T(V)), (1, T(W)))),
        {"reordered": {"": ("1~#1, 1", "1, 1~#1")}},
    ),
    "the order of keys": (
        {"w": T(W), "v": T(V)},
        {"v": T(V), "w": T(W)},
        {"reordered": {"": ("w, v", "v, w")}},
    ),
    "the order of keys behind the first": (
        dict.fromkeys("abcdefgh", 1),
        dict.fromkeys("abdefghc", 1),
        {"reordered": {"": ("\u2026, c, d, e, \u2026", "\u2026, d, e, f, \u2026")}},
    ),
    "the order of keys among others": ({"a": 1, "x": 2, "b": 1}, {"a": 1, "b": 1}, {"removed": ["x"]}),
    "a key that is written twice": (
        Pairs((("a", 1), ("b", 2), ("a", 1))),
        {"a": 1, "b": 2},
        {"removed": ["a~#1"]},
    ),
    "two mappings that became one": (
        {"a": {"x": T(W), "y": T([1.0, 2.0])}, "b": {"x": T([3.0, 4.0])}},
        {"c": {"u": T(W), "v": T([1.0, 2.0]), "w": T([3.0, 4.0])}},
        {
            "renamed": {
                "a/x": ("c/u", "content"),
                "a/y": ("c/v", "content"),
                "b/x": ("c/w", "content"),
            },
        },
    ),
    "keys that are no texts": (
        Pairs(((1.5, T(W)), (2.5, T(V)))),
        Pairs(((2.5, T(V)), (1.5, T(W)))),
        {"reordered": {"": ("1.5, 2.5", "2.5, 1.5")}},
    ),
    "the order of the keys of a mapping and an object": (
        {"a": {"x": 1, "y": 2}},
        {"a": made(OD, y=2, x=1)},
        {"containers": {"a": ("dict", OD)}, "reordered": {"a": ("x, y", "y, x")}},
    ),
    "the order of attributes": (
        {"a": made("my.Own", state=attributes(x=1, y=2))},
        {"a": made("my.Own", state=attributes(y=2, x=1))},
        {},
    ),
    "a prefix in the same order": (
        {"w": T(W), "v": T(V)},
        {"module.w": T(W), "module.v": T(V)},
        {"renamed": {"w": ("module.w", "prefix"), "v": ("module.v", "prefix")}},
    ),
    "a prefix in another order": (
        {"w": T(W), "v": T(V)},
        {"module.v": T(V), "module.w": T(W)},
        {
            "renamed": {"w": ("module.w", "prefix"), "v": ("module.v", "prefix")},
            "reordered": {"": ("module.w, module.v", "module.v, module.w")},
        },
    ),
    "a mapping that moved": (
        {"a": NUMBERS, "z": 1},
        {"b": {"c": Raw(p.call(OD)), "d": NUMBERS}, "z": 1},
        {
            "added": ["b/c"],
            "renamed": {"a/w": ("b/d/w", "prefix"), "a/v": ("b/d/v", "prefix")},
        },
    ),
    "a mapping that moved with what is around it": (
        {"a": {"in": NUMBERS, "l": [{"x": T(W)}, {"x": T(V)}]}},
        {"b": {"in": NUMBERS, "l": ({"x": T(W)}, {"x": T(V)})}},
        {
            "renamed": {
                path: (path.replace("a/", "b/", 1), "prefix")
                for path in ("a/in/w", "a/in/v", "a/l/0/x", "a/l/1/x")
            },
            "containers": {"a/l": ("list", "tuple")},
        },
    ),
    "an object at two places, and two": ({"a": LIST, "b": LIST}, {"a": LIST, "b": [T(W)]}, {"sharing": None}),
    "two objects, of which one is another": (
        {"a": LIST, "b": LIST},
        {"a": [T(W, key="x")], "b": (T(W, key="x"),)},
        {"containers": {"b": ("list", "tuple")}},
    ),
    "the same the other way round": (
        {"a": [T(W, key="x")], "b": (T(W, key="x"),)},
        {"a": LIST, "b": LIST},
        {"containers": {"b": ("tuple", "list")}},
    ),
    "sets of tuples in another order": (
        {"a": a_set(words("a", "b"), words("c", "d")), "n": 1},
        {"a": a_set(words("c", "d"), words("a", "b")), "n": 1},
        {},
    ),
    "other sets": (
        {"a": a_set(words("a", "b"), words("c", "d"))},
        {"a": a_set(words("a", "b"), words("c", "e"))},
        {"changed": {"a/1": ["value"]}},
    ),
    "a set and a frozenset": (
        {"a": a_set(words("a", "b"))},
        {"a": a_set(words("a", "b"), name="__builtin__.frozenset")},
        {"containers": {"a": ("set", "frozenset")}},
    ),
    "nothing and None": ({"a": 1}, {"a": 1, "b": Raw(p.NONE)}, {"added": ["b"]}),
    "nothing and an empty list": ({"a": 1}, {"a": 1, "b": []}, {"added": ["b"]}),
    "what a function that is no name made": (
        {"a": Raw(p.tuple_(p.number(1)) + p.tuple_() + p.op("REDUCE") + attributes(x=1) + p.op("BUILD"))},
        {"a": {".x": 1}},
        {"containers": {"a": ("object", "dict")}},
    ),
}


def test_what_holds_them_is_compared(tmp_path: Path) -> None:
    def check(name: str) -> None:
        a, b, wanted = ALIKE[name]
        found = said(compared(tmp_path, a, b))
        found.pop("runs", None)  # another class is other code, which other tests see
        if "sharing" in wanted:
            assert set(found) <= set(wanted)
        else:
            assert found == wanted, found

    put_through(check, ALIKE)


def test_across_formats_it_is_said_that_containers_are_not_compared(tmp_path: Path) -> None:
    safe = save_safetensors(tmp_path / "a.safetensors", {"w": T(W), "v": T(V)})
    other = save_safetensors(tmp_path / "b.safetensors", {"v": T(V), "w": T(W)})
    diff = compared(tmp_path, {"w": T(W), "v": T(V)}, safe)
    assert (diff.is_equal, diff.has_containers) == (True, False)
    assert verdict_text(diff) == "Equal tensors: 2 tensors, 32 B compared byte by byte."
    (doubt,) = doubt_texts(diff)
    assert doubt == (
        "What holds the tensors (dicts, lists, classes, the order of keys) cannot be compared between zip "
        "and safetensors."
    )
    diff = compared(tmp_path, safe, other)
    # The header lists them in another order.
    beside = ["Not counted: bytes of the files beside their tensors."]
    assert (diff.is_equal, doubt_texts(diff)) == (True, beside)
    assert verdict_text(diff).startswith("Equal: 2 tensors")
    assert doubt_texts(compared(tmp_path, safe, safe)) == []


def test_another_order_is_said_and_counts_as_equal(tmp_path: Path) -> None:
    states = {"w": T(W), "v": T(V)}, {"v": T(V), "w": T(W)}
    diff = compared(tmp_path, *states)
    assert diff.is_equal
    assert verdict_text(diff) == (
        "Equal: 2 tensors, 32 B compared byte by byte; the keys of 1 mapping stand in another order."
    )
    diff = compared(tmp_path, *states, Wish(mode="none"))
    assert verdict_text(diff).endswith("were not compared. The keys of 1 mapping stand in another order.")


def test_only_what_holds_the_chosen_is_compared(tmp_path: Path) -> None:
    a, b = {"m": [{"w": T(W)}], "n": [{"x": 1}]}, {"m": ({"w": T(W)},), "n": ({"x": 1},)}

    def choose(checkpoint: Any) -> Chosen:
        return Chosen(frozenset(), frozenset(range(len(checkpoint.values))))

    diff = compared(tmp_path, a, b, Wish(choose=choose))
    assert [change.a_path for change in diff.containers] == ["n"]
    assert list(holders_of(["a/b/c", "a/d", "e"])) == ["a/b", "a", ""]


def test_many_of_one_kind_are_one_line(tmp_path: Path) -> None:
    names = [str(number) for number in range(5)]
    a = {
        name: {"l": [T([float(number)])], "version": 1, "o": {"a": 1, "b": 2}}
        for number, name in enumerate(names)
    }
    b = {
        name: {"l": (T([float(number)]),), "version": 2, "o": {"b": 2, "a": 1}}
        for number, name in enumerate(names)
    }
    text = format_diff(compared(tmp_path, a, b))
    assert "  ~ */version   1 \u2192 2: 5 values, such as 0/version, 1/version\n" in text
    assert "  ~ list \u2192 tuple   5 containers, such as 0/l, 1/l\n" in text
    assert "  ~ order of keys   5 mappings, such as 0/o, 1/o" in text
    assert "Different: 5 values changed, 5 containers of another type." in text
    few = format_diff(compared(tmp_path, {"0": a["0"], "p": [T(W)]}, {"0": b["0"], "p": (T(W),)}), every=True)
    assert "  ~ 0/l   list \u2192 tuple\n" in few
    assert "  ~ 0/o   keys a, b \u2192 b, a" in few
    moved = format_diff(
        compared(tmp_path, {"a": NUMBERS, "x": 1}, {"b": {"c": made(OD), "d": NUMBERS}, "x": 1})
    )
    assert "a/   \u2192" not in moved
    moved = format_diff(compared(tmp_path, {"a": [T([2.0]), T([3.0])]}, {"b": (T([2.0]), T([3.0]))}))
    assert "  ~ a   list \u2192 tuple; now b" in moved


@pytest.mark.wide
def test_what_is_cut_anywhere_is_never_equal(tmp_path: Path) -> None:
    """What no note of the file tells: that which is shown as one leaf, or not at all."""
    deep = p.number(1) + p.op("TUPLE1") * 5000
    leaf = {"x": Raw(p.call("torch.Size", deep))}
    beside = {"x": made("my.Own", p.number(1), deep, state=attributes(y=1))}
    added = {"x": T(W, more=(Raw(deep),))}
    for state in (leaf, beside, added):
        diff = compared(tmp_path, state, state)
        assert (diff.differs, diff.is_equal) == (False, False), state
