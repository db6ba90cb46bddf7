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
from tests.builders.pickles import MARK, NONE, call, name, number, op, plain, read, stream, text
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
