from __future__ import annotations

import pytest

from inspector.errors import PickleError
from tests.builders.pickles import MARK, NONE, call, dict_, kinds, list_, name, number, op, read, root, text
from tests.sweep import table

COUNTER = call("collections.Counter")
ITEMS = MARK + number(1) + number(2)


@table("opcode", ["APPENDS", "ADDITEMS"])
@table(("target", "value"), [(op("EMPTY_LIST"), [1, 2]), (op("EMPTY_SET"), ("set", [1, 2]))])
def test_items_go_into_lists_and_sets(opcode: str, target: bytes, value: object) -> None:
    assert root(target, ITEMS, op(opcode)) == value


def test_items_are_kept_with_the_object_they_are_added_to() -> None:
    added = root(COUNTER, number(1), op("APPEND"), ITEMS, op("APPENDS"))
    assert added[3] == {"items": [1, 1, 2]}


@table("target", [NONE, number(1), text("a"), dict_(), op("EMPTY_TUPLE"), name("a.b")])
def test_items_for_anything_else_are_noted(target: bytes) -> None:
    assert kinds(target, ITEMS, op("APPENDS")) == ["append-on-other"]
    assert kinds(target, NONE, op("APPEND")) == ["append-on-other"]


def test_pairs_keep_their_order_and_their_repetitions() -> None:
    assert root(dict_((number(2), NONE), (number(1), NONE), (number(2), NONE))) == (
        "dict",
        [(2, None), (1, None), (2, None)],
    )


def test_key_of_any_kind_is_kept_and_never_hashed() -> None:
    assert root(dict_((list_(number(1)), NONE), (dict_(), NONE))) == (
        "dict",
        [([1], None), (("dict", []), None)],
    )


def test_pairs_are_kept_with_the_object_they_are_set_on() -> None:
    set_ = root(COUNTER, text("a"), number(1), op("SETITEM"), ITEMS, op("SETITEMS"))
    assert set_[3] == {"pairs": [("a", 1), (1, 2)]}


@table("target", [NONE, number(1), list_(), op("EMPTY_SET"), name("a.b")])
def test_pairs_for_anything_else_are_noted(target: bytes) -> None:
    assert kinds(target, ITEMS, op("SETITEMS")) == ["setitem-on-other"]
    assert kinds(target, NONE, NONE, op("SETITEM")) == ["setitem-on-other"]


def test_key_without_a_value_is_noted_and_left_out() -> None:
    found = read(MARK, number(1), number(2), number(3), op("DICT"))
    assert found.root.pairs == [(1, 2)]
    assert [(oddity.kind, oddity.offset) for oddity in found.oddities] == [("odd-items", 7)]
    assert kinds(op("EMPTY_DICT"), MARK, number(1), op("SETITEMS")) == ["odd-items"]


def test_list_may_hold_itself() -> None:
    found = read(op("EMPTY_LIST"), op("BINPUT", b"\x00"), op("BINGET", b"\x00"), op("APPEND"))
    assert found.root[0] is found.root


@table("opcode", ["APPENDS", "SETITEMS", "ADDITEMS"])
def test_target_below_an_outer_mark_is_out_of_reach(opcode: str) -> None:
    with pytest.raises(PickleError, match="takes what is not on its stack"):
        read(op("EMPTY_LIST"), MARK, MARK, number(1), op(opcode))


@table(
    ("parts", "weight"),
    [
        ([op("EMPTY_LIST")] * 10, 10),
        ([op("EMPTY_DICT")] * 10, 10),
        ([op("EMPTY_SET")] * 10, 10),
        ([op("EMPTY_TUPLE"), *[op("TUPLE1")] * 10], 10),
        ([NONE * 2, op("TUPLE2"), NONE * 2, op("TUPLE3")], 2),
        ([MARK + op("TUPLE")] * 10, 10),
        ([MARK + op("LIST")] * 10, 10),
        ([MARK + op("FROZENSET")] * 10, 10),
        ([MARK + op("DICT")] * 10, 10),
        ([op("EMPTY_DICT"), MARK, NONE * 36, op("SETITEMS")], 2 + 18),
        ([MARK, NONE * 40, op("DICT")], 1 + 20),
        ([op("EMPTY_DICT"), NONE * 2 + op("SETITEM")], 1 + 1),
        ([op("EMPTY_DICT"), *[NONE * 2 + op("SETITEM")] * 4], 1 + 4),
        ([COUNTER, *[NONE + op("APPEND")] * 5], 3 + 1 + 2 + 1),
        ([COUNTER, *[NONE * 2 + op("SETITEM")] * 4], 3 + 1 + 2 + 1 + 4),
    ],
)
def test_containers_weigh_what_they_take(parts: list[bytes], weight: int) -> None:
    """Each is counted, and so are an object's items, pairs, the name and arguments of a call."""
    filler = NONE * 8192  # so that the budget is looked at
    read(*parts, filler, values=weight)
    with pytest.raises(PickleError, match=f"makes more than {weight - 1} values"):
        read(*parts, filler, values=weight - 1)


def test_pairs_are_refused_before_they_are_made() -> None:
    for parts in ([op("EMPTY_DICT"), MARK, NONE * 400, op("SETITEMS")], [MARK, NONE * 400, op("DICT")]):
        read(*parts, values=202)
        with pytest.raises(PickleError, match="makes more than 199 values: pickle, byte 40"):
            read(*parts, values=199)


@table("instructions", [number(1) + op("APPEND"), MARK + number(1) + op("APPENDS")])
def test_a_set_has_no_append(instructions: bytes) -> None:
    assert kinds(op("EMPTY_SET") + instructions) == ["append-on-other"]
    assert kinds(op("EMPTY_SET") + MARK + number(1) + op("ADDITEMS")) == []
