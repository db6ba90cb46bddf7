"""A folder in a file's place is told apart, and the way back to a file is one that torch takes."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from inspector.containers import lookalikes as folders
from inspector.containers.lookalikes import is_part, is_unpacked, name_folder, pack_again
from inspector.containers.opening import read_container
from inspector.errors import CheckpointError, NotACheckpointError, UnsupportedFormatError
from tests.corpus import CORPUS


def unpacked(path: Path) -> str:
    with zipfile.ZipFile(CORPUS / "zip" / "train.pt") as archive:
        archive.extractall(path)
    return os.fspath(path)


def refused(path: str) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        read_container(path)
    return caught.value


def test_unpacked_checkpoint_is_packed_with_the_folder_of_its_parts(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "best.pth")
    (tmp_path / "best.pth" / "__MACOSX").mkdir()  # what archives of a Mac leave
    inner = os.fspath(tmp_path / "best.pth" / "train")
    for path in (folder, inner):
        error = refused(path)
        assert isinstance(error, NotACheckpointError)
        assert "unpacked checkpoint" in error.what
        assert (error.form, error.where) == ("unpacked", path)
        assert str(error.remedy).endswith("zip -0 -r packed.pth train")
    assert is_unpacked(inner)
    assert not is_unpacked(folder)


def test_packing_it_again_brings_the_checkpoint_back(tmp_path: Path) -> None:
    inner = Path(unpacked(tmp_path / "best.pth")) / "train"
    packed = tmp_path / "packed.pth"
    with zipfile.ZipFile(packed, "w") as archive:  # as zip -0 -r does, folders included
        for path in [inner, *sorted(inner.rglob("*"))]:
            archive.write(path, path.relative_to(inner.parent))
    assert read_container(os.fspath(packed)).format == "zip"


def test_part_of_it_leads_to_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Path(unpacked(tmp_path / "best.pth")) / "train"
    error = refused(os.fspath(inner / "data.pkl"))
    assert isinstance(error, UnsupportedFormatError)
    assert error.form == "unpacked"
    monkeypatch.chdir(inner)
    assert is_part("data.pkl")
    assert not is_part("version")
    (inner / "version").unlink()
    assert not is_part("data.pkl")


def test_other_folder_names_its_largest_checkpoint(tmp_path: Path) -> None:
    assert name_folder(os.fspath(tmp_path)).remedy == "give the path of a file in it"
    (tmp_path / "optimizer.pt").write_bytes(b"1")
    (tmp_path / "pytorch_model.bin").write_bytes(b"12")
    (tmp_path / "log.txt").write_bytes(b"123")
    (tmp_path / "a folder.pt").mkdir()
    wanted = os.fspath(tmp_path / "pytorch_model.bin")
    assert str(name_folder(os.fspath(tmp_path)).remedy).endswith(f"such as {folders.file_word(wanted)}")


def test_folder_that_may_not_be_read_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str) -> object:
        raise PermissionError

    monkeypatch.setattr(os, "scandir", refuse)
    assert name_folder(os.fspath(tmp_path)).remedy == "give the path of a file in it"


def test_file_that_is_gone_meanwhile_is_the_smallest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str) -> int:
        raise FileNotFoundError

    (tmp_path / "best.pt").touch()
    monkeypatch.setattr(os.path, "getsize", refuse)
    assert "best.pt" in str(name_folder(os.fspath(tmp_path)).remedy)


def test_name_of_the_folder_is_a_word_of_the_shell() -> None:
    assert pack_again("/data/my model; ls/").endswith("packed.pth 'my model; ls'")
    assert pack_again("/data/-rf").endswith("packed.pth ./-rf")
