from __future__ import annotations

import contextlib
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.container import Container, StoredBytes
from inspector.containers.opening import read_container
from inspector.containers.programs import count_globals
from inspector.containers.tar_archive import relocate
from inspector.errors import (
    CancelledError,
    CheckpointError,
    ContainerError,
    DamagedError,
    PickleError,
    UnsupportedFormatError,
)
from inspector.model.build import build_checkpoint
from inspector.pickles.values import Call, Dict, Global, PersistentId
from inspector.progress import Progress
from tests.builders.pickles import call, dict_, list_, name, number, op, proto, stream, text, tuple_
from tests.builders.tars import (
    INFO,
    Storage,
    Tensor,
    archive,
    checkpoint,
    reference,
    storages_member,
    tensors_member,
)
from tests.sweep import table, tries

TakeApart = Callable[..., Container]
SIX, TWO = struct.pack("<6f", *range(6)), b"88888888"
STORAGES = Storage(1000, "cuda:0", SIX), Storage(2000, "cpu", TWO)
TENSORS = Tensor(1, 1000, (2, 3), (3, 1)), Tensor(2, 2000, (2,), (1,), 0), Tensor(3, 1001, (), (), 1)
VIEWS = [(1001, 1000, 2, 3)]
ROOT = stream(
    proto(),
    dict_(
        (text("w"), reference(1)),
        (text("again"), reference(1)),
        (text("b"), reference(2)),
        (text("v"), reference(3)),
        (text("s"), reference(2000)),
        (text("sv"), reference(1001)),
    ),
)
WHOLE = checkpoint(ROOT, STORAGES, TENSORS, VIEWS)


def members(**changes: bytes) -> bytes:
    parts = {
        "sys_info": pickle.dumps(INFO, 2),
        "pickle": ROOT,
        "tensors": tensors_member(TENSORS),
        "storages": storages_member(STORAGES, VIEWS),
    }
    return archive(parts | changes)


@table("protocol", [0, 1, 2, 3, 4])
@table("mtime", [0, 1489000000.25])
def test_every_part_is_found(take_apart: TakeApart, protocol: int, mtime: float) -> None:
    data = checkpoint(ROOT, STORAGES, TENSORS, VIEWS, protocol=protocol, mtime=mtime)
    found = take_apart(data)
    assert (found.format, found.file_nbytes) == ("tar", len(data))
    assert found.pickle().data[: found.pickle().end] == ROOT
    assert found.stored == {
        "1000": StoredBytes(0, data.index(SIX), 24),
        "2000": StoredBytes(0, data.index(TWO), 8),
        "1001": StoredBytes(0, data.index(SIX) + 8, 12),
    }
    places = {key: (one.location, one.numel, one.dtype) for key, one in found.storage_ids.items()}
    assert places == {
        "1000": ("cuda:0", 6, "float32"),
        "2000": ("cpu", 2, "float32"),
        "1001": ("cuda:0", 3, "float32"),
    }
    assert found.versions == (("protocol_version", "1000"), ("little_endian", "True"))


def test_tensors_are_given_as_newer_files_have_them(take_apart: TakeApart) -> None:
    found = take_apart(WHOLE)
    root = found.stream.root
    assert isinstance(root, Dict)
    values = dict(root.pairs)
    assert values["w"] is values["again"]
    made = values["w"]
    assert isinstance(made, Call)
    assert isinstance(made.func, Global)
    assert made.func.dotted == "torch._utils._rebuild_tensor"
    assert made.args[1:] == (0, (2, 3), (3, 1))
    assert values["v"].args[1:] == (1, (), ())
    assert values["v"].args[0] is values["sv"]
    assert isinstance(values["s"], PersistentId)


def test_rows_of_the_model(take_apart: TakeApart) -> None:
    rows = build_checkpoint(take_apart(WHOLE)).tensors
    assert [(row.path, row.device, row.shape, row.storage, row.layout) for row in rows] == [
        ("w", "cuda:0", (2, 3), "1000", "strided"),
        ("again", "cuda:0", (2, 3), "1000", "strided"),
        ("b", "cpu", (2,), "2000", "strided"),
        ("v", "cuda:0", (), "1001", "strided"),
        ("s", "cpu", (2,), "2000", "storage"),
        ("sv", "cuda:0", (3,), "1001", "storage"),
    ]
    assert not any(row.problem for row in rows)


def test_all_that_loading_does_is_told(take_apart: TakeApart) -> None:
    hostile = stream(proto(), tuple_(number(1), text("cpu"), call("os.system", text("id"))))
    data = members(storages=pickle.dumps(1, 2) + hostile)
    with pytest.raises(ContainerError, match="the length of storages in the tar file is malformed"):
        take_apart(data)
    hostile = stream(proto(), tuple_(call("os.system", text("id")), op("POP"), text("x")))
    views = stream(proto(), call("os.popen", text("id")), op("POP"), list_())
    first = storages_member(STORAGES)
    data = members(
        storages=first[: first.rindex(b"\x80\x02")] + views, tensors=pickle.dumps(0, 2), pickle=hostile
    )
    programs = take_apart(data).programs
    assert [(program.name, program.kind) for program in programs] == [
        ("storages", "part"),
        ("tensors", "part"),
        ("pickle", "object"),
    ]
    assert count_globals(programs) == {"torch.FloatStorage": 2, "os.popen": 1, "os.system": 1}
    assert [len(program.stream.calls) for program in programs] == [1, 0, 1]


def test_what_torch_does_not_read_stops_nobody(take_apart: TakeApart) -> None:
    for info in (b"", b"nonsense", stream(proto(), call("os.system", text("id")))):
        found = take_apart(members(sys_info=info))
        assert found.versions == ()
        assert "os.system" not in count_globals(found.programs)
    parts = {"pickle": ROOT, "tensors": tensors_member(TENSORS), "storages": storages_member(STORAGES, VIEWS)}
    assert take_apart(archive(parts)).versions == ()


def test_class_of_a_module_comes_with_its_source(take_apart: TakeApart) -> None:
    cls = tuple_(name("nets.Net"), text("nets.py"), text("class Net: pass")) + op("BINPERSID")
    empty = tuple_() + op("BINPERSID")
    found = take_apart(members(pickle=stream(proto(), list_(cls, empty, reference("0x1"), reference(77)))))
    root = found.stream.root
    assert isinstance(root, list)
    assert isinstance(root[0], Global)
    assert all(isinstance(item, PersistentId) for item in root[1:])


# --- not whole ----------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_file_cut_off_anywhere(write: Callable[..., str]) -> None:
    whole = read_container(write(WHOLE))
    last = WHOLE.rindex(b"\x80\x02", 0, len(WHOLE.rstrip(b"\0")))
    for nbytes in range(1, len(WHOLE), tries(41, 7)):
        with contextlib.suppress(CheckpointError):
            assert read_container(write(WHOLE[:nbytes])).stored == whole.stored
            assert nbytes > last
            continue
        assert nbytes < last + 64


def test_cut_is_named(take_apart: TakeApart) -> None:
    with pytest.raises(DamagedError, match="the tar file is cut off: it has no member storages"):
        take_apart(WHOLE[: WHOLE.index(b"storages\0")])
    for place in (WHOLE.index(SIX) + 7, WHOLE.index(SIX) + 24, WHOLE.index(TWO) + 8):
        with pytest.raises(DamagedError, match="cut off within its storages, and what is behind has no name"):
            take_apart(WHOLE[:place])


def test_first_of_all_formats_is_named(take_apart: TakeApart) -> None:
    old = stream(proto(), tuple_(number(1000), name("torch.FloatStorage")))
    with pytest.raises(UnsupportedFormatError, match="from before torch 0"):
        take_apart(members(storages=pickle.dumps(1, 2) + old))


@table(
    "fields",
    [
        number(1),
        tuple_(number(1)),
        tuple_(text("1"), text("cpu")),
        tuple_(text("1"), text("cpu"), name("torch.FloatStorage")),
        tuple_(op("LONG1", b"\x10" + b"\x01" * 16), text("cpu"), name("torch.FloatStorage")),
        tuple_(number(1), number(0), name("torch.FloatStorage")),
        tuple_(number(1), text("cpu"), name("torch.NoSuchStorage")),
    ],
)
def test_malformed_storages(take_apart: TakeApart, fields: bytes) -> None:
    record = stream(proto(), fields) + struct.pack("<q", 2) + TWO
    with pytest.raises(ContainerError, match="a storage in the tar file is malformed"):
        take_apart(members(storages=pickle.dumps(1, 2) + record + pickle.dumps([], 2)))


@pytest.mark.parametrize("numel", [-1, 1 << 62])
def test_lengths_that_cannot_be(take_apart: TakeApart, numel: int) -> None:
    record = stream(proto(), tuple_(number(1), text("cpu"), name("torch.FloatStorage")))
    data = pickle.dumps(1, 2) + record + struct.pack("<q", numel) + TWO
    with pytest.raises(ContainerError, match="is malformed"):
        take_apart(members(storages=data))


@table(
    "views",
    [7, [7], [(1, 2, 3)], [(1, 1000, 0, "x")], [(1, 77, 0, 1)], [(1001, 1000, None, 3)]],
)
def test_malformed_views(take_apart: TakeApart, views: object) -> None:
    data = storages_member(STORAGES)
    data = data[: data.rindex(b"\x80\x02")] + pickle.dumps(views, 2)
    with pytest.raises(ContainerError, match="is malformed"):
        take_apart(members(storages=data))


def test_too_many_views(take_apart: TakeApart) -> None:
    data = members(storages=storages_member(STORAGES, [(number, 1000, 0, 1) for number in range(5)]))
    with pytest.raises(ContainerError, match="the list of views"):
        take_apart(data, storages=4)


@table(
    "fields",
    [
        number(1),
        tuple_(number(1), number(1000)),
        tuple_(text("1"), number(1000), name("a.B")),
        tuple_(number(1), text("1000"), name("a.B")),
        tuple_(number(1), number(77), name("a.B")),
    ],
)
def test_malformed_tensors(take_apart: TakeApart, fields: bytes) -> None:
    data = pickle.dumps(1, 2) + stream(proto(), fields) + struct.pack("<i4xq", 0, 0)
    with pytest.raises(ContainerError, match="a tensor in the tar file is malformed"):
        take_apart(members(tensors=data))


def test_pickle_that_breaks_off_in_a_whole_file(take_apart: TakeApart) -> None:
    with pytest.raises(PickleError, match="breaks off before its end: storages at byte"):
        take_apart(members(storages=storages_member(STORAGES)[:20]))
    with pytest.raises(PickleError, match="breaks off before its end: pickle"):
        take_apart(members(pickle=ROOT[:-1]))


def test_reading_can_be_cancelled(write: Callable[..., str]) -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        read_container(write(WHOLE), progress=progress)


# --- with other devices -------------------------------------------------------------------------------------


def test_relocated_container_has_other_devices_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.pth"
    path.write_bytes(WHOLE)
    container = read_container(str(path))
    before = build_checkpoint(container)
    moved = relocate(container, {"1000": "cpu"})
    after = build_checkpoint(moved)
    assert {row.device for row in after.tensors} == {"cpu"}
    assert [row._replace(device="") for row in after.tensors] == [
        row._replace(device="") for row in before.tensors
    ]
    assert {one.location for one in moved.storage_ids.values()} == {"cpu"}
