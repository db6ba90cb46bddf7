from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.container import Container
from inspector.containers.opening import read_container
from inspector.containers.source import FileSource
from inspector.containers.tar.archive import StorageRecord
from inspector.errors import PlanError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.progress import Progress
from inspector.remap.export import export_copy
from inspector.remap.plan import plan_remap, with_viewed
from inspector.remap.rare import _relabelled, tar_edits, tar_locations
from inspector.remap.rewrite import Edit
from inspector.remap.rules import parse_rule
from tests.builders.pickles import dict_, name, number, op, proto, stream, text, tuple_
from tests.builders.tars import Storage, Tensor, archive, checkpoint, reference, tensors_member

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


def test_nothing_changes_without_a_reason(edits: Edits, copy: Copy) -> None:
    data = tar("cuda:0", "cpu")
    assert edits(data, "xpu:0=cpu") == []
    assert copy(data, "xpu:0=cpu") == data


def test_shorter_tags_are_written_over_the_old_ones(edits: Edits, copy: Copy, tmp_path: Path) -> None:
    data = tar("cuda:0", "cuda:11")
    changes = edits(data, "*=cpu")
    assert all(edit.end - edit.start == len(edit.data) for edit in changes)
    made = copy(data, "*=cpu")
    assert len(made) == len(data)
    spans = {place for edit in changes for place in range(edit.start, edit.end)}
    assert {place for place in range(len(data)) if data[place] != made[place]} <= spans
    assert set(devices(made, tmp_path).values()) == {"cpu"}
    assert copy(made, "*=cpu") == made


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


def one_storage(described: bytes) -> bytes:
    """A file of one storage, which is described like this."""
    parts = {
        "pickle": stream(proto(), dict_((text("a"), reference(1)))),
        "tensors": tensors_member(TENSORS[:1]),
        "storages": b"\x80\x02K\x01." + described + struct.pack("<q", 6) + SIX + b"\x80\x02].",
    }
    return archive(parts)


def test_tag_from_the_memo_becomes_a_literal(edits: Edits, copy: Copy, tmp_path: Path) -> None:
    first = text("cuda:0") + op("BINPUT", b"\0") + op("POP")
    fields = tuple_(number(1000), op("BINGET", b"\0"), name("torch.FloatStorage"))
    data = one_storage(stream(proto(), first, fields))
    assert any(b"cpu" in edit.data and b"cuda:0" in edit.data for edit in edits(data, "*=cpu"))
    assert devices(copy(data, "*=cpu"), tmp_path) == {"1000": "cpu"}


def test_other_uses_of_the_text_stay_as_they_are(edits: Edits, copy: Copy, tmp_path: Path) -> None:
    dropped = tuple_(text("cuda:0") + op("BINPUT", b"\0")) + op("POP")
    fields = tuple_(number(1000), text("cuda:0") + op("DUP") + op("POP"), name("torch.FloatStorage"))
    data = one_storage(stream(proto(), dropped, fields))
    (edit,) = [edit for edit in edits(data, "*=cpu") if b"FloatStorage" in edit.data]
    assert (edit.data.count(b"cpu"), edit.data.count(b"cuda:0")) == (1, 2)  # once for what DUP repeats
    assert devices(copy(data, "*=cpu"), tmp_path) == {"1000": "cpu"}


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
