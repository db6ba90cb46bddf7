from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from inspector.containers.container import Container
from inspector.containers.notes import NoteKind
from inspector.containers.npz import Npz
from inspector.containers.opening import read_container, read_extents
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import StorageReader, sum_extents
from inspector.errors import CheckpointError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.safety.verdict import judge
from tests.builders.arrays import npy
from tests.builders.pickles import proto, stream
from tests.builders.scripts import evil
from tests.builders.zips import Record, build_zip

WEIGHTS: dict[str, Any] = {
    "layer.weight": np.arange(6, dtype="f4").reshape(2, 3),
    "layer.bias": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big": np.arange(5, dtype=">i4"),
    "a/b": np.array(7),
}
EVIL = npy("|O", (1,), stream(proto(), evil()))


def saved(compressed: bool = False, **arrays: Any) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **(arrays or WEIGHTS))
    return out.getvalue()


def container(data: bytes) -> Container:
    return read_container(BytesSource(data, "a.npz"))


def opened(data: bytes) -> Checkpoint:
    return build_checkpoint(container(data))


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_and_their_bytes_are_those_of_numpy(compressed: bool) -> None:
    data = saved(compressed)
    source = BytesSource(data, "a.npz")
    found = opened(data)
    assert [row.keys for row in found.tensors] == [(name,) for name in WEIGHTS]
    assert {row.device for row in found.tensors} == {"none"}
    assert [note.kind for note in found.notes] == [NoteKind.SWAPPED]
    reader = StorageReader(read_container(source), source)
    for name, array in WEIGHTS.items():
        own = array.astype(array.dtype.newbyteorder("<"))
        wanted = own.tobytes("F" if name == "layer.bias" else "C")
        assert reader.read(name, 0, len(wanted)) == wanted
        assert reader.read(name, 4, 3) == wanted[4:7]
        assert (Npz().finder(source)(name) is None) == (not compressed and name != "big")
    extents = read_extents(source, DEFAULT_LIMITS, Progress())
    assert (set(extents.whole), set(extents.records)) == (set(WEIGHTS), {f"{name}.npy" for name in WEIGHTS})
    assert sum_extents(source, extents.whole | extents.records, Progress()).faults == {}
    assert judge(found).verdict == "weights-only"


def test_objects_are_pickles_wherever_they_stand() -> None:
    found = opened(saved(w=np.ones(2), o=np.array([1, None], dtype=object)))
    assert (judge(found).verdict, len(found.tensors), found.refusal) == ("runs-code", 1, "")
    assert NoteKind.OBJECT_ARRAYS in {note.kind for note in found.notes}
    many = {f"o{number}": np.array([None], dtype=object) for number in range(5)}
    (note,) = opened(saved(**many)).notes
    assert note.sentence.startswith("The elements of 5 arrays are objects (o0, o1, o2 and 2 more), which are")
    plain = npy()
    for what, data in {
        "stored": build_zip(Record(name="a.npy", data=plain), Record(name="o.npy", data=EVIL)),
        "compressed": build_zip(Record(name="o.npy", data=EVIL, method=8)),
        "hidden by another": build_zip(Record(name="o.npy", data=EVIL), Record(name="o.npy", data=plain)),
        "that hides another": build_zip(Record(name="o.npy", data=plain), Record(name="o.npy", data=EVIL)),
        "cut": build_zip(Record(name="a.npy", data=plain), Record(name="o.npy", data=EVIL[:-1])),
    }.items():
        found = opened(data)
        assert (what, judge(found).verdict) == (what, "dangerous")


def test_what_cannot_be_read_is_told_beside_what_can() -> None:
    broken = Record(name="b\x1b.npy", data=b"nothing")
    found = opened(build_zip(Record(name="a.npy", data=npy()), broken))
    (note,) = found.notes
    assert (note.kind, "\x1b" in note.sentence) == (NoteKind.UNREAD_PART, False)
    with pytest.raises(CheckpointError):
        opened(build_zip(broken))
    hostile = {
        "encrypted": Record(name="b.npy", data=npy(), flags=1),
        "packed otherwise": Record(name="b.npy", data=npy(), method=12),
        "two sizes": Record(name="b.npy", data=npy(), nbytes=4, stored_nbytes=4),
        "larger than it is": Record(name="b.npy", data=npy(), method=8, nbytes=2 << 30),
        "no header": Record(name="b.npy", data=b""),
        "a header elsewhere": Record(name="b.npy", data=npy(), offset=3),
        "a header that lies": Record(name="b.npy", data=npy(header="[" * 9999)),
        "a damaged stream": Record(name="b.npy", data=npy(), method=8, stored_nbytes=3),
    }
    for what, record in hostile.items():
        try:
            found = opened(build_zip(Record(name="a.npy", data=npy()), record))
        except CheckpointError as error:
            assert len(str(error)) < 400, what  # noqa: PT017 - some have no directory that torch reads
            continue
        assert [row.path for row in found.tensors] == ["a"], what
        assert found.notes, what


def test_what_is_lost_is_told() -> None:
    short = build_zip(Record(name="a.npy", data=npy("<f4", (9,), bytes(8))), Record(name="b.npy", data=npy()))
    found = opened(short)
    assert [note.kind for note in found.notes] == [NoteKind.LOST_BYTES]
    assert read_extents(BytesSource(short, "a"), DEFAULT_LIMITS, Progress()).lost == {
        "a": "its bytes are not in the file"
    }
    twice = build_zip(Record(name="a.npy", data=npy()), Record(name="a.npy", data=npy("<f8", (1,))))
    found = opened(twice)
    assert [(row.path, row.dtype) for row in found.tensors] == [("a", "float64")]
    assert [note.kind for note in found.notes] == [NoteKind.SHARED_NAME]


def test_cut_file_is_read_as_far_as_it_goes() -> None:
    data = saved()
    found = opened(data[: int(len(data) * 0.6)])
    assert (found.format, found.refusal) == ("npz", "BadZipFile: File is not a zip file")
    assert 0 < len(found.tensors) < len(WEIGHTS)
    with pytest.raises(CheckpointError):
        container(data[:40])
