"""The table of opcodes against CPython's own."""

from __future__ import annotations

import pickle
import pickletools

import pytest

from inspector.pickles.instructions import CODES, OPCODES, instruction_end, iter_instructions
from tests.builders.pickles import number, op, proto, stream, text
from tests.sweep import table

# pickletools' operand -> ours. Both read the same bytes; ours does not care what they mean.
OPERANDS = {
    None: "none",
    "uint1": "u1",
    "uint2": "u2",
    "int4": "i4",
    "uint4": "u4",
    "uint8": "u8",
    "float8": "f8",
    "decimalnl_short": "line",
    "decimalnl_long": "line",
    "stringnl": "line",
    "stringnl_noescape": "line",
    "unicodestringnl": "line",
    "floatnl": "line",
    "stringnl_noescape_pair": "lines",
    "long1": "len1",
    "string1": "len1",
    "bytes1": "len1",
    "unicodestring1": "len1",
    "long4": "ilen4",
    "string4": "ilen4",
    "bytes4": "len4",
    "unicodestring4": "len4",
    "bytes8": "len8",
    "bytearray8": "len8",
    "unicodestring8": "len8",
}


def test_table_is_that_of_pickletools() -> None:
    theirs = {
        (opcode.name, opcode.code.encode("latin-1")[0], OPERANDS[opcode.arg.name if opcode.arg else None])
        for opcode in pickletools.opcodes
    }
    assert {(opcode.name, opcode.code, opcode.operand) for opcode in OPCODES.values()} == theirs


def test_codes_and_opcodes_say_the_same() -> None:
    assert len(CODES) == len(OPCODES) == len(pickletools.opcodes)
    assert all(OPCODES[code].name == name for name, code in CODES.items())


@table("protocol", range(6))
def test_boundaries_are_those_of_genops(protocol: int) -> None:
    data = pickle.dumps(
        {"a": [1, 300, 70000, -1, 2**70, 1.5, None, True], "b": (b"x" * 300, "\u00e9", {3}, CODES)}, protocol
    )
    starts = [pos for _, _, pos in pickletools.genops(data)]
    spans = list(iter_instructions(data, 0, len(data)))
    assert [start for start, _ in spans] == starts
    assert [end for _, end in spans] == [*starts[1:], len(data)]


def test_walk_covers_what_it_is_asked_for_and_no_more() -> None:
    data = stream(proto(), number(1), text("a"))
    assert list(iter_instructions(data, 2, 4)) == [(2, 4)]
    assert list(iter_instructions(data, 3, 3)) == []


def test_walk_ends_where_the_data_does() -> None:
    data = number(1) + text("abc")[:-1]
    assert list(iter_instructions(data, 0, len(data))) == [(0, 2)]


@table(
    ("data", "end"),
    [
        (b"", None),
        (b"N", 1),
        (b"K", None),
        (b"K\x01", 2),
        (b"U", None),
        (b"U\x02a", None),
        (b"U\x02ab", 4),
        (op("BINSTRING", b"\xff\xff\xff\xff"), 5),  # a negative length: the instruction ends behind it
        (op("BINBYTES8", b"\xff" * 8), None),
        (b"I12", None),
        (b"I12\n", 4),
        (b"ca\nb", None),
        (b"ca\nb\n", 5),
    ],
)
def test_end_of_an_instruction(data: bytes, end: int | None) -> None:
    assert instruction_end(data, 0) == end


def test_byte_that_is_no_opcode_has_no_end() -> None:
    with pytest.raises(KeyError):
        instruction_end(b"\xff", 0)
