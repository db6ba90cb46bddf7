from __future__ import annotations

from typing import Any

import pytest

from inspector.containers.persistent_ids import (
    STORAGE_DTYPES,
    StorageId,
    parse_storage_id,
)
from inspector.pickles.values import ByteString, Call, Dict, Global, PersistentId, Value
from tests.sweep import table

FLOAT = Global("torch", "FloatStorage")


def parse(*pid: Any) -> StorageId | None:
    return parse_storage_id(PersistentId(pid))


def test_zip_form() -> None:
    found = parse("storage", FLOAT, "7", "cuda:1", 10)
    assert found == StorageId(
        key="7", dtype="float32", itemsize=4, location="cuda:1", numel=10, untyped=False, view=None
    )
    assert type(found) is StorageId
    assert found.nbytes == 40
    assert found.viewed() is found


def test_legacy_form_without_a_view() -> None:
    assert parse("storage", FLOAT, "7", "cpu", 10, None) == parse("storage", FLOAT, "7", "cpu", 10)


def test_legacy_form_with_a_view() -> None:
    found = parse("storage", FLOAT, "7", "cpu", 10, ("8", 2, 3))
    assert found is not None
    assert found.view == ("8", 2, 3)
    viewed = found.viewed()
    assert (viewed.key, viewed.numel, viewed.nbytes, viewed.location) == ("8", 3, 12, "cpu")


@table(
    "view",
    [
        "8",
        (),
        ("8", 2),
        ("8", 2, 3, 4),
        (8, 2, 3),
        ("8", -1, 3),
        ("8", 2, -1),
        ("8", 2.0, 3),
        ("8", 2, True),
        ("8", 2**63, 3),
        ["8", 2, 3],
    ],
)
def test_malformed_view_is_none(view: Value) -> None:
    found = parse("storage", FLOAT, "7", "cpu", 10, view)
    assert found is not None
    assert found.view is None


@table(("name", "row"), STORAGE_DTYPES.items())
@table("module", ["torch", "torch.cuda", "torch.storage"])
def test_every_class_whatever_its_module(name: str, row: tuple[str, int], module: str) -> None:
    found = parse("storage", Global(module, f"{name}Storage"), "0", "cpu", 1)
    assert found is not None
    assert (found.dtype, found.itemsize) == row
    assert found.untyped == (name in {"Untyped", "_Untyped"})


@pytest.mark.torch
def test_sizes_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    for name, itemsize in STORAGE_DTYPES.values():
        assert itemsize == getattr(torch, name).itemsize


@table(
    ("cls", "key", "numel"),
    [
        (Global("torch", "storage.FloatStorage"), "0", 1),
        (Call(Global("torch._utils", "_get"), (Global("a", "b"), FLOAT), "reduce"), "0", 1),  # of Python 2
        (FLOAT, 12, 1),  # of torch.package
        (FLOAT, "0", 0),
        (FLOAT, "0", 2**63 - 1),
    ],
)
def test_other_ways_to_say_it(cls: Value, key: object, numel: int) -> None:
    assert parse("storage", cls, key, "cpu", numel) == parse("storage", FLOAT, str(key), "cpu", numel)


@table(
    "pid",
    [
        (),
        ("storage",),
        ("storage", FLOAT, "0", "cpu"),
        ("module", FLOAT, "0", "cpu", 1),
        (["storage"], FLOAT, "0", "cpu", 1),
        ("storage", FLOAT, "0", b"cpu", 1),
        ("storage", FLOAT, "0", None, 1),
        ("storage", FLOAT, "0", "cpu", -1),
        ("storage", FLOAT, "0", "cpu", 1.0),
        ("storage", FLOAT, "0", "cpu", True),
        ("storage", FLOAT, "0", "cpu", 2**63),  # beyond torch, and printing such a number can fail
        ("storage", FLOAT, None, "cpu", 1),
        ("storage", FLOAT, True, "cpu", 1),
        ("storage", FLOAT, 2**64, "cpu", 1),
        ("storage", FLOAT, b"0", "cpu", 1),
        ("storage", "torch.FloatStorage", "0", "cpu", 1),
        ("storage", Dict([]), "0", "cpu", 1),
        ("storage", Global("torch", "Float"), "0", "cpu", 1),
        ("storage", Global("torch", "GhostStorage"), "0", "cpu", 1),
        ("storage", Call(FLOAT, (), "reduce"), "0", "cpu", 1),
        ("storage", Call(FLOAT, [FLOAT], "reduce"), "0", "cpu", 1),
        ("storage", Call(FLOAT, ("FloatStorage",), "reduce"), "0", "cpu", 1),
    ],
)
def test_anything_else_is_none(pid: tuple[Value, ...]) -> None:
    assert parse(*pid) is None


@table("pid", ["('storage',)", None, 7, ["storage", FLOAT, "0", "cpu", 1]])
def test_id_that_is_no_tuple_is_none(pid: Value) -> None:
    assert parse_storage_id(PersistentId(pid)) is None


def test_texts_of_python_2_are_texts_like_others() -> None:
    words = [ByteString(word) for word in ("storage", "17", "cuda:0", "18")]
    tag, key, location, view = words
    node = PersistentId((tag, Global("torch", "FloatStorage"), key, location, 4, (view, 0, 2)))
    found = parse_storage_id(node)
    assert found is not None
    assert (found.key, found.location, found.view) == ("17", "cuda:0", ("18", 0, 2))
    assert found.view is not None
    assert {type(found.key), type(found.location), type(found.view[0])} == {str}
