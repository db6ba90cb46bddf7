from __future__ import annotations

import pytest

from inspector.errors import PickleError
from tests.builders.pickles import (
    MARK,
    NONE,
    call,
    dict_,
    kinds,
    list_,
    name,
    number,
    op,
    read,
    root,
    text,
    tuple_,
)
from tests.sweep import table


def test_name_is_two_lines() -> None:
    assert root(op("GLOBAL", b"a.b\nc.d\n")) == ("global", "a.b.c.d")
    assert root(op("GLOBAL", b"\n\n")) == ("global", ".")
    assert root(op("GLOBAL", b"\xff\n\xc3\xa9\n")) == ("global", "\\xff.\u00e9")


@table("operand", [b"a" * 20 + b"\nb\n", b"a\n" + b"b" * 20 + b"\n"])
@table("opcode", ["GLOBAL", "INST"])
def test_name_on_endless_lines(opcode: str, operand: bytes) -> None:
    read(MARK, op(opcode, operand), long_nbytes=23)
    with pytest.raises(PickleError, match="the name of a global is not two short lines"):
        read(MARK, op(opcode, operand), long_nbytes=22)


def test_names_are_counted_once_each_in_order_of_use() -> None:
    found = read(MARK, name("b.c"), name("a.b"), name("b.c"), op("INST", b"b\nc\n"))
    assert [(node.dotted, node.count) for node in found.globals] == [("b.c", 3), ("a.b", 1)]


# ------------------------------------------------------------------------------------------- STACK_GLOBAL


def test_name_from_the_stack_may_come_from_the_memo() -> None:
    """Pickler writes it so when two names share a module."""
    parts = text("torch"), op("MEMOIZE"), text("device"), op("STACK_GLOBAL"), op("BINGET", b"\x00")
    assert root(*parts, text("Size"), op("STACK_GLOBAL"), op("TUPLE2")) == (
        ("global", "torch.device"),
        ("global", "torch.Size"),
    )
    assert kinds(*parts, text("Size"), op("STACK_GLOBAL")) == []


@table(
    ("module", "attribute", "dotted"),
    [
        (text("os"), number(1), "os.<an int>"),
        (NONE, text("system"), "<None>.system"),
        (call("builtins.str"), text("system"), "<an object>.system"),
        (text("os"), op("SHORT_BINBYTES", b"\x01a"), "os.<a bytes object>"),
        (name("a.b"), list_(), "<the name a.b>.<a list>"),
    ],
)
def test_name_made_up_while_loading_is_noted(module: bytes, attribute: bytes, dotted: str) -> None:
    found = read(module, attribute, op("STACK_GLOBAL"))
    assert found.root.dotted == dotted
    assert [oddity.kind for oddity in found.oddities] == ["stack-global-operands"]


# ------------------------------------------------------------------------------------------- extensions


def test_long_names_from_the_stack_are_paid_for_once_each() -> None:
    long = text("m" * 200)
    made = read(long, text("n"), op("STACK_GLOBAL"), long, text("n"), op("STACK_GLOBAL"), op("TUPLE2"))
    assert [node.dotted for node in made.globals] == [f"{'m' * 200}.n"]
    # One long text as a part of many names: each is a text of its own, and paid for as such.
    memoized = long + op("MEMOIZE")
    names = [op("BINGET", b"\0") + text(f"n{place}") + op("STACK_GLOBAL") for place in range(400)]
    assert len(read(memoized, *names).globals) == 400
    with pytest.raises(PickleError, match="values"):
        read(memoized, *names, values=900)


def test_extension_code_is_noted() -> None:
    found = read(op("EXT1", b"\x01"), op("EXT2", b"\x01\x00"), op("EXT4", b"\x01\x00\x00\x00"), op("TUPLE3"))
    assert {node.dotted for node in found.globals} == {"copyreg.extension_1"}
    assert [str(oddity) for oddity in found.oddities][:1] == [
        "extension code 1 names whatever the loading program registered (byte 0)"
    ]
    assert len(found.oddities) == 3


# ------------------------------------------------------------------------------------------- calls


def test_anything_may_be_called_and_nothing_is() -> None:
    assert root(number(1), number(2), op("REDUCE")) == ("reduce", 1, 2, {})
    assert root(NONE, list_(), op("NEWOBJ")) == ("newobj", None, [], {})


def test_keyword_arguments() -> None:
    arguments = number(1) + op("TUPLE1") + dict_((text("a"), number(2)))
    assert root(name("m.C"), arguments, op("NEWOBJ_EX")) == (
        "newobj",
        ("global", "m.C"),
        (1,),
        {"kwargs": ("dict", [("a", 2)])},
    )


def test_obj_calls_the_first_above_the_mark() -> None:
    assert root(MARK, name("m.C"), number(1), number(2), op("OBJ")) == ("inst", ("global", "m.C"), (1, 2), {})
    with pytest.raises(PickleError, match="takes what is not on its stack"):
        read(NONE, MARK, op("OBJ"))


# ------------------------------------------------------------------------------------------- BUILD


def test_state_set_twice_is_kept_whole_and_noted() -> None:
    parts = call("m.C"), number(1), op("BUILD"), number(2), op("BUILD")
    assert root(*parts)[3] == {"state": [1, 2]}
    assert kinds(*parts) == ["build-twice"]


@table(
    ("target", "kind", "words"),
    [
        (name("torch.nn"), "build-on-name", "the state of the name torch.nn is set"),
        (dict_(), "build-on-other", "the state of a dict is set"),
        (text("a"), "build-on-other", "the state of a str is set"),
    ],
)
def test_state_of_anything_else_is_noted(target: bytes, kind: str, words: str) -> None:
    found = read(target, dict_((text("loads"), NONE)), op("BUILD"))
    assert [(oddity.kind, str(oddity).partition(" (")[0]) for oddity in found.oddities] == [(kind, words)]


# ------------------------------------------------------------------------------------------- persistent ids


def test_persistent_ids_are_listed_in_order() -> None:
    found = read(text("a"), op("BINPERSID"), op("PERSID", b"b\n"), op("PERSID", b"\xff\n"), op("TUPLE3"))
    assert [node.pid for node in found.persistent_ids] == ["a", "b", "\\xff"]
    assert list(found.root) == list(found.persistent_ids)


def test_persistent_id_on_an_endless_line() -> None:
    assert root(op("PERSID", b"12345\n"), long_nbytes=6) == ("persistent", "12345")
    with pytest.raises(PickleError, match="a persistent id is not a short line: pickle, byte 0, PERSID"):
        read(op("PERSID", b"123456\n"), long_nbytes=6)


@table(
    ("parts", "weight"),
    [
        ([number(1) + number(2) + op("REDUCE")] * 10, 10),
        ([number(1) + number(2) + op("NEWOBJ")] * 10, 10),
        ([number(1) + number(2) + number(3) + op("NEWOBJ_EX")] * 10, 10),
        ([MARK + number(1) + op("OBJ")] * 10, 10),
        ([number(1) + op("BINPERSID")] * 10, 10),
        ([op("PERSID", b"a\n")] * 10, 10 + 10 // 2),
        ([op("PERSID", b"a" * 160 + b"\n")], 1 + 11 // 2),
        ([number(1), number(1), op("REDUCE"), *[number(1) + op("BUILD")] * 8], 1 + 7),
        ([op("GLOBAL", b"a\n%d\n" % each) for each in range(4)], 4 * 3 + 8 // 2),
        ([op("GLOBAL", b"a\nb\n")] * 4, 3 + 8 // 2),
        ([op("GLOBAL", b"a" * 160 + b"\n" + b"b" * 160 + b"\n")], 3 + 22 // 2),
        ([MARK, op("INST", b"a\nb\n")] * 4, 4 + 3 + 8 // 2),
        ([op("EXT1", b"\1")] * 4, 3),
    ],
)
def test_calls_and_names_weigh_what_they_take(parts: list[bytes], weight: int) -> None:
    filler = NONE * 8192  # so that the budget is looked at
    read(*parts, filler, values=weight)
    with pytest.raises(PickleError, match=f"makes more than {weight - 1} values"):
        read(*parts, filler, values=weight - 1)


def test_few_long_names_are_refused_at_once() -> None:
    for instruction in (op("GLOBAL", b"a\n" + b"a" * 16_000 + b"\n"), op("PERSID", b"a" * 16_000 + b"\n")):
        with pytest.raises(PickleError, match="makes more than 4,990 values"):
            read(instruction * 10, values=4990)


def test_calls_are_remembered_but_for_those_that_make_plain_tensors() -> None:
    tensor = call("torch._utils._rebuild_tensor_v2", *[NONE] * 6)
    dropped = call("os.system", text("id")) + op("POP")
    found = read(
        MARK,
        tensor,
        dropped,
        call("collections.OrderedDict"),
        name("a.B") + tuple_() + op("NEWOBJ"),
        name("a.B") + tuple_() + dict_() + op("NEWOBJ_EX"),
        MARK + op("INST", b"a\nC\n"),
        MARK + name("a.D") + op("OBJ"),
        NONE + tuple_() + op("REDUCE"),
        op("LIST"),
    )
    names = [made.func and made.func.dotted for made in found.calls]
    assert names == ["os.system", "a.B", "a.B", "a.C", "a.D", None]
    assert found.calls[1] in found.root


@table(
    ("target", "state", "kind"),
    [
        (name("a.B"), dict_(), "build-on-name"),
        (op("EMPTY_SET"), NONE, "build-on-set"),
        (op("EMPTY_SET"), dict_(), "build-on-set"),
        (op("EMPTY_SET"), number(1), "build-on-other"),
        (list_(), dict_(), "build-on-other"),
        (text("x") + op("BINPERSID"), dict_((text("a"), number(1))), "build-on-storage"),
        (text("x") + op("BINPERSID"), tuple_(NONE, NONE), "build-on-storage"),
        (text("x") + op("BINPERSID"), number(1), "build-on-other"),
    ],
)
def test_states_of_what_was_not_called(target: bytes, state: bytes, kind: str) -> None:
    assert kinds(target + state + op("BUILD")) == [kind]


@table(
    ("dotted", "faults"),
    [("collections.OrderedDict", {"build-of-none"}), ("_codecs.encode", {"build-of-none"}), ("a.B", set())],
)
def test_torch_looks_into_none(dotted: str, faults: set[str]) -> None:
    assert read(call(dotted) + NONE + op("BUILD")).faults == faults
    assert read(text("x") + tuple_() + op("REDUCE") + NONE + op("BUILD")).faults == set()
