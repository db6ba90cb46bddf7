"""What keeps torch from reading a file at all, in torch's own words."""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector.containers.container import Part
from inspector.containers.notes import Note, NoteKind
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.obstacles import (
    ObstacleKind,
    file_obstacle,
    find_obstacle,
    has_wrong_checksum,
    is_ambiguous,
    is_damaged,
    lost_directory,
)
from inspector.records import replace
from tests.builders.pickles import number
from tests.corpus import CORPUS, cases
from tests.sweep import table
from tests.unit.model.making import by_hand, call, pairs, storage, view
from tests.unit.report.rows import checkpoint

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

M_PERTURB = -6
"""The option of glibc's `mallopt` that fills memory with a byte as it is handed out."""

Edit = Callable[[str, bytes], "bytes | tuple[str, bytes] | None"]


def edited(folder: Path, edit: Edit) -> Path:
    """A genuine archive with some records changed."""
    torch.save({"a": torch.zeros(4), "b": torch.ones(3)}, folder / "base.pt")
    path = folder / "edited.pt"
    with zipfile.ZipFile(folder / "base.pt") as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            record = edit(name, before.read(name))
            if record is not None:
                after.writestr(*(record if isinstance(record, tuple) else (name, record)))
    return path


def error_of(path: Path) -> str | None:
    try:
        torch.load(path, weights_only=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return f"{type(error).__name__}: {error}"
    return None


def replaced(suffix: str, data: bytes | None) -> Edit:
    return lambda name, before: data if name.endswith(suffix) else before


EDITS: dict[str, tuple[Edit, str | None]] = {
    "nothing": (lambda _, data: data, None),
    "version 1": (replaced("/version", b"1\n"), None),
    "version 10": (replaced("/version", b"10\n"), None),
    "version 0": (replaced("/version", b"0\n"), "torch-refuses"),
    "version 11": (replaced("/version", b"11\n"), "newer-format"),
    "version x": (replaced("/version", b"x"), "torch-refuses"),
    "no version": (replaced("/version", None), "torch-refuses"),
    "byteorder": (replaced("/byteorder", b"middle"), "torch-refuses"),
    "no byteorder": (replaced("/byteorder", None), None),
    "second folder": (
        lambda name, data: ("other/x", data) if name.endswith("/byteorder") else data,
        "torch-refuses",
    ),
    "lost record": (replaced("/data/1", None), "truncated"),
    "short record": (lambda name, data: data[:-4] if name.endswith("/data/1") else data, "truncated"),
    "long record": (lambda name, data: data + b"1234" if name.endswith("/data/1") else data, "truncated"),
}
DAMAGED = {"lost record", "short record", "long record"}


@table("what", EDITS)
def test_zip_stops_torch_as_foretold(what: str, tmp_path: Path) -> None:
    edit, finding = EDITS[what]
    path = edited(tmp_path, edit)
    checkpoint = open_checkpoint(str(path))
    obstacle = find_obstacle(checkpoint)
    assert is_damaged(checkpoint) == (what in DAMAGED)
    error = error_of(path)
    if finding is None:
        assert (obstacle, error) == (None, None)
        return
    assert error is not None
    assert obstacle.kind.finding == finding
    kind, _, words = obstacle.message.partition(": ")
    # What is missing is the line of torch's source, and what a build adds at the end.
    assert error.startswith(kind)
    assert words in error
    assert obstacle.kind.remedy.endswith(".")


@table("cut", [1, 21, 22, 60, 500, 800])
def test_zip_that_ends_early_stops_torch(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.pt"
    torch.save({"a": torch.zeros(4), "b": torch.ones(3)}, path)
    path.write_bytes(path.read_bytes()[:-cut])
    checkpoint = open_checkpoint(str(path))
    obstacle = find_obstacle(checkpoint)
    assert obstacle.kind.finding == "truncated"
    assert lost_directory(checkpoint)
    assert is_damaged(checkpoint)
    assert (error_of(path) or "").startswith(obstacle.message)


def test_directory_that_is_damaged_may_be_read_differently(tmp_path: Path) -> None:
    path = tmp_path / "damaged.pt"
    torch.save({"a": torch.zeros(4)}, path)
    data = path.read_bytes()
    place = data.index(b"PK\1\2")
    path.write_bytes(data[:place] + b"XX" + data[place + 2 :])
    checkpoint = open_checkpoint(str(path))
    assert lost_directory(checkpoint)
    assert is_ambiguous(checkpoint)
    assert error_of(path) is not None
    path.write_bytes(data[:place])
    assert is_ambiguous(open_checkpoint(str(path)))


def test_gzip_stops_torch(tmp_path: Path) -> None:
    torch.save(torch.zeros(2), tmp_path / "plain.pt", _use_new_zipfile_serialization=False)
    path = tmp_path / "packed.pt.gz"
    path.write_bytes(gzip.compress((tmp_path / "plain.pt").read_bytes()))
    obstacle = find_obstacle(open_checkpoint(str(path)))
    assert obstacle.message == error_of(path)


@table("cut", [1, 5, 13, 20])
def test_legacy_file_that_ends_early_stops_torch(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.pt"
    torch.save({"a": torch.zeros(4), "b": torch.ones(3)}, path, _use_new_zipfile_serialization=False)
    assert find_obstacle(open_checkpoint(str(path))) is None
    path.write_bytes(path.read_bytes()[:-cut])
    obstacle = find_obstacle(open_checkpoint(str(path)))
    assert (error_of(path) or "").startswith(obstacle.message)


@contextlib.contextmanager
def _memory_filled() -> Iterator[None]:
    """Fill fresh memory: a generator is handed a state before it is read, and an old one may lie there."""
    libc = ctypes.CDLL(None)
    libc.mallopt(M_PERTURB, 0x5A)
    try:
        yield
    finally:
        libc.mallopt(M_PERTURB, 0)


@pytest.mark.parametrize("what", ["untyped", "generator"])
def test_legacy_format_has_kinds_that_torch_cannot_read(what: str, tmp_path: Path) -> None:
    value = torch.zeros(4, dtype=torch.uint16) if what == "untyped" else {"g": torch.Generator()}
    path = tmp_path / "file.pt"
    torch.save(value, path, _use_new_zipfile_serialization=False)
    obstacle = find_obstacle(open_checkpoint(str(path)))
    with _memory_filled():
        assert (error_of(path) or "").startswith(obstacle.message)
    torch.save(value, path)
    assert find_obstacle(open_checkpoint(str(path))) is None


@pytest.mark.wide
def test_corpus_has_obstacles_just_where_torch_cannot_load() -> None:
    # Nested tensors in the legacy format: torch reads sizes that are not there yet, and fails by chance.
    by_chance = {"legacy/nested.pt"}
    for case in cases():
        try:
            checkpoint = open_checkpoint(str(case.path))
        except CheckpointError:
            continue
        if case.container in {"plain_pickle", "joblib", "gguf"}:  # others load them
            assert find_obstacle(checkpoint) is None, case.name
        elif case.torch_loads is not None and case.name not in by_chance:
            assert (find_obstacle(checkpoint) is None) == case.torch_loads, case.name


def test_old_archive_with_another_folder_for_its_storages() -> None:
    checkpoint = open_checkpoint(str(CORPUS / "old" / "t1.4_py27_zip_cuda_sd.pt"))
    obstacle = find_obstacle(checkpoint)
    assert (obstacle.kind.finding, "torch 1.4" in obstacle.kind.remedy) == ("torch-refuses", True)
    assert obstacle.message == error_of(CORPUS / "old" / "t1.4_py27_zip_cuda_sd.pt")


def test_notes_of_containers() -> None:
    plain = by_hand(number(1))
    assert not is_ambiguous(plain)
    assert not has_wrong_checksum(plain)
    assert is_ambiguous(by_hand(number(1), notes=(Note(NoteKind.SHARED_NAME),)))
    assert has_wrong_checksum(by_hand(number(1), notes=(Note(NoteKind.WRONG_CHECKSUM),)))


def test_duplicate_and_damaged_records_are_noted_by_the_container(tmp_path: Path) -> None:
    path = edited(tmp_path, lambda name, data: data)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("base/data.pkl", b"\x80\x02N.")
    assert is_ambiguous(open_checkpoint(str(path)))


def test_other_formats_have_none() -> None:
    assert find_obstacle(by_hand(number(1), form="tar", versions=())) is None
    lost = by_hand(pairs(w=view(storage("0")), x=call("a.B")), stored={}, form="tar")
    assert find_obstacle(lost) is None


@pytest.mark.parametrize(
    ("kind", "begins"),
    [(NoteKind.NO_KEYS, "EOFError"), (NoteKind.ODD_KEYS, "AssertionError: storage key")],
)
def test_lists_of_keys_of_legacy_files(kind: NoteKind, begins: str) -> None:
    found = replace(by_hand(number(1), form="legacy"), notes=(Note(kind),))
    obstacle = find_obstacle(found)
    assert obstacle.message.startswith(begins)


@table(
    "version", ["3", " 3x", "+3", "-3", "0x3", "003\0", "\x1c3", "\v3", "x", "", "11", "9" * 25, "-0", "+-3"]
)
def test_version_numbers_as_torch_takes_them(tmp_path: Path, version: str) -> None:
    path = edited(tmp_path, replaced("/version", version.encode()))
    obstacle, error = find_obstacle(open_checkpoint(str(path))), error_of(path)
    assert (obstacle is None) == (error is None)
    assert obstacle is None or (error or "").startswith(obstacle.message.partition(":")[0])


def test_a_pickle_that_breaks_off_is_damaged_though_no_storage_is_lost() -> None:
    whole = checkpoint(format="pickle")
    cut = replace(whole, notes=(Note(NoteKind.CUT_PICKLE),))
    assert (is_damaged(whole), find_obstacle(whole)) == (False, None)
    obstacle = find_obstacle(cut)
    assert is_damaged(cut)
    assert obstacle.kind is ObstacleKind.CUT_OFF


def test_what_cannot_be_read_is_a_file_of_a_folder_or_a_record_of_an_archive() -> None:
    note = Note(NoteKind.UNREAD_PART, ("it is damaged",), "policy.pth")
    for parts, kind in (((), ObstacleKind.RECORD), ((Part("a", 1),), ObstacleKind.MISSING_FILE)):
        made = checkpoint(format="stable-baselines3", notes=(note,), refusal="RuntimeError: x", parts=parts)
        found = file_obstacle(made)
        assert found.kind is kind
    missing = Note(NoteKind.MISSING_PART, ("1 file is", "b.bin"))
    found = file_obstacle(checkpoint(format="sharded", notes=(missing,), refusal="x"))
    assert found.kind is ObstacleKind.MISSING_FILE
