"""Safetensors files: what is listed of them, and what their own loader says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.container import Container
from inspector.containers.notes import NoteKind
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.errors import ContainerError, DamagedError
from inspector.model.build import build_checkpoint
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
