from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.container import Container
from inspector.containers.opening import read_container
from inspector.containers.pickle_source import Place
from inspector.containers.pickled import Nested
from inspector.containers.source import BytesSource, FileSource
from inspector.containers.tar_archive import StorageRecord
from inspector.errors import ExportError, PlanError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.progress import Progress
from inspector.remap.export import export_copy
from inspector.remap.in_place import patch_in_place
from inspector.remap.plan import plan_remap, with_viewed
from inspector.remap.rare import _relabelled, length_edit, tar_edits, tar_locations
from inspector.remap.relabel import mapped_container
from inspector.remap.rewrite import Edit
from inspector.remap.rules import parse_rule
from inspector.remap.verify import compare_files
from tests.builders.pickles import call, dict_, list_, name, number, op, proto, stream, text, tuple_
from tests.builders.tars import Storage, Tensor, archive, checkpoint, reference
from tests.builders.zips import Record, build_zip
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.containers.test_pickled import OPENER, binbytes, storage, tensor

SIX, TWO, MORE = struct.pack("<6f", *range(6)), b"88888888", bytes(range(200)) * 4
ROOT = stream(
    proto(),
    dict_(
        *((text(key), reference(number)) for number, key in enumerate("abv", 1)),
        (text("cpu"), text("cuda:0")),
    ),
)
TENSORS = Tensor(1, 1000, (2, 3), (3, 1)), Tensor(2, 2000, (2,), (1,)), Tensor(3, 1001, (3,), (1,))
VIEWS = [(1001, 1000, 2, 3)]


def tar(first: str, second: str, third: str = "cpu") -> bytes:
    storages = Storage(1000, first, SIX), Storage(2000, second, TWO), Storage(3000, third, MORE)
    return checkpoint(ROOT, storages, TENSORS, VIEWS)


@pytest.fixture
def edits(tmp_path: Path) -> Callable[..., list[Edit]]:
    """What rules change in these bytes."""

    def edits(data: bytes, *rules: str) -> list[Edit]:
        path = tmp_path / "file.pth"
        path.write_bytes(data)
        container = read_container(str(path))
        plan = plan_remap(build_checkpoint(container), [parse_rule(rule) for rule in rules])
        with FileSource(str(path)) as source:
            return tar_edits(source, container, with_viewed(plan, container.storage_ids.values()), Progress())

    return edits


@pytest.fixture
def copy(tmp_path: Path) -> Callable[..., bytes]:
    """A copy, compared with its plan and byte by byte."""

    def copy(data: bytes, *rules: str) -> bytes:
        path, out = tmp_path / "in.pth", tmp_path / "out.pth"
        path.write_bytes(data)
        plan = plan_remap(open_checkpoint(str(path)), [parse_rule(rule) for rule in rules])
        export_copy(str(path), out, plan, overwrite=True, verify="full")
        return out.read_bytes()

    return copy


Edits = Callable[..., list[Edit]]
Copy = Callable[..., bytes]


def devices(data: bytes, tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "devices.pth"
    path.write_bytes(data)
    return {row.key: row.device for row in open_checkpoint(str(path)).storages}


def members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {one.name: (archive.extractfile(one) or io.BytesIO()).read() for one in archive}


def test_there_and_back_is_the_identity(copy: Copy) -> None:
    data = tar("cuda:0", "cuda:0", "cuda:0")
    assert copy(copy(data, "*=cpu"), "*=cuda:0") == data


@pytest.mark.parametrize("mtime", [0, 1489000000.25])
def test_longer_tags_make_the_member_longer(copy: Copy, tmp_path: Path, mtime: float) -> None:
    storages = Storage(1000, "cpu", SIX), Storage(2000, "cpu", TWO), Storage(3000, "cpu", MORE)
    data = checkpoint(ROOT, storages, TENSORS, VIEWS, mtime=mtime)
    made = copy(data, "*=cuda:11")
    assert devices(made, tmp_path) == dict.fromkeys(("1000", "2000", "3000", "1001"), "cuda:11")
    before, after = members(data), members(made)
    assert list(after) == list(before)
    assert {name for name in before if before[name] != after[name]} == {"storages"}
    assert len(after["storages"]) == len(before["storages"]) + 3 * len("a:11")
    assert after["storages"] == before["storages"].replace(b"X\3\0\0\0cpu", b"X\7\0\0\0cuda:11")


def test_members_behind_move_by_whole_blocks(copy: Copy, tmp_path: Path) -> None:
    parts = members(tar("cpu", "cpu"))
    nbytes = len(parts["storages"])
    for filling in range(0, 512, 73):
        storages = parts["storages"].replace(MORE, MORE)  # the same, and more of one kind in front
        order = {
            "storages": storages,
            **{key: parts[key] for key in ("pickle", "tensors")},
            "x": bytes(filling),
        }
        made = copy(archive(order), "path:a@cuda:11", "path:v@cuda:11")
        assert list(members(made)) == list(order)
        assert members(made)["x"] == bytes(filling)
        assert len(members(made)["storages"]) == nbytes + len("a:11")
        assert devices(made, tmp_path)["1000"] == "cuda:11"


def test_size_in_the_extended_header_is_mended(copy: Copy, tmp_path: Path) -> None:
    parts = members(tar("cpu", "cpu"))
    size = {"size": str(len(parts["storages"]))}
    first = archive({key: parts[key] for key in ("sys_info", "pickle", "tensors")}).rstrip(b"\0")
    first += bytes(-len(first) % 512)
    made = copy(first + archive({"storages": parts["storages"]}, pax_headers=size), "*=cuda:11")
    assert len(members(made)["storages"]) > len(parts["storages"])
    assert set(devices(made, tmp_path).values()) == {"cuda:11"}


def test_views_of_one_storage_go_together(edits: Edits) -> None:
    with pytest.raises(PlanError, match="views of one storage are sent to different devices"):
        edits(tar("cuda:0", "cpu"), "path:a@cpu", "path:v@cuda:1")


def test_storage_that_is_viewed_only_goes_with_its_view(edits: Edits) -> None:
    root = stream(proto(), dict_((text("v"), reference(3))))
    data = checkpoint(root, [Storage(1000, "cuda:0", SIX)], TENSORS[2:], VIEWS)
    (edit,) = edits(data, "path:v@cpu")
    assert b"cpu" in edit.data
    (edit,) = edits(data, "cuda:0=cpu")
    assert b"cpu" in edit.data


def test_tag_that_stands_nowhere_is_not_guessed_at() -> None:
    record = StorageRecord(1000, "cuda:0", None, 2, 8, 0, 0, 0)
    with pytest.raises(PlanError, match="the device cuda:0 is written in a way that cannot be changed"):
        _relabelled(stream(proto(), number(1)), record, "cpu")


def test_locations_are_those_of_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "file.pth"
    path.write_bytes(tar("cuda:0", "cpu", "cuda:3"))
    container: Container = read_container(str(path))
    plan = plan_remap(build_checkpoint(container), [parse_rule("cuda:*=cpu")])
    assert tar_locations(container, with_viewed(plan, container.storage_ids.values())) == {
        "1000": "cpu",
        "3000": "cpu",
    }


FILES = [*(f"plain_pickle/state_p{protocol}.pkl" for protocol in range(6)), "joblib/arrays.joblib"]


def remapped(source: Path, out: Path, *rules: str) -> bytes:
    plan = plan_remap(open_checkpoint(str(source)), list(map(parse_rule, rules)))
    export_copy(str(source), out, plan, overwrite=True)
    return out.read_bytes()


@pytest.mark.wide
@table("file", FILES)
def test_devices_change_and_nothing_else(file: str, tmp_path: Path) -> None:
    source = CORPUS / file
    whole = source.read_bytes()
    for rules in (["*=cpu"], ["cuda:1=cuda:12"], ["*=cuda:0"], ["path:w@cuda:3"]):
        out = tmp_path / source.name
        data = remapped(source, out, *rules)
        found = compare_files(str(out), str(source), list(map(parse_rule, rules)))
        assert found.differences == ()
        assert found.compared_nbytes > 300
        assert (len(data) < len(whole)) == (rules == ["*=cpu"])
    remapped(source, tmp_path / "there", "cuda:1=cuda:12")
    assert remapped(tmp_path / "there", tmp_path / "back", "cuda:12=cuda:1") == whole
    assert remapped(source, tmp_path / "same", "cuda:7=cpu") == whole


def test_a_longer_copy_has_every_length_mended(tmp_path: Path) -> None:
    for protocol in (3, 4):
        value = {"a": storage(), "b": b"z" * 70_000, "c": storage("8", "cuda:2")}
        plain = pickle.dumps(value, protocol)
        for key in ("7", "8"):
            assert key
        source = tmp_path / "a.pkl"
        source.write_bytes(stream(proto(3), list_(tensor(storage()), tensor(storage("8", "cuda:2")))) + plain)
        data = remapped(source, tmp_path / "b.pkl", "*=cuda:123")
        again = open_checkpoint(str(tmp_path / "b.pkl"))
        assert {row.device for row in again.tensors} == {"cuda:123"}
        assert pickle.loads(data[-len(plain) :]) == value


def test_a_change_that_is_noticed(tmp_path: Path) -> None:
    source = CORPUS / "plain_pickle/state_p4.pkl"
    data = bytearray(remapped(source, tmp_path / "a.pkl", "*=cuda:12"))
    at = data.rindex(b"epoch")
    data[at] ^= 1
    (tmp_path / "a.pkl").write_bytes(data)
    assert compare_files(str(tmp_path / "a.pkl"), str(source)).differences
    other = CORPUS / "plain_pickle/two_dumps.pkl"
    assert any("differ in length" in one for one in compare_files(str(other), str(source)).differences)


def test_a_copy_of_a_packed_file_is_not_packed(tmp_path: Path) -> None:
    source = CORPUS / "plain_pickle/state_p2.pkl"
    packed = tmp_path / "a.pkl.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert remapped(packed, tmp_path / "b.pkl", "*=cuda:12") == remapped(
        source, tmp_path / "c.pkl", "*=cuda:12"
    )


@table("file", FILES)
def test_in_place_where_it_fits(file: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes((CORPUS / file).read_bytes())
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule("*=cpu")])
    if file[-5:] in {"0.pkl", "1.pkl", "2.pkl"}:  # bytes are a text there, in which filling is longer
        with pytest.raises(ExportError, match="everything behind them would move"):
            patch_in_place(str(path), plan)
        return
    patch_in_place(str(path), plan)
    assert {row.device for row in open_checkpoint(str(path)).tensors} == {"cpu", "none"}
    longer = plan_remap(open_checkpoint(str(path)), [parse_rule("*=cuda:123")])
    (tmp_path / "a.pkl.undo").unlink()
    with pytest.raises(ExportError, match="everything behind them would move"):
        patch_in_place(str(path), longer)


def wrapper() -> bytes:
    """A tensor that names its device itself."""
    device = call("torch.device", text("cuda"), number(1))
    args = (
        *(name("torch.Tensor"), name("torch.float32"), tuple_(number(2)), tuple_(number(1)), number(0)),
        *(name("torch.strided"), device, op("NEWFALSE")),
    )
    return call("torch._utils._rebuild_wrapper_subclass", *args)


def test_what_is_not_changed_says_what_to_do(tmp_path: Path) -> None:
    pid = tuple_(text("storage"), name("torch.FloatStorage"), text("0"), text("cuda:1"), number(2))
    object_ = stream(proto(), dict_((text("w"), pid + op("BINPERSID"))))
    archive = build_zip(
        Record(name="a/data.pkl", data=object_),
        Record(name="a/version", data=b"3\n"),
        Record(name="a/data/0", data=bytes(8)),
    )
    path = tmp_path / "a.pkl"
    for value, what in (
        (call(OPENER, binbytes(archive)), "a zip within a pickle is not changed"),
        (list_(wrapper()), "devices outside of storages are not changed"),
    ):
        path.write_bytes(stream(proto(3), value))
        with pytest.raises(PlanError, match=what) as caught:
            remapped(path, tmp_path / "b.pkl", "*=cpu")
        assert "export --format same -o model.pt" in str(caught.value.remedy)
    path.write_bytes(stream(proto(3), call(OPENER, binbytes(archive))))
    assert compare_files(str(path), str(path)).differences == ()


def test_a_length_of_one_byte_has_its_limit() -> None:
    nested = Nested(0, Place(1, 255, width=1), 255, None, {}, {})
    with pytest.raises(PlanError, match="do not fit"):
        length_edit(BytesSource(b"\xff" * 256, "a.pkl"), nested, 2)


def test_objects_that_are_written_anew_have_the_devices_of_the_plan() -> None:
    path = str(CORPUS / "plain_pickle/state_p4.pkl")
    container = read_container(path)
    plan = plan_remap(open_checkpoint(path), [parse_rule("cuda:1=cuda:3")])
    mapped = mapped_container(container, plan, Progress())
    assert {one.location for one in mapped.storage_ids.values()} == {"cuda:3", "cpu", "none"}
    rows = build_checkpoint(mapped).tensors
    assert [row.device for row in rows][:3] == ["cuda:3", "cpu", "cuda:3"]
