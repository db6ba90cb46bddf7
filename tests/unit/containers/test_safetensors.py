"""Safetensors files: what is listed of them, and what their own loader says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from inspector.containers.container import Container
from inspector.containers.notes import NoteKind
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.containers.safetensors import CODES, Entry, Header, read_header
from inspector.containers.source import BytesSource
from inspector.errors import CheckpointError, ContainerError, DamagedError
from inspector.limits import Limits
from inspector.model.build import build_checkpoint
from inspector.model.tensors.dtypes import ITEMSIZES, element_nbytes, stored_nbytes
from tests.builders.safetensors import model, row, safetensors

TakeApart = Callable[..., Container]


def test_tensors_have_names_bytes_and_no_device(take_apart: TakeApart) -> None:
    data = model(layer__weight=(2, 3), layer__num_batches_tracked=())
    container = take_apart(data)
    rows = build_checkpoint(container)
    assert [(one.path, one.device, one.shape, one.role) for one in rows.tensors] == [
        ("layer.weight", NO_DEVICE, (2, 3), "parameter"),
        ("layer.num_batches_tracked", NO_DEVICE, (), "buffer"),
    ]
    places = [container.stored[one.storage] for one in rows.tensors]
    assert data[places[0].offset :][: places[0].nbytes] == data[-28:-4]
    assert data[places[1].offset :] == data[-4:]
    assert (container.refusal, container.programs, rows.safety, container.notes) == ("", (), None, ())


def test_metadata_are_values_and_tied_names_are_told(take_apart: TakeApart) -> None:
    header = {
        "__metadata__": {"format": "pt", "head": "body", "body": "body", "other": "gone"},
        "body": row(),
    }
    container = take_apart(safetensors(header, 8))
    rows = build_checkpoint(container)
    assert [(one.path, one.text) for one in rows.values] == [
        (".__metadata__/format", "pt"),
        (".__metadata__/head", "body"),
        (".__metadata__/body", "body"),
        (".__metadata__/other", "gone"),
    ]
    assert container.tied == rows.tied == (("head", "body"),)


def test_packed_elements_are_counted_as_torch_does(take_apart: TakeApart) -> None:
    header = {
        "four": row("F4", (3, 4), (0, 6)),
        "six": row("F6_E2M3", (4,), (6, 9)),
        "three": row("F6_E3M2", (4,), (9, 12)),
        "e8": row("F8_E8M0", (4,), (12, 16)),
    }
    container = take_apart(safetensors(header, 16))
    rows = build_checkpoint(container).tensors
    assert [(one.dtype, one.shape, one.nbytes, one.problem) for one in rows] == [
        ("float4_e2m1fn_x2", (3, 2), 6, None),
        ("float6_e2m3", (4,), 3, None),
        ("float6_e3m2", (4,), 3, None),
        ("float8_e8m0fnu", (4,), 4, None),
    ]
    assert container.refusal == "SafetensorError: Dtype not understood: F6_E2M3"
    assert container.storage_ids["1"].untyped
    odd = take_apart(safetensors({"a": row("F4", (2, 3), (0, 3))}, 3))
    assert odd.refusal.endswith("requires that the last dim be divisible by 2 in torch: got [2, 3]")


A = row()
CASES: dict[str, tuple[object, int]] = {
    "sound": ({"a": A}, 8),
    "empty": ({}, 0),
    "written in another order": ({"b": row(offsets=(8, 16)), "a": A}, 16),
    "scalar": ({"a": row(shape=(), offsets=(0, 4))}, 4),
    "nothing in it": (
        {"a": row(shape=(0,), offsets=(0, 0)), "b": A, "c": row(shape=(3, 0), offsets=(8, 8))},
        8,
    ),
    "many dimensions": ({"a": row(shape=(1,) * 70 + (2,))}, 8),
    "no metadata": ({"__metadata__": None, "a": A}, 8),
    "data cut off": ({"a": A}, 4),
    "data cut off within the second": ({"a": A, "b": row(offsets=(8, 16))}, 12),
    "trailing bytes": ({"a": A}, 12),
    "bytes of nothing": ({}, 2),
    "hole": ({"a": A, "b": row(offsets=(12, 20))}, 20),
    "hole in front": ({"b": row(offsets=(12, 20))}, 20),
    "overlap": ({"a": A, "b": row(offsets=(4, 12))}, 12),
    "the same bytes": ({"a": A, "b": A}, 8),
    "backwards": ({"a": row(offsets=(8, 0))}, 8),
    "longer than its bytes": ({"a": row(shape=(3,))}, 8),
    "shorter than its bytes": ({"a": row(shape=(1,))}, 8),
    "beyond all numbers": ({"a": row(shape=(1 << 33, 1 << 33))}, 8),
    "bits beyond all numbers": ({"a": row(shape=(1 << 60,), offsets=(0, 1 << 62))}, 8),
    "nothing at last": ({"a": row(shape=(1 << 60, 1 << 60, 0), offsets=(0, 0))}, 0),
    "nothing at first": ({"a": row(shape=(0, 1 << 60, 1 << 60), offsets=(0, 0))}, 0),
    "half a byte": ({"a": row("F4", (3,), (0, 2))}, 2),
    "half a byte of a scalar": ({"a": row("F4", (), (0, 1))}, 1),
    "empty in between": ({"b": A, "a": row(shape=(0, 3), offsets=(4, 4))}, 8),
    "a number of dimensions": ({"a": row(shape=(1 << 40,) * 900)}, 8),
}


def test_loader_says_what_was_foretold(take_apart: TakeApart) -> None:
    library = pytest.importorskip("safetensors")
    wrong = []
    for name, (header, nbytes) in CASES.items():
        data = safetensors(header, nbytes)
        said = ""
        try:
            library.deserialize(data)
        except library.SafetensorError as error:
            said = f"SafetensorError: {error}".replace(
                "deserializing:", "deserializing header:"
            )  # of load_file
        found = take_apart(data).refusal
        if name == "the same bytes":  # of two with the same bytes the library names either
            said, found = (text.replace("`b`", "`a`") for text in (said, found))
        if found != said:
            wrong.append(f"{name}: {found!r} is not {said!r}")
    assert wrong == []


def test_what_is_damaged_is_listed_for_as_far_as_it_is_there(take_apart: TakeApart) -> None:
    found = {}
    for name, (header, nbytes) in CASES.items():
        container = take_apart(safetensors(header, nbytes))
        rows = build_checkpoint(container)
        missing = [one.path for one in rows.tensors if one.storage not in container.stored]
        problems = [one.path for one in rows.tensors if one.problem]
        kinds = {note.kind for note in container.notes}
        if missing or problems or kinds:
            found[name] = missing, problems, kinds
    assert found == {
        "data cut off": (["a"], [], {NoteKind.LOST_BYTES}),
        "data cut off within the second": (["b"], [], {NoteKind.LOST_BYTES}),
        "overlap": ([], [], {NoteKind.OVERLAP}),
        "the same bytes": ([], [], {NoteKind.OVERLAP}),
        "backwards": ([], ["a"], set()),
        "longer than its bytes": ([], ["a"], set()),
        "beyond all numbers": ([], ["a"], set()),
        "bits beyond all numbers": (["a"], [], {NoteKind.LOST_BYTES}),
        "nothing at first": ([], ["a"], set()),
        "a number of dimensions": ([], ["a"], set()),
    }


def test_unknown_type_and_double_names_are_refused(take_apart: TakeApart) -> None:
    with pytest.raises(ContainerError, match=r"the type I4, which is none of safetensors 0\.8: a"):
        take_apart(safetensors({"a": row("I4", (4,), (0, 2))}, 2))
    with pytest.raises(DamagedError, match="names a tensor twice: a"):
        take_apart(
            safetensors('{"a":%s,"a":%s}'.replace("%s", '{"dtype":"U8","shape":[],"data_offsets":[0,1]}'), 1)
        )


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


def test_types_are_those_of_the_library() -> None:
    library = pytest.importorskip("safetensors")
    with pytest.raises(library.SafetensorError) as caught:
        library.deserialize(safetensors({"a": row("NONE")}, 8))
    assert set(re.findall(r"`([A-Z0-9_]+)`", str(caught.value))) - {"NONE"} == set(CODES)


def test_each_has_a_size() -> None:
    for code in CODES.values():
        assert (code.dtype in ITEMSIZES) == code.loads
        assert stored_nbytes(code.dtype, 16 // code.packed) == 2 * code.bits
        assert element_nbytes(code.dtype, 16 // code.packed) == 2 * code.bits
