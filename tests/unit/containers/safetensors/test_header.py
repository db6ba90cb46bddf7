"""The header: read as safetensors reads it, and never at the price of what it claims."""

from __future__ import annotations

import json

import pytest

from inspector.containers.safetensors import Entry, Header, read_header
from inspector.containers.source import BytesSource
from inspector.errors import CheckpointError, ContainerError, DamagedError
from inspector.limits import Limits
from tests.builders.safetensors import row, safetensors

PLAIN = json.dumps(row())


def read(data: bytes, **limits: int) -> Header:
    work = Limits(**limits).counted()
    return read_header(BytesSource(data, "x"), Limits(**limits), work.look)


def test_entries_come_in_the_order_of_the_header() -> None:
    header = {
        "b": row("I64", (), (8, 16)),
        "__metadata__": {"format": "pt", "note": "a\nb"},
        "a/\u00e9": row("BF16", (2, 2), (0, 8)),
        'quo"te': row("U8", (0,), (16, 16)),
    }
    found = read(safetensors(json.dumps(header) + "  ", 16))
    assert found.entries == [
        Entry("b", "I64", (), 8, 16),
        Entry("a/\u00e9", "BF16", (2, 2), 0, 8),
        Entry('quo"te', "U8", (0,), 16, 16),
    ]
    assert found.metadata == [("format", "pt"), ("note", "a\nb")]
    assert found.data_start == 8 + len(json.dumps(header)) + 2


def test_entry_may_be_written_in_any_order_and_hold_more() -> None:
    odd = '{"shape":[ 2 ],"x":[{"y":"}]"}],"data_offsets":[0,8],"dtype":"F32"}'
    found = read(safetensors(f' {{"a":{odd},"b" : {PLAIN}}}', 8))
    assert found.entries == [Entry("a", "F32", (2,), 0, 8), Entry("b", "F32", (2,), 0, 8)]
    assert read(safetensors("{}")).entries == []
    assert read(safetensors('{"__metadata__":null}')).metadata == []
    assert read(safetensors('{"__metadata__":{}}')).metadata == []


WRONG = {
    "no object": ("[]", "it is no JSON object"),
    "a number": ("5", "it is no JSON object"),
    "nothing": ("", "it is no JSON object"),
    "bare name": ("{a:1}", "a name is expected"),
    "no colon": ('{"a" 1}', "a name is expected"),
    "cut off": ('{"a":', "it is too long, nested too deeply, or has no end"),
    "cut off behind an entry": (f'{{"a":{PLAIN}', "the JSON breaks off"),
    "no comma": (f'{{"a":{PLAIN} "b":{PLAIN}}}', "the JSON breaks off, or a comma is missing"),
    "trailing comma": (f'{{"a":{PLAIN},}}', "a name is expected"),
    "trailing text": (f'{{"a":{PLAIN}}}x', "something stands behind its end"),
    "trailing zeros": (f'{{"a":{PLAIN}}}\0\0', "something stands behind its end"),
    "no UTF-8": (b'{"\xff":' + PLAIN.encode() + b"}", "a text is not Unicode"),
    "no UTF-8 in front": (
        b'{"\xff":' + PLAIN.encode() + b',"b":' + PLAIN.encode() + b"}",
        "a text is not Unicode",
    ),
    "lone surrogate": (f'{{"\\ud800":{PLAIN}}}', "a text is not Unicode"),
    "unknown escape": (f'{{"\\x":{PLAIN}}}', "a text is not Unicode"),
    "control character": (f'{{"a\x01":{PLAIN}}}', "a name is expected"),
    "a tensor twice": (f'{{"a":{PLAIN},"b":{PLAIN},"a":{PLAIN}}}', "the header names a tensor twice"),
    "metadata twice": ('{"__metadata__":{},"__metadata__":{}}', "it has __metadata__ twice"),
    "metadata of numbers": ('{"__metadata__":{"a":1}}', "a value in __metadata__ is no text"),
    "metadata that is a list": ('{"__metadata__":[]}', "it is no JSON object"),
    "metadata that is a tensor": (
        f'{{"__metadata__":{PLAIN},"a":{PLAIN}}}',
        "a value in __metadata__ is no text",
    ),
    "row is a number": ('{"a":5}', "it is no JSON"),
    "row is a list": ('{"a":["F32",[2],[0,8]]}', "it is no object"),
    "row is a text": ('{"a":"F32"}', "it is no JSON"),
    "no shape": ('{"a":{"dtype":"F32","data_offsets":[0,8]}}', "each once"),
    "shape twice": ('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"shape":[2]}}', "each once"),
    "shape of texts": (json.dumps({"a": row(shape=["2"])}), "are not a type, sizes and two offsets"),
    "shape is a number": ('{"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}}', "are not a type"),
    "three offsets": (json.dumps({"a": row(offsets=(0, 8, 9))}), "are not a type, sizes and two offsets"),
    "type is a number": ('{"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}}', "are not a type"),
    "negative size": (json.dumps({"a": row(shape=(-2,))}), "it is no JSON"),
    "fraction": (json.dumps({"a": row(shape=(2.0,))}), "it is no JSON"),
    "not a number": ('{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,8]}}', "it is no JSON"),
    "number of digits": (PLAIN.join(('{"a":', "}")).replace("[2]", f"[{'1' * 5000}]"), "it is no JSON"),
    "number of 65 bits": (json.dumps({"a": row(offsets=(0, 1 << 64))}), "a number in it is too large"),
    "leading zero": ('{"a":{"dtype":"F32","shape":[02],"data_offsets":[0,8]}}', "it is no JSON"),
    "depth": (f'{{"a":{{"x":{"[" * 5000}{"]" * 5000}}}}}', "it is too long, nested too deeply"),
    "length": (f'{{"a":{{"x":[{"1," * 50_000}1]}}}}', "it is too long, nested too deeply"),
    "open text": ('{"a":{"x', "a text has no end"),
}


def test_whatever_is_wrong_is_one_sentence() -> None:
    wrong = []
    for name, (header, sentence) in WRONG.items():
        try:
            read(safetensors(header))
            wrong.append(f"{name}: read")
        except CheckpointError as error:
            if type(error) is not DamagedError or sentence not in str(error) or "\n" in str(error):
                wrong.append(f"{name}: {type(error).__name__} {error}")
    assert wrong == []


def test_header_that_is_not_there_is_damage() -> None:
    with pytest.raises(DamagedError, match=r"the file ends within its header: 2 of 100,000,000 bytes"):
        read(safetensors("{}", nbytes=100_000_000))


def test_number_of_tensors_is_bounded() -> None:
    rows = ",".join(f'"{number}":{PLAIN}' for number in range(4))
    odd = rows.replace("dtype", "d\\u0074ype")
    for text in (rows, odd):
        with pytest.raises(ContainerError, match="more than 3 tensors"):
            read(safetensors(f"{{{text}}}"), tensors=3)
    assert len(read(safetensors(f"{{{rows}}}"), tensors=4).entries) == 4


def test_all_that_is_looked_at_is_counted() -> None:
    seen: list[int] = []
    text = '{"a":{"x":[[],[],[]],"y":"\\"","dtype":"F32","shape":[],"data_offsets":[0,4]}}'
    read_header(BytesSource(safetensors(text), "x"), Limits(), seen.append)
    assert sum(seen) > text.count("[") + text.count('"') // 2
