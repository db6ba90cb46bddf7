"""The opcodes of pickle protocols 0 to 5 and how long each instruction is.

The table repeats that of CPython's `Lib/pickletools.py`; a test compares the two. It is written out because
importing `pickletools` imports `pickle`, which takes time at start-up and can run what it reads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal

from inspector.records import dataclass

Operand = Literal[
    "none", "u1", "u2", "i4", "u4", "u8", "f8", "line", "lines", "len1", "len4", "ilen4", "len8"
]
"""How an operand is laid out: fixed width, newline-terminated, or a length followed by that many bytes."""

U2 = struct.Struct("<H")
I4 = struct.Struct("<i")
U4 = struct.Struct("<I")
U8 = struct.Struct("<Q")
F8 = struct.Struct(">d")

_WIDTHS: dict[Operand, int] = {"none": 0, "u1": 1, "u2": 2, "i4": 4, "u4": 4, "u8": 8, "f8": 8}
_LENGTHS: dict[Operand, struct.Struct] = {"len1": struct.Struct("<B"), "len4": U4, "ilen4": I4, "len8": U8}


@dataclass(frozen=True, slots=True)
class Opcode:
    """One opcode."""

    name: str
    code: int
    operand: Operand


_TABLE: tuple[tuple[str, bytes, Operand], ...] = (
    ("INT", b"I", "line"),
    ("BININT", b"J", "i4"),
    ("BININT1", b"K", "u1"),
    ("BININT2", b"M", "u2"),
    ("LONG", b"L", "line"),
    ("LONG1", b"\x8a", "len1"),
    ("LONG4", b"\x8b", "ilen4"),
    ("STRING", b"S", "line"),
    ("BINSTRING", b"T", "ilen4"),
    ("SHORT_BINSTRING", b"U", "len1"),
    ("BINBYTES", b"B", "len4"),
    ("SHORT_BINBYTES", b"C", "len1"),
    ("BINBYTES8", b"\x8e", "len8"),
    ("BYTEARRAY8", b"\x96", "len8"),
    ("NEXT_BUFFER", b"\x97", "none"),
    ("READONLY_BUFFER", b"\x98", "none"),
    ("NONE", b"N", "none"),
    ("NEWTRUE", b"\x88", "none"),
    ("NEWFALSE", b"\x89", "none"),
    ("UNICODE", b"V", "line"),
    ("SHORT_BINUNICODE", b"\x8c", "len1"),
    ("BINUNICODE", b"X", "len4"),
    ("BINUNICODE8", b"\x8d", "len8"),
    ("FLOAT", b"F", "line"),
    ("BINFLOAT", b"G", "f8"),
    ("EMPTY_LIST", b"]", "none"),
    ("APPEND", b"a", "none"),
    ("APPENDS", b"e", "none"),
    ("LIST", b"l", "none"),
    ("EMPTY_TUPLE", b")", "none"),
    ("TUPLE", b"t", "none"),
    ("TUPLE1", b"\x85", "none"),
    ("TUPLE2", b"\x86", "none"),
    ("TUPLE3", b"\x87", "none"),
    ("EMPTY_DICT", b"}", "none"),
    ("DICT", b"d", "none"),
    ("SETITEM", b"s", "none"),
    ("SETITEMS", b"u", "none"),
    ("EMPTY_SET", b"\x8f", "none"),
    ("ADDITEMS", b"\x90", "none"),
    ("FROZENSET", b"\x91", "none"),
    ("POP", b"0", "none"),
    ("DUP", b"2", "none"),
    ("MARK", b"(", "none"),
    ("POP_MARK", b"1", "none"),
    ("GET", b"g", "line"),
    ("BINGET", b"h", "u1"),
    ("LONG_BINGET", b"j", "u4"),
    ("PUT", b"p", "line"),
    ("BINPUT", b"q", "u1"),
    ("LONG_BINPUT", b"r", "u4"),
    ("MEMOIZE", b"\x94", "none"),
    ("EXT1", b"\x82", "u1"),
    ("EXT2", b"\x83", "u2"),
    ("EXT4", b"\x84", "i4"),
    ("GLOBAL", b"c", "lines"),
    ("STACK_GLOBAL", b"\x93", "none"),
    ("REDUCE", b"R", "none"),
    ("BUILD", b"b", "none"),
    ("INST", b"i", "lines"),
    ("OBJ", b"o", "none"),
    ("NEWOBJ", b"\x81", "none"),
    ("NEWOBJ_EX", b"\x92", "none"),
    ("PROTO", b"\x80", "u1"),
    ("STOP", b".", "none"),
    ("FRAME", b"\x95", "u8"),
    ("PERSID", b"P", "line"),
    ("BINPERSID", b"Q", "none"),
)

OPCODES: dict[int, Opcode] = {code[0]: Opcode(name, code[0], operand) for name, code, operand in _TABLE}
"""All opcodes by their byte."""

CODES: dict[str, int] = {opcode.name: opcode.code for opcode in OPCODES.values()}
"""All opcode bytes by their name."""


def instruction_end(data: bytes, start: int) -> int | None:
    """Return where the instruction at `start` ends, or None if the data ends before it does."""
    if start >= len(data):
        return None
    operand = OPCODES[data[start]].operand
    if operand in _WIDTHS:
        end = start + 1 + _WIDTHS[operand]
    elif operand in _LENGTHS:
        end = _end_of_counted(data, start + 1, _LENGTHS[operand])
    else:
        end = _end_of_lines(data, start + 1, 2 if operand == "lines" else 1)
    return end if start < end <= len(data) else None


def iter_instructions(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Walk over the instructions between two offsets of a stream that was executed, as (start, end)."""
    while start < end:
        stop = instruction_end(data, start)
        if stop is None:
            return
        yield start, stop
        start = stop


def _end_of_counted(data: bytes, start: int, length: struct.Struct) -> int:
    if start + length.size > len(data):
        return -1
    count: int = length.unpack_from(data, start)[0]
    return start + length.size + max(count, 0)


def _end_of_lines(data: bytes, start: int, lines: int) -> int:
    for _ in range(lines):
        newline = data.find(b"\n", start)
        if newline < 0:
            return -1
        start = newline + 1
    return start
