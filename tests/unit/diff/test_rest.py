from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inspector.diff import rest
from inspector.diff.compare import Wish, compare_paths
from inspector.diff.records import Diff, RecordChange
from inspector.diff.side import open_side
from inspector.errors import CancelledError
from inspector.progress import Progress
from tests.builders import agents
from tests.builders.folders import trainer
from tests.builders.scripts import CODE, script
from tests.builders.states import T, save_zip
from tests.builders.zips import Record
from tests.unit.remap.samples import NBYTES, legacy_of, mapping, stream, tensor, text, written, zip_of


def compared(tmp_path: Path, a: bytes, b: bytes) -> Diff:
    for name, data in (("a", a), ("b", b)):
        (tmp_path / f"{name}.pt").write_bytes(data)
    return compare_paths(str(tmp_path / "a.pt"), str(tmp_path / "b.pt"), Wish())


def test_code_is_compared_where_both_archives_have_some(tmp_path: Path) -> None:
    plain = script()
    assert compared(tmp_path, plain, plain).records == ()
    other = script(
        None,
        Record(name="net/code/__torch__/new.py", data=b"class A(Module):\n"),
        code=CODE + "# more\n",
    )
    diff = compared(tmp_path, plain, other)
    assert diff.records == (
        RecordChange("code/__torch__.py", "changed"),
        RecordChange("code/__torch__/new.py", "added"),
    )
    assert not diff.is_equal
    assert compared(tmp_path, other, plain).records[1] == RecordChange("code/__torch__/new.py", "removed")
    save_zip(tmp_path / "c.pt", {"w": T([1.0])})
    assert compare_paths(str(tmp_path / "a.pt"), str(tmp_path / "c.pt"), Wish()).records == ()


def test_records_that_are_too_large_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "_MOST_NBYTES", 8)
    assert compared(tmp_path, script(), script()).records == ()
    found = compared(tmp_path, script(), script(code=CODE.replace("class", "clasS")))
    assert found.records == ()
    assert found.uncompared == ("the record code/__torch__.py, which is too large",)
    with open_side(str(tmp_path / "a.pt"), Progress()) as side:
        progress = Progress()
        progress.cancel()
        with pytest.raises(CancelledError):
            rest.compare_records(side, side, progress)


STORAGES = {"0": bytes(range(NBYTES))}
OBJECT = stream(mapping(t=tensor(text("cpu"))))


def named(one: Path, other: Path) -> tuple[str, ...]:
    found = compare_paths(str(one), str(other), Wish())
    assert found.is_equal
    return found.uncompared


def test_other_files_of_a_folder_are_named(tmp_path: Path) -> None:
    run = trainer(tmp_path / "run")
    for number in range(5):
        (run / f"{number}.txt").write_bytes(b"a")
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    assert named(run, copy) == ()
    for number in range(5):
        (copy / f"{number}.txt").write_bytes(b"b" * (1 + number % 2))
    assert named(run, copy) == ("5 other files (0.txt, 1.txt, 2.txt, 3.txt and 1 more)",)


def test_files_with_tensors_are_compared_to_their_last_byte(tmp_path: Path) -> None:
    run, copy = trainer(tmp_path / "run"), tmp_path / "copy"
    shutil.copytree(run, copy)
    file = copy / "model.safetensors"
    data = file.read_bytes()
    nbytes = int.from_bytes(data[:8], "little")
    file.write_bytes((nbytes + 1).to_bytes(8, "little") + data[8 : 8 + nbytes] + b" " + data[8 + nbytes :])
    assert named(run, copy) == ("1 other file (model.safetensors)",)


def test_records_of_files_within_a_folder_are_compared(tmp_path: Path) -> None:
    run, copy = trainer(tmp_path / "run"), tmp_path / "copy"
    shutil.copytree(run, copy)
    for folder, extra in ((run, b"one"), (copy, b"two")):
        (folder / "scheduler.pt").write_bytes(zip_of(OBJECT, STORAGES, extra=extra))
    found = compare_paths(str(run), str(copy), Wish())
    assert found.records == (RecordChange("scheduler.pt: extra", "changed"),)


@pytest.mark.parametrize("protocol", [2, 3])
def test_another_spelling_is_named_and_another_key_is_none(tmp_path: Path, protocol: int) -> None:
    one = written(tmp_path, legacy_of(OBJECT, STORAGES), "a.pt")
    moved = stream(mapping(t=tensor(text("cpu"), "7")), protocol)
    assert named(one, written(tmp_path, legacy_of(moved, {"7": STORAGES["0"]}), "b.pt")) == ()
    twice = stream(b"}(" + text("t") + text("t") + b"0" + tensor(text("cpu")) + b"u" + b"N0")
    assert named(one, written(tmp_path, legacy_of(twice, STORAGES), "c.pt")) == ()
    spelled = OBJECT.replace(b"X\x01\x00\x00\x00t", b"U\x01t")
    assert named(one, written(tmp_path, legacy_of(spelled, STORAGES), "d.pt")) == (
        "how the pickles spell their objects, and which of them they share",
    )
    assert named(one, written(tmp_path, legacy_of(OBJECT, STORAGES, b"more"), "e.pt"))[-1] in {
        "bytes of the files beside their tensors",
        "what is wrong with the files",
    }


def test_what_stands_beside_tensors_in_an_archive_within_is_named(tmp_path: Path) -> None:
    data = agents.agent()
    at = data.index(b"version", data.index(b"policy.pth")) + len(b"version")
    one = written(tmp_path, data, "a.zip")
    other = written(tmp_path, data[:at] + b"4" + data[at + 1 :], "b.zip")
    assert named(one, other) == ("what stands beside the tensors in policy.pth",)


def test_too_large_records_of_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (
        written(tmp_path, zip_of(OBJECT, STORAGES, deflated=("extra",), extra=extra * 99), name)
        for extra, name in ((b"ab", "a.pt"), (b"ac", "b.pt"))
    )
    assert compare_paths(str(one), str(other), Wish()).records == (RecordChange("extra", "changed"),)
    monkeypatch.setattr(rest, "_MOST_NBYTES", 8)
    assert named(one, other)[0] == "the record extra, which is too large"
    packed = written(tmp_path, zip_of(OBJECT, STORAGES, extra=b"ab" * 99), "c.pt")
    monkeypatch.undo()
    assert named(one, packed) == ()
    damaged = bytearray(one.read_bytes())
    damaged[damaged.index(b"archive/extra") + len(b"archive/extra")] ^= 0xFF
    found = compare_paths(str(one), str(written(tmp_path, bytes(damaged), "d.pt")), Wish())
    assert found.records == (RecordChange("extra", "changed"),)


def test_a_record_that_one_archive_has_lost_differs(tmp_path: Path) -> None:
    data = zip_of(OBJECT, STORAGES, extra=b"one")
    at = data.index(b"archive/extra") - 30
    one = written(tmp_path, data, "a.pt")
    other = written(tmp_path, data[:at] + b"XX" + data[at + 2 :], "b.pt")
    found = compare_paths(str(one), str(other), Wish())
    assert found.records == (RecordChange("extra", "changed"),)
    assert named(other, other) == ()


def test_storages_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A packed storage without a row, damaged in both: its bytes are not known to be equal."""
    key = stream(b"}(" + text("x") + b"}(" + tensor(text("cpu")) + b"K\x01" + b"\x86K\x02uu")
    data = bytearray(zip_of(key, STORAGES, deflated=("data/0",)))
    at = data.index(b"archive/data/0") + len(b"archive/data/0")
    data[at] ^= 0xFF
    one, other = (written(tmp_path, bytes(data), name) for name in ("a.pt", "b.pt"))
    assert named(one, other)[0] == "storage 0, which cannot be read"


def test_comparing_records_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancelled(*_: object) -> None:
        raise CancelledError

    part = stream(mapping(t=tensor(text("cpu"), numel=8)))
    path = written(tmp_path, zip_of(part, {"0": bytes(2 * NBYTES)}), "a.pt")
    for name in ("records_of", "_digest"):
        monkeypatch.setattr(rest, name, cancelled)
        with pytest.raises(CancelledError):
            compare_paths(str(path), str(path), Wish())
        monkeypatch.undo()
