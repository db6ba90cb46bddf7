from __future__ import annotations

from pathlib import Path

import pytest

from inspector.containers.folder import Folder
from inspector.containers.opening import open_path, opened, stamp_at, stands_for_folder
from inspector.containers.source import BytesSource, FileSource
from inspector.errors import ContainerError


def test_files_and_folders_are_opened(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(b"x")
    with open_path(str(tmp_path / "a.pt")) as source:
        assert type(source) is FileSource
    with open_path(str(tmp_path)) as source:
        assert isinstance(source, Folder)
        assert (source.root, source.entry) == (str(tmp_path), "")
    with pytest.raises(ContainerError, match="no such file"):
        open_path(str(tmp_path / "b.pt"))


def test_a_stamp_tells_two_states_of_a_path_apart(tmp_path: Path) -> None:
    file = tmp_path / "a.pt"
    assert stamp_at(str(file)) is None
    assert stamp_at("a\0b") is None
    file.write_bytes(b"x")
    with open_path(str(file)) as source:
        assert stamp_at(str(file)) == source.stamp
    before = stamp_at(str(tmp_path))
    (tmp_path / "b.pt").write_bytes(b"y")
    assert stamp_at(str(tmp_path)) != before


def test_files_stand_for_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__0_0.distcp").write_bytes(b"x")
    with open_path(str(tmp_path / "__0_0.distcp")) as source:
        assert type(source) is FileSource
    (tmp_path / ".metadata").write_bytes(b"x")
    for name in (".metadata", "__0_0.distcp"):
        with open_path(str(tmp_path / name)) as source:
            assert isinstance(source, Folder)
            assert (source.path, source.root, source.entry) == (str(tmp_path / name), str(tmp_path), name)
    monkeypatch.chdir(tmp_path)
    with open_path(".metadata") as source:
        assert isinstance(source, Folder)
        assert source.sizes == {".metadata": 1, "__0_0.distcp": 1}
    with pytest.raises(ContainerError, match="no such file"):
        open_path("x/.metadata")


def test_sources_are_handed_on(tmp_path: Path) -> None:
    source = BytesSource(b"x", "a")
    with opened(source) as same:
        assert same is source
    assert source.part_at("anything") is source
    (tmp_path / "a.pt").write_bytes(b"x")
    with opened(str(tmp_path / "a.pt")) as file:
        assert file.read(0, 1) == b"x"
    with pytest.raises(ContainerError):
        file.read(0, 1)


def test_the_file_that_names_an_iteration_stands_for_its_folder(tmp_path: Path) -> None:
    name = "latest_checkpointed_iteration.txt"
    assert not stands_for_folder(str(tmp_path), name)
    (tmp_path / name).write_text("5")
    assert stands_for_folder(str(tmp_path), name)
    assert not stands_for_folder(str(tmp_path), f"my_{name}")
