from __future__ import annotations

import math
import pickle
import struct
import warnings

import pytest

from inspector.errors import PickleError
from inspector.pickles.values import Blob, ByteArray, ByteString
from tests.builders.pickles import NONE, kinds, op, plain, proto, read, root, stream
from tests.sweep import table


@table(("digits", "value"), [(b"0", 0), (b"-0", 0), (b"7", 7), (b"-7", -7), (b"9" * 4000, 10**4000 - 1)])
def test_int_in_words(digits: bytes, value: int) -> None:
    assert root(op("INT", digits + b"\n")) == value
    assert root(op("LONG", digits + b"L\n")) == value
    assert root(op("LONG", digits + b"\n")) == value
    assert kinds(op("INT", digits + b"\n")) == []


def test_truth_values_of_protocol_0() -> None:
    assert root(op("INT", b"01\n")) is True
    assert root(op("INT", b"00\n")) is False
    assert kinds(op("INT", b"01\n")) == []
    assert kinds(op("LONG", b"01L\n")) == ["text-int"]


@table(
    "digits",
    [
        b"0x10",
        b"1\x00z",
        b"010",
        b"007",
        b"1_0",
        b" 1",
        b"1 ",
        b"+1",
        b"--1",
        b"-",
        b"",
        b"1\r",
        b"1e3",
        b"\xb2",
    ],
)
def test_int_that_readers_understand_differently_stays_in_the_file(digits: bytes) -> None:
    found = read(op("INT", digits + b"\n"))
    assert plain(found.root) == ("blob", "digits", 1, len(digits))
    assert [str(oddity) for oddity in found.oddities] == [
        "an integer is written in a way that readers understand differently (byte 0)"
    ]


def test_int_of_too_many_digits_stays_in_the_file() -> None:
    assert root(op("INT", b"1" * 4001 + b"\n")) == ("blob", "digits", 1, 4001)
    assert root(op("LONG", b"1" * 100_000 + b"L\n")) == ("blob", "digits", 1, 100_000)


@table(
    ("data", "value"), [(b"", 0), (b"\x00", 0), (b"\x80", -128), (b"\xff\x00", 255), (b"\x01" + bytes(70), 1)]
)
def test_counted_int(data: bytes, value: int) -> None:
    assert root(op("LONG1", bytes([len(data)]) + data)) == value
    assert root(op("LONG4", struct.pack("<i", len(data)) + data)) == value


def test_counted_int_over_the_limit_stays_in_the_file() -> None:
    data = op("LONG4", struct.pack("<i", 5) + b"\x01" * 5)
    assert root(data, long_nbytes=5) == 0x0101010101
    assert root(data, long_nbytes=4) == ("blob", "int", 5, 5)


@table(
    ("digits", "value"),
    [(b"1", 1.0), (b"-1.5e-7", -1.5e-7), (b"inf", math.inf), (b"-inf", -math.inf), (b"1e999", math.inf)],
)
def test_float_in_words(digits: bytes, value: float) -> None:
    assert root(op("FLOAT", digits + b"\n")) == value
    assert kinds(op("FLOAT", digits + b"\n")) == []


def test_float_that_is_not_a_number() -> None:
    assert math.isnan(root(op("FLOAT", b"nan\n")))
    assert math.isnan(root(op("BINFLOAT", struct.pack(">d", math.nan))))


@table("digits", [b"1_0.5", b" 1.5", b"1.5 "])
def test_float_that_readers_understand_differently(digits: bytes) -> None:
    assert root(op("FLOAT", digits + b"\n")) == float(digits)
    assert kinds(op("FLOAT", digits + b"\n")) == ["text-float"]


@table("digits", [b"", b"one", b"0x10", b"1\x00"])
def test_float_that_is_none(digits: bytes) -> None:
    with pytest.raises(PickleError, match="an operand that cannot be read: pickle, byte 0, FLOAT"):
        read(op("FLOAT", digits + b"\n"))


def test_float_of_too_many_digits() -> None:
    assert root(op("FLOAT", b"1" * 4000 + b"\n")) == math.inf
    with pytest.raises(PickleError, match="a number is too long"):
        read(op("FLOAT", b"1" * 4001 + b"\n"))


# ------------------------------------------------------------------------------------------- text

COUNTED_TEXT = {
    "SHORT_BINUNICODE": "<B",
    "BINUNICODE": "<I",
    "BINUNICODE8": "<Q",
    "SHORT_BINSTRING": "<B",
    "BINSTRING": "<i",
}
COUNTED_BYTES = {"SHORT_BINBYTES": "<B", "BINBYTES": "<I", "BINBYTES8": "<Q", "BYTEARRAY8": "<Q"}


def counted(opcode: str, data: bytes, count: int | None = None) -> bytes:
    length = (COUNTED_TEXT | COUNTED_BYTES)[opcode]
    return op(opcode, struct.pack(length, len(data) if count is None else count) + data)


@table("opcode", COUNTED_TEXT)
def test_text_over_the_limit_stays_in_the_file(opcode: str) -> None:
    data = counted(opcode, b"abcde")
    assert root(data, text_nbytes=5) == "abcde"
    kind = "text" if "UNICODE" in opcode else "string"
    assert root(data, text_nbytes=4) == ("blob", kind, len(data) - 5, 5)


@table(
    "literal",
    [
        counted("BINUNICODE", b"a" * 16_000),
        op("UNICODE", b"a" * 16_000 + b"\n"),
        op("STRING", b"'" + b"a" * 16_000 + b"'\n"),
    ],
)
def test_few_long_texts_are_refused_at_once(literal: bytes) -> None:
    """One character beyond the basic plane makes a text four times as large in memory."""
    read(literal * 10, values=5010)
    with pytest.raises(PickleError, match="makes more than 4,990 values"):
        read(literal * 10, values=4990)
    read(literal * 10, NONE * 9000, values=5, text_nbytes=15_999)  # they stay in the file
    with pytest.raises(PickleError, match="makes more than 4 values"):
        read(literal * 10, NONE * 9000, values=4, text_nbytes=15_999)


@table("nbytes", [4095, 4096, 4097])
def test_text_as_long_as_short_ones_get(nbytes: int) -> None:
    data = counted("BINUNICODE", b"a" * nbytes)
    assert root(data) == root(data, text_nbytes=nbytes) == "a" * nbytes
    assert root(data, text_nbytes=nbytes - 1) == ("blob", "text", 5, nbytes)


@table("opcode", COUNTED_BYTES)
def test_bytes_over_the_limit_stay_in_the_file(opcode: str) -> None:
    data = counted(opcode, b"abcde")
    assert root(data, text_nbytes=5) == b"abcde"
    kind = "bytearray" if opcode == "BYTEARRAY8" else "bytes"
    assert root(data, text_nbytes=4) == ("blob", kind, len(data) - 5, 5)


@table(
    "literal",
    [counted("SHORT_BINSTRING", b"caf\xe9"), counted("BINSTRING", b"caf\xe9"), op("STRING", b"'caf\\xe9'\n")],
)
def test_byte_strings_of_python_2_keep_their_bytes(literal: bytes) -> None:
    found = read(literal).root
    assert type(found) is ByteString
    assert found.raw == b"caf\xe9"
    assert type(read(counted("BINUNICODE", b"cafe")).root) is str


def test_byte_arrays_are_no_bytes() -> None:
    found = read(counted("BYTEARRAY8", b"ab"), op("DUP"), op("TUPLE2")).root
    assert type(found) is tuple
    assert type(found[0]) is ByteArray
    assert found[0] is found[1]
    assert type(read(counted("BINBYTES", b"ab")).root) is bytes


@table("opcode", COUNTED_BYTES)
@table("text_nbytes", [1, 2])
def test_only_what_cannot_be_changed_stays_as_it_is_when_it_is_protected(
    opcode: str, text_nbytes: int
) -> None:
    found = read(counted(opcode, b"ab"), op("READONLY_BUFFER"), text_nbytes=text_nbytes).root
    is_view = isinstance(found, Blob) and found.kind == "buffer"
    assert is_view is (opcode == "BYTEARRAY8")


@table("opcode", COUNTED_TEXT | COUNTED_BYTES)
def test_length_past_the_end_is_an_end(opcode: str) -> None:
    with pytest.raises(PickleError, match=f"the pickle breaks off before its end: pickle, byte 0, {opcode}"):
        read(counted(opcode, b"a", 100))


def test_length_of_a_terabyte_allocates_nothing() -> None:
    for opcode in ("BINBYTES8", "BYTEARRAY8", "BINUNICODE8"):
        for count in (2**40, 2**64 - 1):
            with pytest.raises(PickleError, match="breaks off"):
                read(counted(opcode, b"abc", count))


@table("opcode", ["BINSTRING", "LONG4"])
@table("count", [-1, -2, -(2**31)])
def test_negative_length(opcode: str, count: int) -> None:
    with pytest.raises(PickleError, match=f"a length is negative: pickle, byte 1, {opcode}"):
        read(b"N", op(opcode, struct.pack("<i", count)) + b"abcdef")


def test_lone_surrogate_passes_and_broken_utf_8_does_not() -> None:
    lone = "\ud800".encode("utf-8", "surrogatepass")
    assert root(counted("BINUNICODE", lone)) == "\ud800"
    with pytest.raises(PickleError, match="an operand that cannot be read"):
        read(counted("BINUNICODE", b"\xff"))


@table(
    "text",
    [
        "",
        "plain",
        "it's",
        'say "no"',
        "tab\tnew\nline\r\\",
        "\x00\x07\x1f\x7f",
        "\u00e9\u20ac",
        "\\x",
        "\\\\n",
    ],
)
def test_string_of_python_2(text: str) -> None:
    # repr of the bytes is what Python 2 wrote for a str.
    quoted = repr(text.encode()).removeprefix("b").encode()
    assert root(op("STRING", quoted + b"\n")) == text


@table(
    ("written", "value"),
    [
        (rb"'\a\b\f\n\r\t\v\\\'\"'", "\a\b\f\n\r\t\v\\'\""),
        (rb"'\0\12\101\1011\78'", "\x00\nAA1\x078"),
        (rb"'\400'", "\x00"),  # more than a byte: cut to one
        (rb"'\z\ \N'", "\\z\\ \\N"),  # no escape: stays as it is, and Python would warn
        (rb'"\x41\xC3\xa9"', "A\u00e9"),
    ],
)
def test_escapes_of_python_2(written: bytes, value: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = pickle.loads(stream(op("STRING", written + b"\n")), encoding="utf-8")
    assert root(op("STRING", written + b"\n")) == value == theirs


@table("written", [b"", b"'", b"abc", b"'abc", b"abc'", b"'abc\"", b" 'abc'", b"'abc' ", b"xabcx"])
def test_string_without_quotes(written: bytes) -> None:
    with pytest.raises(PickleError, match="a string of protocol 0 is not quoted"):
        read(op("STRING", written + b"\n"))
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(stream(op("STRING", written + b"\n")))


@table("written", [rb"'\x'", rb"'\x4'", rb"'\xg0'"])
def test_string_with_a_broken_escape(written: bytes) -> None:
    with pytest.raises(PickleError, match="broken escape"):
        read(op("STRING", written + b"\n"))


def test_line_of_text_over_the_limit_stays_in_the_file() -> None:
    assert root(op("STRING", b"'abc'\n"), text_nbytes=5) == "abc"
    assert root(op("STRING", b"'abc'\n"), text_nbytes=4) == ("blob", "string-line", 1, 5)
    assert root(op("UNICODE", b"abc\n"), text_nbytes=3) == "abc"
    assert root(op("UNICODE", b"abc\n"), text_nbytes=2) == ("blob", "text-line", 1, 3)


def test_broken_unicode_escape() -> None:
    with pytest.raises(PickleError, match="an operand that cannot be read"):
        read(op("UNICODE", b"\\u12\n"))


def test_buffer_outside_the_stream_is_noted() -> None:
    found = read(proto(5), op("NEXT_BUFFER"), op("READONLY_BUFFER"))
    assert isinstance(found.root, Blob)
    assert [oddity.kind for oddity in found.oddities] == ["out-of-band-buffer"]
    assert found.oddities[0].offset == 2


def test_old_texts_that_torch_cannot_decode_are_faults() -> None:
    assert read(op("SHORT_BINSTRING", b"\2\xc3\xa9")).faults == frozenset()
    assert read(op("SHORT_BINSTRING", b"\1\xff")).faults == {"undecodable-text"}
    assert read(op("SHORT_BINUNICODE", b"\x03\xed\xa0\x80")).faults == frozenset()
    assert read(op("BINSTRING", b"\x00\x20\0\0" + b"a" * 0x2000)).faults == frozenset()
    assert read(op("GLOBAL", b"a\xff\nb\n")).faults == {"undecodable-name"}
