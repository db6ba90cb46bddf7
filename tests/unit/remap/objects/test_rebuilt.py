"""Tensors of formats without a pickle, written as torch.save writes its own."""

from __future__ import annotations

import pytest

from inspector.containers.container import Container, StoredBytes
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.walk import walk
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Dict, StoredTensor, Value
from inspector.progress import Progress
from inspector.remap.pickle_writer import Rebuilding, Writing, refuse_stored, write_pickle
from inspector.remap.storages import Storages, Viewed
from tests.sweep import table

FLOATS = StorageId("w", "float32", 4, NO_DEVICE, 16, False, None)
EIGHTS = StorageId("q", "float8_e4m3fn", 1, NO_DEVICE, 8, False, None)
SHORTS = StorageId("s", "uint16", 2, NO_DEVICE, 4, False, None)


def container(root: Value) -> Container:
    ids = {one.key: one for one in (FLOATS, EIGHTS, SHORTS)}
    return Container(
        path="x",
        format="tiny",
        file_nbytes=0,
        root=root,
        storage_ids=ids,
        stored={key: StoredBytes(0, 0, one.nbytes) for key, one in ids.items()},
    )


def written(*tensors: StoredTensor, compact: bool = False) -> tuple[list[tuple[object, ...]], Storages]:
    """What this program reads of the tensors once they are written as a pickle, and their storages."""
    root = Dict([(str(number), one) for number, one in enumerate(tensors)])
    source = container(root)
    viewed = Viewed(source)
    how = Writing(naming=viewed, rebuilt=Rebuilding(source.storage_ids).call_for)
    write_pickle(root, how)
    named = Storages(source, lambda _key, _tag: "cpu", str, viewed.cuts() if compact else {})
    how = Writing(naming=named, rebuilt=Rebuilding(source.storage_ids).call_for)
    stream = read_pickle(write_pickle(root, how))
    rows = walk(stream.root, DEFAULT_LIMITS, Progress()).tensors
    return [(row.dtype, row.shape, row.stride, row.storage_offset, row.problem) for row in rows], named


def test_tensor_is_a_call_of_the_function_that_torch_writes() -> None:
    rows, named = written(
        StoredTensor("w", "float32", (2, 3)),
        StoredTensor("w", "float32", (3, 2), (1, 3), 2),
        StoredTensor("q", "float8_e4m3fn", (2, 4)),
        StoredTensor("s", "uint16", (4,)),
        StoredTensor("w", "int32", (16,)),
    )
    assert rows == [
        ("float32", (2, 3), (3, 1), 0, None),
        ("float32", (3, 2), (1, 3), 2, None),
        ("float8_e4m3fn", (2, 4), (4, 1), 0, None),
        ("uint16", (4,), (1,), 0, None),
        ("int32", (16,), (1,), 0, None),
    ]
    names = {piece.source: (piece.name.cls[1], piece.name.numel) for piece in named.pieces.values()}
    assert names == {"w": ("FloatStorage", 16), "q": ("UntypedStorage", 8), "s": ("UntypedStorage", 8)}


def test_only_what_is_viewed_is_kept_where_that_is_asked_for() -> None:
    rows, named = written(StoredTensor("w", "float32", (2,), offset=12), compact=True)
    assert rows == [("float32", (2,), (1,), 0, None)]
    assert [piece.ranges for piece in named.pieces.values()] == [((48, 56),)]


def test_one_tensor_in_two_places_is_one_object() -> None:
    shared = StoredTensor("w", "float32", (2,))
    root = Dict([("a", shared), ("b", shared)])
    source = container(root)
    how = Writing(
        naming=Storages(source, lambda _key, _tag: "cpu", str),
        rebuilt=Rebuilding(source.storage_ids).call_for,
    )
    pairs = read_pickle(write_pickle(root, how)).root.pairs
    assert pairs[0][1] is pairs[1][1]


@table(
    "tensor",
    [
        StoredTensor("lost", "float32", (1,)),
        StoredTensor("w", "float6_e2m3", (1,)),
        StoredTensor("w", "float32", (1,), layout="q4_0"),
    ],
)
def test_what_torch_has_no_tensors_of_is_refused(tensor: StoredTensor) -> None:
    with pytest.raises(ExportError, match=r"torch has no (strided|q4_0) tensors of"):
        written(tensor)


def test_tensor_needs_its_storages() -> None:
    with pytest.raises(ExportError, match="where none can be written"):
        write_pickle(StoredTensor("w", "float32", (1,)), Writing(rebuilt=refuse_stored))
    with pytest.raises(ExportError, match="where none can be written"):
        write_pickle([StoredTensor("w", "float32", (1,))], Writing())
