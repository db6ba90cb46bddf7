from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.containers import folder as module
from inspector.containers.folder import Folder
from inspector.errors import ContainerError
from inspector.model.build import open_checkpoint
from inspector.safety.verdict import judge
from tests.builders.dcp import two_ranks


def filled(folder: Path) -> Folder:
    (folder / "a" / "b" / "c" / "d").mkdir(parents=True)
    for name in ("one", "a/two", "a/b/three", "a/b/c/four", "a/b/c/d/five"):
        (folder / name).write_bytes(name.encode())
    return Folder("as named", str(folder))


def test_files_are_listed_by_name(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    assert folder.sizes == {"a/b/c/four": 10, "a/b/three": 9, "a/two": 5, "one": 3}
    assert (folder.path, folder.nbytes, folder.file_nbytes, folder.is_folder) == ("as named", 0, 27, True)
    assert folder.read_upto(0, 9) == b""
    assert folder.read_at(0, 9) == b""
    with folder.open("a/two") as source:
        assert source.read(0, 5) == b"a/two"


def test_only_what_was_listed_is_opened(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    folder = filled(inside)
    for name in ("../secret", str(tmp_path / "secret"), "", "a", "missing", "a/../one"):
        with pytest.raises(ContainerError, match="no such file in the folder"):
            folder.open(name)


def test_links_count_only_within_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "inside2").write_bytes(b"secret")
    for name, target in (
        ("out", "../inside2"),
        ("far", "/etc/passwd"),
        ("in", "a/two"),
        ("broken", "nowhere"),
        ("loop", "loop"),
        ("up", ".."),
    ):
        (inside / name).symlink_to(target)
    os.mkfifo(inside / "pipe")
    folder = filled(inside)
    assert sorted(set(folder.sizes) - {"a/b/c/four", "a/b/three", "a/two", "one"}) == ["in"]
    assert folder.outside == ("far", "out")
    with pytest.raises(ContainerError, match="leads out of the folder"):
        folder.open("out")
    with folder.open("in") as source:
        assert source.read(0, 5) == b"a/two"


def test_snapshots_of_hugging_face_may_link_to_their_blobs(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--x" / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    for place, name in (("blobs", "abc"), ("other", "def")):
        (tmp_path / "models--x" / place).mkdir()
        (tmp_path / "models--x" / place / name).write_bytes(b"12345")
        (snapshot / f"{name}.bin").symlink_to(f"../../{place}/{name}")
    folder = Folder(str(snapshot), str(snapshot))
    assert folder.sizes == {"abc.bin": 5}
    assert folder.outside == ("def.bin",)


def test_a_file_that_vanishes_while_it_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").symlink_to("a")

    def gone(_path: str) -> int:
        raise FileNotFoundError

    monkeypatch.setattr(os.path, "getsize", gone)
    assert Folder("x", str(tmp_path)).sizes == {"a": 1}
    assert Folder("x", str(tmp_path / "nowhere")).sizes == {}


def test_listing_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / str(number)).touch()
    assert not Folder("x", str(tmp_path)).is_cut
    monkeypatch.setattr(module, "_MOST_FILES", 3)
    folder = Folder("x", str(tmp_path))
    assert (len(folder.sizes), folder.is_cut) == (3, True)


def test_a_checkpoint_is_found_among_very_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own files come before those of subfolders, and what is named like one is listed beyond others."""
    monkeypatch.setattr(module, "_MOST_FILES", 60)
    monkeypatch.setattr(module, "_NAMED_ALONE", 40)
    for number in range(30):
        (tmp_path / f"{number}.log").touch()
    (tmp_path / "0deep").mkdir()
    for number in range(500):
        (tmp_path / "0deep" / f"{number}.pt").touch()
    saved = two_ranks().write(tmp_path)
    folder = Folder("x", str(saved))
    assert folder.is_cut
    assert {".metadata", "__0_0.distcp", "__1_0.distcp"} <= folder.sizes.keys()
    found = open_checkpoint(str(saved))
    assert len(found.tensors) == 4
    assert judge(found).verdict == "unknown"  # not all was seen


def test_files_that_changed_places_are_another_folder(tmp_path: Path) -> None:
    """Newest time, total size and count stay as they are."""
    for name in ("a.bin", "b.bin", "c.bin"):
        (tmp_path / name).write_bytes(name.encode())
        os.utime(tmp_path / name, ns=(5, 5))
    folder = Folder("x", str(tmp_path))
    assert folder.identity() == folder.stamp
    (tmp_path / "a.bin").rename(tmp_path / "x")
    (tmp_path / "b.bin").rename(tmp_path / "a.bin")
    (tmp_path / "x").rename(tmp_path / "b.bin")
    assert folder.identity() != folder.stamp
    folder = Folder("x", str(tmp_path))
    (tmp_path / "new").write_bytes(b"C.bin")
    os.utime(tmp_path / "new", ns=(5, 5))
    (tmp_path / "new").replace(tmp_path / "c.bin")
    assert folder.identity() != folder.stamp


def test_a_few_files_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    with filled(tmp_path) as folder:
        first = folder.part_at(folder.path_of("one"))
        assert folder.part_at(folder.path_of("one")) is first
        for name in ("a/two", "a/b/three"):
            part = folder.part_at(folder.path_of(name))
            assert part.read(0, part.nbytes) == name.encode()
        with pytest.raises(ContainerError):
            first.read(0, 3)
        kept = folder.part_at(folder.path_of("a/two"))
    with pytest.raises(ContainerError):
        kept.read(0, 3)


def test_a_change_of_any_file_is_noticed(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    assert folder.identity() == folder.stamp
    (tmp_path / "a" / "two").write_bytes(b"longer")
    assert folder.identity() != folder.stamp
    (tmp_path / "one").unlink()
    assert folder.identity() != folder.stamp


def test_the_folder_we_are_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").touch()
    monkeypatch.chdir(tmp_path)
    assert Folder(".", ".").sizes == Folder("", "").sizes == {"one": 0}
