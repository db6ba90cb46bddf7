from __future__ import annotations

import io
import pickle
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.containers.container import Container, Extent
from inspector.containers.notes import NoteKind
from inspector.containers.npy import Arrays, Header, Npy, read_header
from inspector.containers.npz import Npz
from inspector.containers.numpy_types import (
    ArrayType,
    array_call,
    parse_type,
)
from inspector.containers.opening import read_container, read_extents
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import ExtentReader, StorageReader, sum_extents
from inspector.errors import CheckpointError, ContainerError, DamagedError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.tensors.numpy_arrays import describe_array
from inspector.pickles.values import Call, Dict, StoredTensor, Value
from inspector.progress import Progress
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.simulate import judge_load
from inspector.target.wish import parse_wish
from tests.builders.arrays import npy
from tests.builders.pickles import proto, stream
from tests.builders.scripts import evil
from tests.builders.zips import Record, build_zip

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


WEIGHTS: dict[str, Any] = {
    "layer.weight": np.arange(6, dtype="f4").reshape(2, 3),
    "layer.bias": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big": np.arange(5, dtype=">i4"),
    "a/b": np.array(7),
}
EVIL = npy("|O", (1,), stream(proto(), evil()))


def saved_npz(compressed: bool = False, **arrays: Any) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **(arrays or WEIGHTS))
    return out.getvalue()


def container(data: bytes) -> Container:
    return read_container(BytesSource(data, "a.npz"))


def opened_npz(data: bytes) -> Checkpoint:
    return build_checkpoint(container(data))


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_and_their_bytes_are_those_of_numpy(compressed: bool) -> None:
    data = saved_npz(compressed)
    source = BytesSource(data, "a.npz")
    found = opened_npz(data)
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
    found = opened_npz(saved_npz(w=np.ones(2), o=np.array([1, None], dtype=object)))
    assert (judge(found).verdict, len(found.tensors), found.refusal) == ("runs-code", 1, "")
    assert NoteKind.OBJECT_ARRAYS in {note.kind for note in found.notes}
    many = {f"o{number}": np.array([None], dtype=object) for number in range(5)}
    (note,) = opened_npz(saved_npz(**many)).notes
    assert note.sentence.startswith("The elements of 5 arrays are objects (o0, o1, o2 and 2 more), which are")
    plain = npy()
    for what, data in {
        "stored": build_zip(Record(name="a.npy", data=plain), Record(name="o.npy", data=EVIL)),
        "compressed": build_zip(Record(name="o.npy", data=EVIL, method=8)),
        "hidden by another": build_zip(Record(name="o.npy", data=EVIL), Record(name="o.npy", data=plain)),
        "that hides another": build_zip(Record(name="o.npy", data=plain), Record(name="o.npy", data=EVIL)),
        "cut": build_zip(Record(name="a.npy", data=plain), Record(name="o.npy", data=EVIL[:-1])),
    }.items():
        found = opened_npz(data)
        assert (what, judge(found).verdict) == (what, "dangerous")


def test_what_cannot_be_read_is_told_beside_what_can() -> None:
    broken = Record(name="b\x1b.npy", data=b"nothing")
    found = opened_npz(build_zip(Record(name="a.npy", data=npy()), broken))
    (note,) = found.notes
    assert (note.kind, "\x1b" in note.sentence) == (NoteKind.UNREAD_PART, False)
    with pytest.raises(CheckpointError):
        opened_npz(build_zip(broken))
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
            found = opened_npz(build_zip(Record(name="a.npy", data=npy()), record))
        except CheckpointError as error:
            assert len(str(error)) < 400, what  # noqa: PT017 - some have no directory that torch reads
            continue
        assert [row.path for row in found.tensors] == ["a"], what
        assert found.notes, what


def test_what_is_lost_is_told() -> None:
    short = build_zip(Record(name="a.npy", data=npy("<f4", (9,), bytes(8))), Record(name="b.npy", data=npy()))
    found = opened_npz(short)
    assert [note.kind for note in found.notes] == [NoteKind.LOST_BYTES]
    assert read_extents(BytesSource(short, "a"), DEFAULT_LIMITS, Progress()).lost == {
        "a": "its bytes are not in the file"
    }
    twice = build_zip(Record(name="a.npy", data=npy()), Record(name="a.npy", data=npy("<f8", (1,))))
    found = opened_npz(twice)
    assert [(row.path, row.dtype) for row in found.tensors] == [("a", "float64")]
    assert [note.kind for note in found.notes] == [NoteKind.SHARED_NAME]


def test_cut_file_is_read_as_far_as_it_goes() -> None:
    data = saved_npz()
    found = opened_npz(data[: int(len(data) * 0.6)])
    assert (found.format, found.refusal) == ("npz", "BadZipFile: File is not a zip file")
    assert 0 < len(found.tensors) < len(WEIGHTS)
    with pytest.raises(CheckpointError):
        container(data[:40])


def read(data: bytes) -> Header:
    return read_header(BytesSource(data, "a.npy"), lambda _: None)


def written(array: np.ndarray, version: tuple[int, int]) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def test_every_version_is_read() -> None:
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for version in ((1, 0), (2, 0), (3, 0)):
        data = written(array, version)
        found = read(data)
        assert (found.version, found.shape, found.is_fortran) == (f"{version[0]}.0", (2, 3), True)
        assert data[found.start :] == array.tobytes("F")
        assert not found.is_long
    assert read(written(np.zeros(2, [("é", "<f4")]), (3, 0))).type.fields[0].name == "é"


def test_integers_of_python_2_are_read() -> None:
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 12L), }\n"
    assert read(npy(header=text)).shape == (3, 12)
    with pytest.raises(DamagedError, match="the header of an array cannot be read"):
        read(npy(header=text, version=(3, 0)))


def test_what_is_parsed_is_counted() -> None:
    looked: list[int] = []
    read_header(BytesSource(npy(), "a.npy"), looked.append)
    assert sum(looked) > 20


HOSTILE: dict[str, bytes] = {
    "another version": npy(version=(4, 0)),
    "a version between": npy(version=(1, 1)),
    "no length": b"\x93NUMPY\x01\x00",
    "a header that ends early": npy()[:40],
    "a header of four gigabytes": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
    "a header of two megabytes": npy(header=" " * (2 << 20), version=(2, 0)),
    "no literal": npy(header="__import__('os').system('id')"),
    "a call within": npy(header="{'descr': open('x'), 'fortran_order': False, 'shape': ()}"),
    "an expression": npy(header="{'descr': '<f4' * 3, 'fortran_order': False, 'shape': (2**99,)}"),
    "brackets": npy(header="(" * 30_000),
    "brackets that end": npy(header="[" * 30_000 + "]" * 30_000),
    "signs": npy(header="-" * 30_000 + "1"),
    "digits": npy(header="9" * 60_000),
    "a zero byte": npy(header="{\0}"),
    "no dict": npy(header="[1]"),
    "other keys": npy(header="{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}"),
    "unhashable keys": npy(header="{[]: 1}"),
    "an order that is none": npy(fortran=1),
    "a negative shape": npy(shape=(-1,)),
    "a shape that is no tuple": npy(shape=[2]),
    "a shape of a true": npy(shape=(True,)),
    "a shape of a fraction": npy(shape=(2.0,)),
    "a size of 64 bits": npy(shape=(1 << 63,)),
    "65 dimensions": npy(shape=(1,) * 65),
    "more elements than can be counted": npy(shape=(1 << 62, 8)),
    "a type that is none": npy(descr="float32"),
    "control characters": npy(descr="\x1b[2J" * 50),
}


def test_headers_that_lie_are_one_sentence() -> None:
    for what, data in HOSTILE.items():
        with pytest.raises(ContainerError) as caught:
            read(data)
        assert len(str(caught.value)) < 400, what
        assert "\x1b" not in str(caught.value), what


WRITTEN: list[Any] = [
    *("<f4", ">f8", "<c16", "|b1", "|i1", "<u8", "<U7", "|S5", "<M8[ns]", "<m8[10us]", "|V4", "<f16", "|O"),
    *("<U0", "|S0"),
    [("a", "<f4"), ("b", "<i4", (2, 3)), ("c", "|O")],
    [(("a title", "a"), ">f8"), ("n", [("x", "<i2"), ("y", "|V3"), ("z", [("w", "<f8", (2,))], (3,))])],
    np.dtype({"names": ["a"], "formats": ["<f4"], "offsets": [4], "itemsize": 12}),
]


def sizes(kind: ArrayType) -> tuple[Any, ...]:
    fields = tuple((field.name, field.offset, sizes(field.type)) for field in kind.fields)
    return kind.nbytes, kind.has_objects, kind.shape, fields


def truth(dtype: np.dtype[Any]) -> tuple[Any, ...]:
    base, shape = dtype.subdtype or (dtype, ())
    fields = tuple(
        (name, base.fields[name][1], truth(base.fields[name][0])) for name in base.names or () if base.fields
    )
    return dtype.itemsize, dtype.hasobject, shape, fields


def test_what_numpy_writes_is_read_as_numpy_reads_it() -> None:
    for written in WRITTEN:
        dtype = np.dtype(written)
        found = parse_type(np.lib.format.dtype_to_descr(dtype))
        assert found is not None, written
        assert sizes(found) == truth(dtype), written


def test_what_numpy_does_not_write_is_no_type() -> None:
    deep: Any = "<f4"
    for _ in range(40):
        deep = [("x", deep)]
    pairs: Any = "<f4"
    for _ in range(40):
        pairs = (pairs, (1,))
    for wrong in (
        *("", "f", "<f", "<f99999999999", "float32 evil", "<f4]", 3, None, {}, b"<f4"),
        *([("a",)], [("a", "<f4", (2,), 3)], ["a"], [(3, "<f4")], [("a", "nope")], [("a", "<f4", (-1,))]),
        *(deep, pairs, [("a", "<f4")] * 10_001, ("<f4", "x"), ("nope", (2,)), ("<f8", (1 << 62,))),
        [("a", "|V9", (1 << 59,)), ("b", "|V9", (1 << 59,))],
    ):
        assert parse_type(wrong) is None, repr(wrong)[:80]


def test_arrays_that_torch_has_not_are_shown_as_numpy_pickles_them() -> None:
    for text, shape, said in (("<M8[ns]", (3,), "datetime64"), ("<U7", (), "str"), ("|V4", (2,), "void")):
        kind = parse_type(text)
        assert kind is not None
        found = describe_array(array_call(kind, shape, None))
        assert found is not None
        assert (found.dtype, found.shape) == (said, shape)
    nested = parse_type((([("a", "<f4")]), (2,)))
    assert nested is not None
    assert prod(nested.shape) == 2
    assert describe_array(array_call(nested, (3,), None)) is not None


def listed(array: Any, limits: Any = DEFAULT_LIMITS, lost: int = 0) -> tuple[Value, Arrays, BytesSource]:
    out = io.BytesIO()
    np.save(out, array)
    source = BytesSource(out.getvalue(), "a.npy")
    header = read_header(source, lambda _: None)
    left = source.nbytes - header.start - lost
    arrays = Arrays(limits)
    return arrays.add("0", header, Extent(header.start, left, left, 0, 0)), arrays, source


def elements(found: StoredTensor, arrays: Arrays, source: BytesSource) -> np.ndarray:
    """The elements of a tensor as torch would view them."""
    place = arrays.stored["0"]
    extent = arrays.extents.get("0") or Extent(place.offset or 0, place.nbytes, place.nbytes, 0, 0)
    data = b"".join(ExtentReader(source).contents(extent))
    kind = np.dtype(found.dtype)
    flat = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
    stride = found.stride
    if stride is None:
        return flat[found.offset :][: int(np.prod(found.shape))].reshape(found.shape)
    steps = [step * kind.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(flat[found.offset :], found.shape, steps)


@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_are_those_that_numpy_reads(order: Any) -> None:
    for kind in ("<f4", ">f8", "<i2", ">u4", "|b1", "<c8", ">c16", "<f2"):
        for shape in ((), (3,), (2, 3), (2, 3, 4), (0, 3)):
            array = np.array(np.arange(np.prod(shape)).reshape(shape), kind, order=order)
            found, arrays, source = listed(array)
            assert isinstance(found, StoredTensor)
            assert found.shape == shape
            if array.size:
                assert np.array_equal(elements(found, arrays, source), array), (kind, shape)
            assert arrays.is_swapped == (kind[0] == ">")


def test_fields_are_views_where_torch_could_view_them() -> None:
    kind = [
        ("a", "<f8"),
        ("b", "<i8", (2, 2)),
        ("n", [("x", "<f4"), ("y", "<f4")]),
        ("s", "<U2"),
        ("big", ">f8"),
    ]
    for order in ("C", "F"):
        array = np.zeros((3, 2), kind, order=order)
        for name, values in (("a", 1.5), ("b", [[1, 2], [3, 4]])):
            array[name] = values
        array["n"]["y"][:] = np.arange(6).reshape(3, 2)
        found, arrays, source = listed(array)
        assert isinstance(found, Dict)
        values = dict(found.pairs)
        for name in ("a", "b"):
            value = values[name]
            assert isinstance(value, StoredTensor)
            assert np.array_equal(elements(value, arrays, source), array[name])
        nested = values["n"]
        assert isinstance(nested, Dict)
        inner = dict(nested.pairs)["y"]
        assert isinstance(inner, StoredTensor)
        assert np.array_equal(elements(inner, arrays, source), array["n"]["y"])
        assert isinstance(values["s"], Call)
        assert isinstance(values["big"], Call)
        assert arrays.storage_ids["0"].untyped
    packed, _, _ = listed(np.zeros(2, [("a", "|i1"), ("b", "<f4"), ("c", [("d", "<f8")], (2,))]))
    assert isinstance(packed, Dict)
    assert [type(value) for _, value in packed.pairs] == [StoredTensor, Call, Call]  # b stands across numbers


def test_what_torch_has_not_and_what_is_cut_has_no_bytes() -> None:
    found, arrays, _ = listed(np.array(["a", "bc"]))
    assert (isinstance(found, Call), arrays.storage_ids) == (True, {})
    _, arrays, _ = listed(np.ones(3), lost=1)
    assert (set(arrays.storage_ids), arrays.stored) == ({"0"}, {})
    with pytest.raises(ContainerError, match="more than 0 arrays"):
        listed(np.ones(3), replace(DEFAULT_LIMITS, storages=0))


def test_types_of_ml_dtypes_are_told_for_what_they_probably_are() -> None:
    """ml_dtypes has NumPy write its types without a name, but for one that NumPy then refuses."""
    two = saved(np.zeros((2, 3), "V2"))
    found = opened(two)
    assert [row.text for row in found.values] == ["void16 2 \u00d7 3"]
    (note,) = (note for note in found.notes if note.kind is NoteKind.UNTYPED)
    assert note.values == ("the array", "bfloat16")
    float8 = saved(np.zeros((2, 3), "i1")).replace(b"'|i1'", b"'<f1'")
    with pytest.raises(ValueError, match="descr is not a valid dtype descriptor: '<f1'"):
        np.load(io.BytesIO(float8))
    found = opened(float8)
    assert (found.tensors[0].dtype, found.tensors[0].nbytes) == ("float8_e5m2", 6)
    assert found.refusal == "ValueError: descr is not a valid dtype descriptor: '<f1'"
    several = build_zip(Record(name="a.npy", data=float8), Record(name="b.npy", data=two))
    found = opened_npz(several)
    assert found.refusal.endswith("'<f1'")
    assert [note.values[0] for note in found.notes if note.kind is NoteKind.UNTYPED] == ["b"]
