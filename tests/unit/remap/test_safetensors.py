from __future__ import annotations

import json
import struct
from pathlib import Path

from inspector.model.tensors.rebuild import describe_tensor
from inspector.remap import export_form as form_export
from inspector.remap import safetensors as form_tensors
from inspector.remap.forms import Form, LeftOut
from inspector.remap.safetensors import (
    SafetensorsPlan,
    plan_safetensors,
    refusal_of,
)
from tests.builders import pickles
from tests.sweep import table
from tests.unit.remap.form_samples import Halved, exported, file_of, mapping, numbers, tensor
from tests.unit.remap.samples import parameter


def planned(entries: dict[str, bytes], **cast: str) -> SafetensorsPlan:
    values = pickles.read(mapping(entries)).root.pairs
    return plan_safetensors(values, [describe_tensor(value) for _, value in values], cast)


def test_larger_elements_come_first_and_all_without_gaps() -> None:
    contents = planned(
        {
            "half": tensor("0", cls="torch.HalfStorage"),
            "double": tensor("1", cls="torch.DoubleStorage"),
            "byte": tensor("2", cls="torch.ByteStorage", numel=3),
            "float": tensor("3"),
        }
    )
    assert [(slot.name, slot.start, slot.nbytes) for slot in contents.slots] == [
        ("double", 0, 32),
        ("float", 32, 16),
        ("half", 48, 8),
        ("byte", 56, 3),
    ]
    assert contents[1:] == ({"format": "pt"}, (), (), ())


def test_header_is_what_the_format_asks_for() -> None:
    contents = planned({"ключ": tensor(geometry="0;2,2;1,2"), "empty": tensor("1", numel=0)})
    data = contents.header
    (nbytes,) = struct.unpack("<Q", data[:8])
    assert (len(data), nbytes % 8) == (8 + nbytes, 0)
    assert json.loads(data[8:]) == {
        "__metadata__": {"format": "pt"},
        "ключ": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "empty": {"dtype": "F32", "shape": [0], "data_offsets": [16, 16]},
    }
    assert data[8:9] == b"{"


def test_the_name_that_loaders_ask_for_is_ours() -> None:
    contents = planned({"a": tensor(), "format": pickles.text("np")})
    assert contents.metadata == {"format": "pt"}
    why = "the metadata of safetensors has another use for this name"
    assert contents.left_out == (LeftOut("format", why, 0, 0),)


def test_texts_and_numbers_become_metadata() -> None:
    huge = pickles.number(2**600)
    contents = planned(
        {
            "a": tensor(),
            "arch": pickles.text("resnet"),
            "depth": b"K\x12",
            "flag": b"\x88",
            "rate": b"G" + struct.pack(">d", 0.5),
            "list": b"]",
            "none": b"N",
            "odd": pickles.text("\ud800"),
            "huge": huge,
            "__metadata__": b"K\x01",
        }
    )
    assert contents.metadata == {
        "format": "pt",
        "arch": "resnet",
        "depth": "18",
        "flag": "True",
        "rate": "0.5",
    }
    why = "neither a tensor nor a str"
    assert contents.left_out == tuple(
        LeftOut(name, why, 0, 0) for name in ("list", "none", "odd", "huge", "__metadata__")
    )


@table(
    ("arguments", "stored", "expected"),
    [
        (("w", "float32", "strided"), True, ""),
        (("w", "float32", "storage"), True, ""),
        (("w", "complex128", "strided"), True, "w is complex128"),
        (("w", "float32", "sparse_coo"), True, "w is sparse_coo"),
        (("w", "float32", "strided"), False, "w has no bytes in the file"),
        (("__metadata__", "float32", "strided"), True, "a name is not one that the format allows"),
        (("a\ud800", "float32", "strided"), True, "a name is not one that the format allows"),
        (("w", "float8_e8m0fnu", "strided"), True, ""),
        (("w", "float4_e2m1fn_x2", "strided"), True, ""),
        (("x" * 99, "quint8", "strided"), True, "x" * 79 + "\u2026 is quint8"),
    ],
)
def test_what_the_format_cannot_hold_is_said(arguments, stored, expected) -> None:
    assert refusal_of(*arguments, is_stored=stored) == expected


def test_halves_of_a_byte_need_a_dimension() -> None:
    said = refusal_of("w", "float4_e2m1fn_x2", "strided", is_stored=True, is_number=True)
    assert said == "w is float4_e2m1fn_x2 without dimensions"


def test_conjugated_on_the_fly_is_refused() -> None:
    arguments = [
        pickles.storage(cls="torch.ComplexFloatStorage"),
        b"K\x00",
        b"K\x02\x85",
        b"K\x01\x85",
        b"\x89",
        b"N",
    ]
    bits = mapping({"conj": b"\x88"})
    plain = pickles.call("torch._utils._rebuild_tensor_v2", *arguments, b"}")
    odd = pickles.call("torch._utils._rebuild_tensor_v2", *arguments, bits)
    assert planned({"a": plain}).refusals == ()
    assert planned({"a": odd, "b": parameter(odd)}).refusals == (
        "a is conjugated or negated on the fly",
        "b is conjugated or negated on the fly",
    )


ZERO, ONE = numbers("0"), numbers("1")


def tensors_of(path: Path) -> dict[str, bytes]:
    data = path.read_bytes()
    (nbytes,) = struct.unpack("<Q", data[:8])
    rows = json.loads(data[8 : 8 + nbytes])
    body = data[8 + nbytes :]
    return {name: body[slice(*row["data_offsets"])] for name, row in rows.items() if name != "__metadata__"}


def transposed(data: bytes, itemsize: int) -> bytes:
    a, b, c, d = (data[place : place + itemsize] for place in range(0, 4 * itemsize, itemsize))
    return a + c + b + d


ROOT = mapping(
    {
        "whole": tensor("0"),
        "turned": tensor("1", geometry="0;2,2;1,2"),
        "part": tensor("0", geometry="1;2;1"),
        "scalar": tensor("1", geometry="3;;"),
        "empty": tensor("1", geometry="0;0,3;3,1"),
        "storage": pickles.storage("1", numel=4),
    }
)


def test_cast_comes_after_the_order(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(form_export, "Caster", Halved)
    monkeypatch.setattr(form_tensors, "STEP_NBYTES", 8)
    destination, made = exported(file_of(tmp_path, ROOT), Form(shape="safetensors", cast="float16"))
    assert tensors_of(destination) == {
        "whole": ZERO[::2],
        "turned": transposed(ONE, 4)[::2],
        "part": ZERO[4:12:2],
        "scalar": ONE[12::2],
        "empty": b"",
        "storage": ONE[::2],
    }
    assert made.overflowed == 6
