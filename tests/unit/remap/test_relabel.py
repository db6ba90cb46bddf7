"""What is patched is shown by `test_in_place` and `test_writers` on whole files; here are the corners."""

from __future__ import annotations

import gzip
import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers import copying
from inspector.containers.opening import open_path, read_container
from inspector.containers.packed import open_source
from inspector.containers.zip.archive import find_pickle
from inspector.containers.zip.directory import read_directory
from inspector.containers.zip.records import Records
from inspector.errors import CancelledError, CheckpointError, ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.progress import Progress
from inspector.remap.export import export_copy
from inspector.remap.in_place import patch_in_place, undo_patch
from inspector.remap.plan import plan_remap
from inspector.remap.relabel import (
    Patch,
    appended_piece,
    fits,
    mapped_container,
    storage_alignment,
    zip_pieces,
)
from inspector.remap.rewrite import fitted_pickle
from inspector.remap.rules import Rule, parse_rule
from inspector.remap.verify import compare_files
from tests.builders.folders import two_shards
from tests.builders.pickles import tuple_
from tests.builders.scripts import net, script, weight
from tests.builders.zips import Record
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.remap.samples import NBYTES, legacy_of, mapping, stream, tar_of, tensor, text, written, zip_of

OBJECT = stream(mapping(a=tensor(text("cuda:0"))))
STORAGES = {"0": bytes(NBYTES)}
NEW = stream(b"]" * 4000 + b"N")


def appended(path: Path, pickle: bytes) -> Patch:
    with open_source(str(path)) as source:
        records = Records(read_directory(source, DEFAULT_LIMITS))
        return appended_piece(source, records, find_pickle(records, str(path)), pickle)


@pytest.mark.parametrize("name", ["devices/zip_mixed8.pt", "old/t1.5_py37_zip_misc.pt"])
def test_python_reads_an_archive_with_an_appended_pickle(tmp_path: Path, name: str) -> None:
    before = (CORPUS / name).read_bytes()
    path = written(tmp_path, before)
    piece = appended(path, NEW)
    assert piece.offset == len(before)
    after = before + piece.data
    with zipfile.ZipFile(io.BytesIO(before)) as one, zipfile.ZipFile(io.BytesIO(after)) as other:
        assert other.namelist() == one.namelist()
        assert other.testzip() is None
        for info in one.infolist():
            is_pickle = info.filename.endswith("/data.pkl")
            assert other.read(info.filename) == (NEW if is_pickle else one.read(info))


def test_a_checksum_that_was_left_out_stays_out(tmp_path: Path) -> None:
    data = bytearray(zip_of(OBJECT, STORAGES))
    central = data.rindex(b"archive/data.pkl") - 46
    data[central + 16 : central + 20] = bytes(4)
    path = written(tmp_path, bytes(data))
    with open_source(str(path)) as source:
        records = Records(read_directory(source, DEFAULT_LIMITS))
        entry = find_pickle(records, str(path))
        assert zip_pieces(source, entry, OBJECT[:-1])[1].data == bytes(4)
        assert appended_piece(source, records, entry, NEW).data.count(b"PK\x01\x02") == 3
        assert fits(entry, OBJECT)
        assert not fits(entry, OBJECT + b".")


def test_a_comment_at_the_end_is_in_the_way(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"a comment of some length"
    with pytest.raises(ExportError, match="there are bytes after the end of the zip"):
        appended(path, NEW)


@table(("given", "alignment"), [(b"4096", 4096), (b"x", 64), (b"0", 64), (b"9" * 17, 64), (b"9999999", 64)])
def test_contents_are_aligned_as_the_archive_says(tmp_path: Path, given: bytes, alignment: int) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES, **{".storage_alignment": given}))
    with open_source(str(path)) as source:
        assert storage_alignment(source, Records(read_directory(source, DEFAULT_LIMITS))) == alignment
    data = path.read_bytes() + appended(path, NEW).data
    assert data.index(NEW) % alignment == 0


CUDA = stream(mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:0"), "1")))
CPU = stream(mapping(a=tensor(text("cpu")), b=tensor(text("cpu"), "1")))
LONGER = stream(mapping(a=tensor(text("cuda:11")), b=tensor(text("cuda:11"), "1")))
STORAGES_WRITERS = {"0": bytes(range(NBYTES)), "1": bytes(range(100, 100 + NBYTES))}


def copy(path: Path, rule: str = "*=cpu", *, progress: Progress | None = None) -> bytes:
    target = path.with_suffix(".out")
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule(rule)])
    export_copy(str(path), target, plan, verify="none", overwrite=True, progress=progress)
    return target.read_bytes()


def records(data: bytes) -> dict[str, bytes]:
    """The records of a zip by name, their CRC checked."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()}


def differences(one: bytes, other: bytes) -> list[int]:
    assert len(one) == len(other)
    return [place for place, (left, right) in enumerate(zip(one, other, strict=True)) if left != right]


# --- zip: nothing moves -------------------------------------------------------------------------------------


def test_a_descriptor_without_a_signature_is_left_alone(tmp_path: Path) -> None:
    path = CORPUS / "devices" / "zip_mixed8.pt"
    data = path.read_bytes().replace(b"PK\x07\x08", b"PK\x07\x09", 1)
    made = copy(written(tmp_path, data))
    descriptor = data.index(b"PK\x07\x09")
    assert made[descriptor : descriptor + 16] == data[descriptor : descriptor + 16]


@pytest.mark.parametrize("deflated", [(), ("data.pkl",)])
def test_what_does_not_change_is_copied_whole(tmp_path: Path, deflated: tuple[str, ...]) -> None:
    data = zip_of(CUDA + b"left behind", STORAGES_WRITERS, deflated=deflated)
    assert copy(written(tmp_path, data), "xpu:3=cpu") == data


def test_a_file_system_that_clones_copies_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = zip_of(CUDA, STORAGES_WRITERS)
    path = written(tmp_path, data)

    def clone(source: int, target: int) -> bool:
        os.pwrite(target, path.read_bytes(), 0)
        return True

    monkeypatch.setattr(copying, "clone_file", clone)
    monkeypatch.setattr(copying, "copy_bytes", None)
    assert records(copy(path))["data/1"] == STORAGES_WRITERS["1"]


# --- zip: records move --------------------------------------------------------------------------------------


def test_a_compressed_pickle_is_written_plain_and_the_rest_as_it_was(tmp_path: Path) -> None:
    data = zip_of(CUDA, {"0": bytes(4000)}, deflated=("data.pkl", "data/0"))
    made = copy(written(tmp_path, data))
    assert records(made)["data.pkl"] == CPU
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        methods = {info.filename: info.compress_type for info in archive.infolist()}
    assert methods["archive/data/0"] == zipfile.ZIP_DEFLATED
    assert records(made)["data/0"] == bytes(4000)


@table("rule", ["*=cpu", "xpu:3=cpu"])
def test_what_two_readers_understand_differently_is_refused_even_where_nothing_changes(
    tmp_path: Path, rule: str
) -> None:
    data = zip_of(CUDA, STORAGES_WRITERS, **{"DATA.PKL": CPU})
    with pytest.raises(ExportError, match=r"several records are named archive/data\.pkl"):
        copy(written(tmp_path, data), rule)
    folder = bytearray(zip_of(CUDA, STORAGES_WRITERS))
    folder[folder.rindex(b"archive/data.pkl") - 46 + 38] = 0x10  # an attribute, which makes it one
    with pytest.raises(CheckpointError, match="torch takes a record for a folder"):
        copy(written(tmp_path, bytes(folder)), rule)


def test_records_that_overlap_are_not_multiplied(tmp_path: Path) -> None:
    data = zip_of(CUDA, STORAGES_WRITERS)
    for key in STORAGES_WRITERS:
        central = data.rindex(b"archive/data/" + key.encode()) - 46
        (start,) = struct.unpack_from("<L", data, central + 42)
        most = len(data) - start - 30  # as much as miniz lets a directory tell
        data = data[: central + 20] + struct.pack("<2L", most, most) + data[central + 28 :]
    with pytest.raises(ExportError, match="overlap or run past the end"):
        copy(written(tmp_path, data), "*=cuda:11")


# --- legacy -------------------------------------------------------------------------------------------------


@table(("rule", "pickle"), [("*=cpu", CPU), ("*=cuda:0", CUDA)])
@table("tail", [b"", b"more bytes"])
def test_nothing_moves_in_a_legacy_file_where_the_pickle_fits(
    tmp_path: Path, rule: str, pickle: bytes, tail: bytes
) -> None:
    data = legacy_of(CUDA, STORAGES_WRITERS, tail)
    made = copy(written(tmp_path, data), rule)
    assert made == legacy_of(fitted_pickle(pickle, len(CUDA)), STORAGES_WRITERS, tail)
    start = data.index(CUDA)
    assert set(differences(made, data)) <= {*range(start, start + len(CUDA))}


@table("pack", [bytes, gzip.compress])
def test_filling_is_left_out_where_the_file_is_cut_behind_the_pickle(tmp_path: Path, pack) -> None:
    filled = fitted_pickle(CPU, len(CUDA))
    made = copy(written(tmp_path, pack(legacy_of(filled, STORAGES_WRITERS))), "*=cuda:11")
    assert made == legacy_of(LONGER, STORAGES_WRITERS)


# --- both ---------------------------------------------------------------------------------------------------


@table("rule", ["*=cpu", "*=cuda:11"])
@table("make", [zip_of, legacy_of])
def test_writing_can_be_cancelled(tmp_path: Path, rule: str, make) -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        copy(written(tmp_path, make(CUDA, STORAGES_WRITERS)), rule, progress=progress)


STORAGES_ARCHIVES = ("data/0", "data/1", "data/2", "constants/0")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def written(data: bytes, name: str = "net.pt") -> str:
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return written


def archive(*more: Record, location: str = "cuda:0") -> bytes:
    """An archive with tensors in both pickles; the first storage of each has the same key in its pickle."""
    return script(net(location), *more, constants=tuple_(weight("0", location)), storages=STORAGES_ARCHIVES)


def devices(path: Path) -> dict[str, str]:
    return {row.path: row.device for row in open_checkpoint(str(path)).tensors}


def test_each_pickle_goes_its_way(write: Callable[..., str], tmp_path: Path) -> None:
    path, out = write(archive()), tmp_path / "copy.pt"
    for rules, places in (
        ([Rule(device="*", to="cpu")], ("cpu", "cpu")),
        ([Rule(device="*", to="cuda:1")], ("cuda:1", "cuda:1")),
        ([Rule(device="*", to="privateuseone:1")], ("privateuseone:1", "privateuseone:1")),
        ([Rule(path="constants.pkl/**", to="cpu")], ("cuda:0", "cpu")),
        ([Rule(path="weight", to="cpu"), Rule(path="child/**", to="cpu")], ("cpu", "cuda:0")),
    ):
        plan = plan_remap(open_checkpoint(path), rules)
        export_copy(path, out, plan, overwrite=True, verify="full")
        assert (devices(out)["weight"], devices(out)["constants.pkl/0"]) == places, rules
        assert not compare_files(str(out), path).differences, rules


def test_in_place_and_back(write: Callable[..., str]) -> None:
    data = archive()
    path = write(data)
    patch_in_place(path, plan_remap(open_checkpoint(path), [Rule(device="*", to="cpu")]))
    assert set(devices(Path(path)).values()) == {"cpu"}
    undo_patch(path)
    assert Path(path).read_bytes() == data
    with pytest.raises(ExportError, match="several pickles hold them"):
        patch_in_place(path, plan_remap(open_checkpoint(path), [Rule(device="*", to="privateuseone:0")]))
    only = Rule(path="constants.pkl/**", to="privateuseone:0")
    assert patch_in_place(path, plan_remap(open_checkpoint(path), [only])).appended
    assert devices(Path(path))["constants.pkl/0"] == "privateuseone:0"


def test_records_of_one_name_are_refused(write: Callable[..., str], tmp_path: Path) -> None:
    path = write(archive(Record(name="net/CONSTANTS.pkl", data=b"\x80\x02).")))
    plan = plan_remap(open_checkpoint(path), [Rule(device="*", to="cpu")])
    with pytest.raises(ExportError, match="several records are named"):
        export_copy(path, tmp_path / "copy.pt", plan)


def test_a_changed_record_shows(write: Callable[..., str]) -> None:
    extra = Record(name="net/extra/a", data=b"one")
    one, other = write(archive(extra)), write(archive(Record(name="net/extra/a", data=b"two")), "other.pt")
    assert compare_files(other, one).differences


OBJECT_FORMATS = stream(mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:1"), "1")))
STORAGES_FORMATS = {"0": bytes(range(NBYTES)), "1": bytes(range(100, 100 + NBYTES))}


@table("make", [zip_of, legacy_of, tar_of])
def test_devices_are_those_of_the_plan_and_nothing_else_changes(tmp_path: Path, make) -> None:
    container = read_container(str(written(tmp_path, make(OBJECT_FORMATS, STORAGES_FORMATS))))
    before = build_checkpoint(container)
    assert mapped_container(container, None, Progress()) is container
    plan = plan_remap(before, [parse_rule("cuda:1=cpu")])
    mapped = mapped_container(container, plan, Progress())
    after = build_checkpoint(mapped)
    assert [row.device for row in after.tensors] == ["cuda:0", "cpu"]
    assert [row._replace(device="") for row in after.tensors] == [
        row._replace(device="") for row in before.tensors
    ]
    assert [one.location for one in mapped.storage_ids.values()] == ["cuda:0", "cpu"]
    assert mapped.stored == container.stored


def test_every_pickle_of_an_archive_has_the_devices_of_the_plan(tmp_path: Path) -> None:
    archive = script(
        net("cuda:0"), constants=tuple_(weight("0", "cuda:0")), storages=("data/0", "constants/0")
    )
    container = read_container(str(written(tmp_path, archive)))
    plan = plan_remap(build_checkpoint(container), [parse_rule("path:constants.pkl/**@cpu")])
    mapped = mapped_container(container, plan, Progress())
    assert {key: one.location for key, one in mapped.storage_ids.items()}["constants/0"] == "cpu"
    assert {one.location for key, one in mapped.storage_ids.items() if key != "constants/0"} == {"cuda:0"}


def test_several_files_have_the_devices_of_the_plan(tmp_path: Path) -> None:
    with open_path(str(two_shards(tmp_path)), DEFAULT_LIMITS) as source:
        container = read_container(source, DEFAULT_LIMITS, Progress())
        checkpoint = build_checkpoint(container)
    assert container.stream is None
    plan = plan_remap(checkpoint, [parse_rule("path:b.*@cpu")])
    after = {
        key: one.location for key, one in mapped_container(container, plan, Progress()).storage_ids.items()
    }
    moved = {row.storage for row in checkpoint.tensors if row.path.startswith("b.")}
    assert after == {key: "cpu" if key in moved else "cuda:0" for key in container.storage_ids}
    assert set(after.values()) == {"cpu", "cuda:0"}
