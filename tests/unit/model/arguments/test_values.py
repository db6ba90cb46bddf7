"""Values of Python's own types and of torch's small ones, beside what the constructors themselves say."""

from __future__ import annotations

import _codecs
from collections import Counter, OrderedDict
from typing import Any

from inspector.model.arguments.values import RULES, is_hashable, items_of
from inspector.pickles.values import Blob, Call, Dict, Global, Set, Value
from tests.sweep import table

OD = Call(Global("collections", "OrderedDict"), ([("a", 1)],), "reduce")


@table(
    ("name", "function", "args"),
    [
        ("_codecs.encode", _codecs.encode, args)
        for args in [
            *(("a", "latin1"), ("a",), ("\u20ac", "ascii"), ("a", "ascii"), ("\u20ac", "latin-1")),
            *(("\u20ac", "latin-1", "ignore"), ("\ud800", "utf8"), ("\ud800",), ("a", "rot13")),
            *(
                ("a", "hex"),
                ("a", "no such"),
                ("a", "utf_8_sig"),
                ("a", ""),
                ("\ud800", "raw-unicode-escape"),
            ),
        ]
    ]
    + [("builtins.complex", complex, args) for args in [(), (1.5, 2), ("1",), ("x",), (True, 1), (" 1j ",)]]
    + [
        ("builtins.set", set, args)
        for args in [(), ([1],), ("ab",), ([[]],), ([(1, [])],), ([(1, (2, []))],)]
    ]
    + [("collections.Counter", Counter, args) for args in [(), ([1],), ([set()],), (["ab", (1, 2)],)]]
    + [
        ("collections.OrderedDict", OrderedDict, args)
        for args in [
            (),
            ([("a", 1)],),
            ([["a", 1], "xy"],),
            ([1],),
            ([("a",)],),
            ([([], 1)],),
            ("ab",),
            ([b"ab"],),
        ]
    ]
    + [
        ("builtins.bytearray", bytearray, args)
        for args in [
            (),
            (3,),
            (-1,),
            ([1, 255],),
            ([256],),
            ([-1],),
            ([None],),
            ("a", "latin1"),
            ("a", "nope"),
        ]
    ],
)
def test_answer_is_that_of_the_function(name: str, function: Any, args: tuple[Any, ...]) -> None:
    try:
        function(*args)
        taken = True
    except (TypeError, ValueError, UnicodeError, LookupError):
        taken = False
    assert RULES[name](args) == taken


@table(
    ("args", "taken"),
    [
        (("cpu",), True),
        (("cuda:1",), True),
        (("cuda:01",), False),
        (("nope",), False),
        (("cuda:0", 1), False),
        (("cuda", 1), True),
        (("cuda", -1), False),
        (("cuda", None), True),
        ((OD,), True),
    ],
)
def test_devices(args: tuple[Value, ...], taken: bool) -> None:
    assert RULES["torch.device"](args) == taken


def test_pairs_that_only_loading_could_tell() -> None:
    stranger = Call(Global("mine", "Pair"), (), "reduce")
    assert RULES["collections.OrderedDict"](([stranger],))


def test_what_iterating_gives() -> None:
    assert items_of("ab") == "ab"
    assert items_of(Dict([(1, 2)])) == [1]
    assert items_of(Set([3], frozen=False)) == [3]
    assert items_of(OD) == ["a"]
    filled = Call(Global("collections", "OrderedDict"), (Dict([("x", 1)]),), "reduce")
    filled.pairs = [("y", 2)]
    assert items_of(filled) == ["x", "y"]
    assert items_of(Call(Global("builtins", "set"), (OD,), "reduce")) == []
    assert items_of(Call(Global("builtins", "set"), ([1],), "newobj")) == []
    assert items_of(Call(Global("builtins", "set"), None, "reduce")) == []
    assert items_of(Call(Global("_codecs", "encode"), ("ab", "latin1"), "reduce")) == b"ab"
    assert items_of(5) == ()


def test_which_values_have_a_hash() -> None:
    assert is_hashable(Set([], frozen=True))
    assert not is_hashable(Set([], frozen=False))
    assert not is_hashable(OD)
    assert is_hashable((1, (2, "a")))
    assert not is_hashable((1, (2, OD)))


def test_sizes_and_bytes_that_nobody_copies() -> None:
    assert RULES["torch.Size"](([Blob("int", 0, 9000), Call(Global("mine", "Int"), (), "reduce")],))
    assert not RULES["torch.Size"](([None],))
    assert RULES["builtins.bytearray"]((Blob("bytes", 0, 9000),))
    assert RULES["_codecs.encode"]((Blob("text", 0, 9000), "latin1"))
    assert not RULES["_codecs.encode"](("a", Blob("text", 0, 9000)))
    assert not RULES["torch.serialization._get_layout"](("torch.sparse",))
