"""One example of every opcode, and what must hold for all of them: against CPython, cut off, resumed."""

from __future__ import annotations

import pickle
import pickletools
import struct
from typing import Any

import pytest

from inspector.errors import PickleError
from inspector.limits import Limits
from inspector.pickles.handlers import CALLS, CONTAINERS, HANDLERS, MEMO
from inspector.pickles.handlers_literals import LITERALS
from inspector.pickles.instructions import CODES, OPCODES, iter_instructions
from inspector.pickles.machine import read_pickle
from inspector.pickles.oddities import StreamFault
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
    plain,
    proto,
    read,
    root,
    stream,
    text,
    tuple_,
)
from tests.sweep import table

ORDERED_DICT = ("global", "collections.OrderedDict")

# Opcode -> the instructions before STOP, and the value they stand for.
EXAMPLES: dict[str, tuple[bytes, Any]] = {
    "INT": (op("INT", b"-17\n"), -17),
    "BININT": (op("BININT", struct.pack("<i", -70000)), -70000),
    "BININT1": (op("BININT1", b"\xff"), 255),
    "BININT2": (op("BININT2", b"\x00\xff"), 0xFF00),
    "LONG": (op("LONG", b"123456789012345678901L\n"), 123456789012345678901),
    "LONG1": (op("LONG1", b"\x02\x00\xff"), -256),
    "LONG4": (op("LONG4", b"\x03\x00\x00\x00\x01\x02\x03"), 0x030201),
    "STRING": (op("STRING", b"'a\\n\\x41\\''\n"), "a\nA'"),
    "BINSTRING": (op("BINSTRING", b"\x02\x00\x00\x00ab"), "ab"),
    "SHORT_BINSTRING": (op("SHORT_BINSTRING", b"\x02ab"), "ab"),
    "BINBYTES": (op("BINBYTES", b"\x02\x00\x00\x00\x00\xff"), b"\x00\xff"),
    "SHORT_BINBYTES": (op("SHORT_BINBYTES", b"\x02\x00\xff"), b"\x00\xff"),
    "BINBYTES8": (op("BINBYTES8", struct.pack("<Q", 2) + b"\x00\xff"), b"\x00\xff"),
    "BYTEARRAY8": (op("BYTEARRAY8", struct.pack("<Q", 2) + b"\x00\xff"), b"\x00\xff"),
    "NEXT_BUFFER": (op("NEXT_BUFFER"), ("blob", "buffer", 1, 0)),
    "READONLY_BUFFER": (op("SHORT_BINBYTES", b"\x01a") + op("READONLY_BUFFER"), b"a"),
    "NONE": (NONE, None),
    "NEWTRUE": (op("NEWTRUE"), True),
    "NEWFALSE": (op("NEWFALSE"), False),
    "UNICODE": (op("UNICODE", b"\\u00e9\xe9\\\n"), "\u00e9\u00e9\\"),
    "SHORT_BINUNICODE": (op("SHORT_BINUNICODE", b"\x02\xc3\xa9"), "\u00e9"),
    "BINUNICODE": (text("na\u00efve"), "na\u00efve"),
    "BINUNICODE8": (op("BINUNICODE8", struct.pack("<Q", 1) + b"a"), "a"),
    "FLOAT": (op("FLOAT", b"-1.5e300\n"), -1.5e300),
    "BINFLOAT": (op("BINFLOAT", struct.pack(">d", 0.1)), 0.1),
    "EMPTY_LIST": (op("EMPTY_LIST"), []),
    "APPEND": (op("EMPTY_LIST") + number(1) + op("APPEND"), [1]),
    "APPENDS": (op("EMPTY_LIST") + MARK + number(1) + number(2) + op("APPENDS"), [1, 2]),
    "LIST": (MARK + number(1) + op("LIST"), [1]),
    "EMPTY_TUPLE": (op("EMPTY_TUPLE"), ()),
    "TUPLE": (MARK + number(1) + number(2) + op("TUPLE"), (1, 2)),
    "TUPLE1": (number(1) + op("TUPLE1"), (1,)),
    "TUPLE2": (number(1) + number(2) + op("TUPLE2"), (1, 2)),
    "TUPLE3": (number(1) + number(2) + number(3) + op("TUPLE3"), (1, 2, 3)),
    "EMPTY_DICT": (op("EMPTY_DICT"), ("dict", [])),
    "DICT": (MARK + number(1) + number(2) + op("DICT"), ("dict", [(1, 2)])),
    "SETITEM": (op("EMPTY_DICT") + number(1) + number(2) + op("SETITEM"), ("dict", [(1, 2)])),
    "SETITEMS": (op("EMPTY_DICT") + MARK + number(1) + number(2) + op("SETITEMS"), ("dict", [(1, 2)])),
    "EMPTY_SET": (op("EMPTY_SET"), ("set", [])),
    "ADDITEMS": (op("EMPTY_SET") + MARK + number(1) + number(2) + op("ADDITEMS"), ("set", [1, 2])),
    "FROZENSET": (MARK + number(1) + op("FROZENSET"), ("frozenset", [1])),
    "POP": (number(1) + number(2) + op("POP"), 1),
    "DUP": (number(1) + op("DUP") + op("TUPLE2"), (1, 1)),
    "MARK": (MARK + op("TUPLE"), ()),
    "POP_MARK": (number(1) + MARK + number(2) + number(3) + op("POP_MARK"), 1),
    "GET": (number(1) + op("PUT", b"0\n") + op("GET", b"0\n") + op("TUPLE2"), (1, 1)),
    "BINGET": (number(1) + op("BINPUT", b"\x00") + op("BINGET", b"\x00") + op("TUPLE2"), (1, 1)),
    "LONG_BINGET": (number(1) + op("BINPUT", b"\x00") + op("LONG_BINGET", bytes(4)) + op("TUPLE2"), (1, 1)),
    "PUT": (number(1) + op("PUT", b"12\n") + op("BINGET", b"\x0c") + op("TUPLE2"), (1, 1)),
    "BINPUT": (number(1) + op("BINPUT", b"\x07") + op("GET", b"7\n") + op("TUPLE2"), (1, 1)),
    "LONG_BINPUT": (number(1) + op("LONG_BINPUT", bytes(4)) + op("BINGET", b"\x00") + op("TUPLE2"), (1, 1)),
    "MEMOIZE": (number(1) + op("MEMOIZE") + op("BINGET", b"\x00") + op("TUPLE2"), (1, 1)),
    "EXT1": (op("EXT1", b"\x07"), ("global", "copyreg.extension_7")),
    "EXT2": (op("EXT2", b"\x00\x01"), ("global", "copyreg.extension_256")),
    "EXT4": (op("EXT4", b"\xff\xff\xff\xff"), ("global", "copyreg.extension_-1")),
    "GLOBAL": (name("collections.OrderedDict"), ORDERED_DICT),
    "STACK_GLOBAL": (text("collections") + text("OrderedDict") + op("STACK_GLOBAL"), ORDERED_DICT),
    "REDUCE": (call("collections.OrderedDict"), ("reduce", ORDERED_DICT, (), {})),
    "BUILD": (
        call("collections.OrderedDict") + op("EMPTY_DICT") + op("BUILD"),
        ("reduce", ORDERED_DICT, (), {"state": ("dict", [])}),
    ),
    "INST": (
        MARK + number(1) + op("INST", b"collections\nOrderedDict\n"),
        ("inst", ORDERED_DICT, (1,), {}),
    ),
    "OBJ": (MARK + name("collections.OrderedDict") + op("OBJ"), ("inst", ORDERED_DICT, (), {})),
    "NEWOBJ": (
        name("collections.OrderedDict") + op("EMPTY_TUPLE") + op("NEWOBJ"),
        ("newobj", ORDERED_DICT, (), {}),
    ),
    "NEWOBJ_EX": (
        name("collections.OrderedDict") + op("EMPTY_TUPLE") + op("EMPTY_DICT") + op("NEWOBJ_EX"),
        ("newobj", ORDERED_DICT, (), {"kwargs": ("dict", [])}),
    ),
    "PROTO": (op("PROTO", b"\x05") + NONE, None),
    "STOP": (NONE, None),
    "FRAME": (op("PROTO", b"\x04") + op("FRAME", struct.pack("<Q", 2)) + NONE, None),
    "PERSID": (op("PERSID", b"key\n"), ("persistent", "key")),
    "BINPERSID": (text("key") + op("BINPERSID"), ("persistent", "key")),
}

# What CPython cannot load without help: no such buffer, extension or persistent id, or no arguments to spare.
NOT_FOR_CPYTHON = {"NEXT_BUFFER", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID", "INST"}
EVERY = sorted(EXAMPLES)


def test_every_opcode_has_a_handler_and_an_example() -> None:
    every = {opcode.name for opcode in pickletools.opcodes}
    assert set(EXAMPLES) == every
    assert LITERALS.keys() | CONTAINERS.keys() | MEMO.keys() | CALLS.keys() == every
    assert len(LITERALS) + len(CONTAINERS) + len(MEMO) + len(CALLS) == len(every)


def test_every_other_byte_is_refused() -> None:
    for code in set(range(256)) - set(OPCODES):
        with pytest.raises(PickleError, match=r"the byte is no pickle opcode: pickle, byte 1$"):
            read_pickle(NONE + bytes([code]) + stream())
    assert len(HANDLERS) == 256


@table("opcode", EVERY)
def test_example_uses_its_opcode_and_gives_its_value(opcode: str) -> None:
    instructions, value = EXAMPLES[opcode]
    data = stream(instructions)
    found = read_pickle(data)
    assert plain(found.root) == value
    assert type(found.root) is not bool or type(value) is bool
    assert found.end == len(data)
    used = {data[start] for start, _ in iter_instructions(data, 0, len(data))}
    assert found.opcodes == used
    assert CODES[opcode] in used


@table("opcode", sorted(EXAMPLES.keys() - NOT_FOR_CPYTHON))
def test_cpython_agrees_that_the_example_is_sound(opcode: str) -> None:
    data = stream(EXAMPLES[opcode][0])
    theirs = pickle.loads(data)
    ours = read_pickle(data).root
    if isinstance(theirs, int | float | str | bytes | list | tuple | None):
        assert ours == theirs


@table("opcode", EVERY)
def test_stream_cut_off_anywhere_breaks_off(opcode: str) -> None:
    data = stream(EXAMPLES[opcode][0])
    for nbytes in range(len(data)):
        with pytest.raises(PickleError, match="the pickle breaks off before its end"):
            read_pickle(data[:nbytes])


@table("opcode", EVERY)
@table("step", [1, 3])
def test_stream_that_arrives_in_pieces_gives_the_same(opcode: str, step: int) -> None:
    instructions, value = EXAMPLES[opcode]
    data = stream(instructions) + b"what follows"
    found = read_pickle(b"", extend=lambda nbytes: data[: nbytes + step])
    assert plain(found.root) == value
    assert found.end == len(stream(instructions))
    assert not {oddity.kind for oddity in found.oddities} - {"out-of-band-buffer", "extension-code"}


@table(
    "opcode",
    sorted(
        {opcode.name for opcode in pickletools.opcodes if opcode.stack_before}
        | {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
    ),
)
def test_nothing_on_the_stack_is_an_error(opcode: str) -> None:
    operand = {"PUT": b"0\n", "BINPUT": b"\x00", "LONG_BINPUT": bytes(4), "INST": b"a\nb\n"}.get(opcode, b"")
    with pytest.raises(PickleError, match=rf"takes what is not on its stack: pickle, byte 0, {opcode}$"):
        read(op(opcode, operand))


@table("opcode", ["TUPLE2", "TUPLE3", "SETITEM", "STACK_GLOBAL", "REDUCE", "BUILD", "NEWOBJ", "NEWOBJ_EX"])
def test_one_value_too_few_is_an_error(opcode: str) -> None:
    needed = {"TUPLE3": 3, "SETITEM": 3, "NEWOBJ_EX": 3}.get(opcode, 2)
    with pytest.raises(PickleError, match="takes what is not on its stack"):
        read(NONE * (needed - 1), op(opcode))


@table("opcode", ["TUPLE1", "DUP", "APPEND", "BINPERSID", "STOP", "REDUCE", "BUILD"])
def test_values_below_a_mark_are_out_of_reach(opcode: str) -> None:
    with pytest.raises(PickleError, match="takes what is not on its stack"):
        read(NONE * 5, MARK, op(opcode))


def test_limits_leave_small_values_alone() -> None:
    """An example is small: the default limits and very narrow ones give the same."""
    narrow = Limits(text_nbytes=64, long_nbytes=64)
    for instructions, value in EXAMPLES.values():
        assert plain(read_pickle(stream(instructions), limits=narrow).root) == value


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


def put(opcode: str, slot: int) -> bytes:
    if opcode == "PUT":
        return op("PUT", b"%d\n" % slot)
    return op(opcode, struct.pack({"BINPUT": "<B", "LONG_BINPUT": "<I"}[opcode], slot))


def get(slot: int) -> bytes:
    return op("LONG_BINGET", struct.pack("<I", slot))


PUTS = ["PUT", "BINPUT", "LONG_BINPUT"]


@table("opcode", PUTS)
@table("slots", [(0, 1, 2), (0, 2, 1), (5, 6, 7), (2, 0, 0), (0, 0, 1)])
def test_slots_may_be_filled_in_any_order(opcode: str, slots: tuple[int, ...]) -> None:
    parts = [number(value) + put(opcode, slot) for value, slot in enumerate(slots, 10)]
    data = stream(MARK, *parts, *map(get, slots), op("LIST"))
    assert read_pickle(data).root == pickle.loads(data)


@table("slots", [(), (0,), (5,), (0, 7), (1,)])
def test_memoize_takes_the_number_of_slots(slots: tuple[int, ...]) -> None:
    parts = [number(slot) + put("BINPUT", slot) for slot in slots]
    data = stream(MARK, *parts, text("new"), op("MEMOIZE"), get(len(slots)), op("LIST"))
    assert read_pickle(data).root == pickle.loads(data)


@table("instruction", [op("GET", b"3\n"), op("BINGET", b"\x03"), get(3)])
@table("filled", [0, 9])
def test_empty_slot(instruction: bytes, filled: int) -> None:
    with pytest.raises(PickleError, match="memo slot 3 is read before it is filled: pickle, byte 3, "):
        read(NONE + put("BINPUT", filled), instruction)


def test_largest_slot_takes_no_memory() -> None:
    assert root(text("a"), put("LONG_BINPUT", 0xFFFFFFFF), get(0xFFFFFFFF), op("TUPLE2")) == ("a", "a")
    assert kinds(text("a"), put("LONG_BINPUT", 0xFFFFFFFF)) == []


def test_slot_too_large_for_a_real_unpickler_is_noted() -> None:
    assert kinds(NONE, put("PUT", 2**32 - 1)) == []
    assert kinds(NONE, put("PUT", 2**32)) == ["huge-memo-slot"]
    assert kinds(NONE, put("PUT", 10**18)) == ["huge-memo-slot"]
    assert root(text("a"), put("PUT", 10**18), op("GET", b"%d\n" % 10**18), op("TUPLE2")) == ("a", "a")


def test_slots_that_would_all_hash_alike_are_refused() -> None:
    """Multiples of 2**61 - 1 share one hash; a million of them would take hours to remember."""
    read(NONE, put("PUT", 2**63 - 1))
    with pytest.raises(PickleError, match="a memo slot is out of range"):
        read(NONE, put("PUT", 2**63))


@table("slot", [b"-1", b"-9999999999999999999999"])
@table("opcode", ["PUT", "GET"])
def test_negative_slot(opcode: str, slot: bytes) -> None:
    with pytest.raises(PickleError, match="a memo slot is out of range"):
        read(NONE, op(opcode, slot + b"\n"))


@table("slot", [b"", b"x", b"1.0", b"0x1"])
@table("opcode", ["PUT", "GET"])
def test_slot_that_is_no_number(opcode: str, slot: bytes) -> None:
    with pytest.raises(PickleError, match="an operand that cannot be read"):
        read(NONE, op(opcode, slot + b"\n"))


def test_slot_on_an_endless_line() -> None:
    with pytest.raises(PickleError, match="a memo slot is not a short line"):
        read(NONE, op("PUT", b"0" * 64 + b"\n"))
    assert root(NONE, op("PUT", b"0" * 63 + b"\n")) is None


# ------------------------------------------------------------------------------------------- stack and marks


def test_pop_takes_a_mark_when_nothing_stands_above_it() -> None:
    data = stream(number(1), MARK, op("POP"))
    assert read_pickle(data).root == pickle.loads(data) == 1


def test_popped_call_is_still_known() -> None:
    found = read(name("os.system"), text("id"), op("TUPLE1"), op("REDUCE"), op("POP"), NONE)
    assert [node.dotted for node in found.globals] == ["os.system"]


def test_values_left_on_the_stack_are_no_matter() -> None:
    assert root(number(1), MARK, number(2), number(3)) == 3


# ------------------------------------------------------------------------------------------- protocol, frames


@table("version", range(6))
def test_protocol(version: int) -> None:
    assert read(proto(version), NONE).protocol == version


def test_protocol_is_the_highest_declared() -> None:
    assert read(NONE).protocol == 0
    assert read(proto(4), proto(2), NONE).protocol == 4


def test_unknown_protocol() -> None:
    # torch's restricted unpickler goes on, and CPython's stops.
    found = read(proto(2), proto(6), NONE)
    assert (found.protocol, found.oddities, found.faults) == (2, (), {StreamFault.UNKNOWN_PROTOCOL})


def frame(*parts: bytes, nbytes: int | None = None) -> bytes:
    body = b"".join(parts)
    return op("FRAME", struct.pack("<Q", len(body) if nbytes is None else nbytes)) + body


@table(
    "parts",
    [
        (frame(NONE, b"."),),
        (frame(MARK, number(1)), frame(number(2), op("LIST"), b".")),
        (frame(MARK, number(1)), number(2), frame(op("LIST"), b".")),
        (frame(), frame(), frame(NONE), b"."),
        (
            frame(NONE, b".", nbytes=2**64 - 1),
        ),  # too long; the C unpickler would refuse it, none would differ
    ],
)
def test_frames_that_keep_to_the_instructions_are_no_matter(parts: tuple[bytes, ...]) -> None:
    found = read_pickle(proto(4) + b"".join(parts))
    assert found.oddities == ()
    assert found.end == 2 + len(b"".join(parts))


@table("nbytes", range(1, 5))
def test_instruction_that_crosses_the_end_of_its_frame(nbytes: int) -> None:
    """The C unpickler drops the rest of a frame and goes on behind it: it sees other instructions."""
    found = read(proto(4), frame(text(""), nbytes=nbytes))
    assert [(oddity.kind, oddity.offset) for oddity in found.oddities] == [("frame-straddle", 11)]


def test_frame_within_a_frame() -> None:
    found = read(proto(4), frame(NONE, frame(number(1)), number(2)))
    assert [(oddity.kind, oddity.offset) for oddity in found.oddities] == [("frame-in-frame", 12)]


def test_frame_that_begins_with_the_last_byte_of_another() -> None:
    found = read(proto(4), frame(NONE, nbytes=2), frame(NONE))
    assert [(oddity.kind, oddity.offset) for oddity in found.oddities] == [("frame-in-frame", 12)]


def test_frame_that_arrives_in_pieces_is_still_watched() -> None:
    data = stream(proto(4), frame(*[number(1)] * 5, nbytes=9))
    found = read_pickle(b"", extend=lambda nbytes: data[: nbytes + 1])
    assert [(oddity.kind, oddity.offset) for oddity in found.oddities] == [("frame-straddle", 19)]


def test_long_frame_is_watched_to_its_end() -> None:
    body = NONE * 20_000
    assert read(proto(4), frame(body)).oddities == ()
    assert [note.offset for note in read(proto(4), frame(body, text("ab"), nbytes=20_001)).oddities] == [
        20_011
    ]
