"""Bytes that are a checkpoint of their own, small and large, in each way of writing bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from inspector.model.values import embedded
from inspector.model.values.embedded import holds_checkpoint, may_hold_checkpoint
from inspector.pickles.values import Blob, Call, Global
from tests.sweep import table
from tests.unit.diagnose.cases import findings
from tests.unit.model.making import saved

torch = pytest.importorskip("torch")


def inner(numel: int = 4, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save({"w": torch.ones(numel)}, buffer, **options)
    return buffer.getvalue()


@table("protocol", [2, 4])
@table("numel", [4, 600_000], ids=["small", "large"])
def test_files_of_torch_are_found(protocol: int, numel: int, tmp_path: Path) -> None:
    old = inner(numel, _use_new_zipfile_serialization=False)
    value = {"zip": inner(numel), "old": old, "both": {"array": bytearray(inner(numel))}, "n": 1}
    checkpoint = saved(tmp_path, value, pickle_protocol=protocol)
    *others, array = checkpoint.embedded
    assert (others, array.removesuffix("/0")) == (["zip", "old"], "both/array")
    (finding,) = (row for row in findings(checkpoint).values() if row.id == "nested-checkpoint")
    assert (finding.severity, finding.paths) == ("note", checkpoint.embedded)


def test_other_bytes_are_data(tmp_path: Path) -> None:
    value = {
        "png": b"\x89PNG" + bytes(400),
        "zip": b"PK\x03\x04" + bytes(400),
        "cut": inner()[4:],
        "text": "PK\x03\x04 archive/data.pkl",
        "large": bytes(3_000_000),
        "empty": b"",
    }
    checkpoint = saved(tmp_path, value)
    assert checkpoint.embedded == ()
    assert "nested-checkpoint" not in findings(checkpoint)


def test_crowds_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.model.walk.MOST_CANDIDATES", 2)
    checkpoint = saved(tmp_path, {f"k{number}": inner(number) for number in range(4)})
    assert checkpoint.embedded == ("k0", "k1")


def test_places_that_cannot_be_are_no_checkpoint() -> None:
    assert not holds_checkpoint(Blob("bytes", 1 << 60, 1 << 60), b"PK")
    assert not may_hold_checkpoint(Blob("text", 0, 9))
    assert not may_hold_checkpoint("PK")
    for args in ((), None, ("x",), (Global("a", "b"), "latin1")):
        assert not may_hold_checkpoint(Call(Global("_codecs", "encode"), args, "reduce"))
    assert not may_hold_checkpoint(Call("x", (Blob("text", 0, 9), "latin1"), "reduce"))
    assert embedded.MOST_CANDIDATES == 1_000
