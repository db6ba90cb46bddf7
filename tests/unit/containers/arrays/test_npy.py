from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.containers.notes import NoteKind
from inspector.containers.npy import Npy
from inspector.containers.opening import read_container, read_extents
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import ExtentReader
from inspector.errors import CheckpointError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.safety.verdict import judge
from inspector.target.simulate import judge_load
from inspector.target.wish import parse_wish
from tests.builders.arrays import npy
from tests.builders.pickles import proto, stream
from tests.builders.scripts import evil

CPU = parse_wish("cpu").machine


def saved(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def opened(data: bytes) -> Checkpoint:
    return build_checkpoint(read_container(BytesSource(data, "a.npy")))


def kinds(found: Checkpoint) -> list[NoteKind]:
    return [note.kind for note in found.notes]


def said(data: bytes, tmp_path: Path) -> str:
    """What `numpy.load` says to a file."""
    path = tmp_path / "a.npy"
    path.write_bytes(data)
    try:
        np.load(path)
    except (ValueError, EOFError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_an_array_is_a_tensor_without_a_device_and_runs_nothing() -> None:
    found = opened(saved(np.arange(6, dtype="f4").reshape(2, 3)))
    (row,) = found.tensors
    assert (row.path, row.dtype, row.shape, row.device) == ("", "float32", (2, 3), "none")
    assert (found.format, found.versions, found.notes) == ("npy", (("npy", "1.0"),), ())
    safety = judge(found)
    assert (safety.verdict, safety.has_pickles) == ("weights-only", False)
    assert CPU is not None
    assert judge_load(found, CPU).loads


def test_objects_are_read_and_never_better_than_they_are() -> None:
    harmless = opened(saved(np.array([1, "x", None], dtype=object)))
    assert (judge(harmless).verdict, harmless.tensors) == ("runs-code", ())
    assert judge(harmless).loader == "numpy.load with allow_pickle=True"
    assert kinds(harmless) == [NoteKind.OBJECT_ARRAYS]
    assert CPU is not None
    failure = judge_load(harmless, CPU).failure
    assert failure is not None
    assert failure.message == "ValueError: Object arrays cannot be loaded when allow_pickle=False"
    for dangerous in (
        npy("|O", (1,), stream(proto(), evil())),
        npy([("a", "<f4"), ("o", "|O")], (1,), stream(proto(), evil())),
        npy(([("o", "|O")], (2,)), (1,), stream(proto(), evil())),
    ):
        assert judge(opened(dangerous)).verdict == "dangerous"
    with pytest.raises(CheckpointError) as caught:
        opened(npy("|O", (1,), stream(proto(), evil())[:-1]))
    assert [one.stream.globals[0].dotted for one in caught.value.programs] == ["os.system"]


def test_a_pickle_larger_than_the_first_read_is_read_whole() -> None:
    found = opened(npy("|O", (1,), pickle.dumps({"a": ["y" * 70_000], "b": 7}, 4)))
    assert [row.text for row in found.values][-1] == "7"


def test_what_numpy_says_to_files_that_it_does_not_take(tmp_path: Path) -> None:
    whole = saved(np.arange(6.0))
    for data in (
        whole,
        whole[:-1],
        whole[:-40],
        saved(np.zeros((2, 3)))[:-9],
        saved(np.array([None], dtype=object)),
        npy("<f4", (), b"abc"),
    ):
        refusal = opened(data).refusal
        assert said(data, tmp_path) == refusal
    long = " " * 10_000 + "{'descr':'<f4','fortran_order':False,'shape':(1,)}"
    data = npy(header=long, data=bytes(4))
    assert said(data, tmp_path).startswith("ValueError: Header info length (")
    assert "is large and may not be safe to load securely" in opened(data).refusal


def test_what_stands_behind_is_told() -> None:
    two = saved(np.ones(3)) + saved(np.ones(2))
    assert kinds(opened(two)) == [NoteKind.BEHIND_ARRAY]
    assert kinds(opened(saved(np.ones(3))[:-1])) == [NoteKind.LOST_BYTES]
    assert kinds(opened(npy("|V0", (1 << 60,), b""))) == []


def test_numbers_the_other_way_round_are_found_and_told() -> None:
    data = saved(np.arange(3, dtype=">f4"))
    source = BytesSource(data, "a.npy")
    found = opened(data)
    assert kinds(found) == [NoteKind.SWAPPED]
    extent = Npy().finder(source)("0")
    assert extent is not None
    assert extent == read_extents(source, DEFAULT_LIMITS, Progress()).whole["0"]
    assert b"".join(ExtentReader(source).contents(extent)) == np.arange(3, dtype="<f4").tobytes()
    assert Npy().finder(BytesSource(saved(np.ones(2)), "a.npy"))("0") is None
