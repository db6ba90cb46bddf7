"""The name of a new file: told by a word, free, short enough, and in the folder as it was spelled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.remap.files import device_word, free_folder, free_path


def test_the_word_is_the_type_of_device() -> None:
    assert device_word({"cpu"}) == "cpu"
    assert device_word({"cuda:0", "cuda:1"}) == "cuda"
    assert device_word({"cuda:0", "cpu"}) == "fixed"
    assert device_word(()) == "fixed"


def test_the_path_stays_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path, free in (
        ("best.pth", "best.cpu.pth"),
        ("./best.pth", "./best.cpu.pth"),
        ("a/../best.pth", "a/../best.cpu.pth"),
        ("best.pt.gz", "best.cpu.pt"),
        ("best", "best.cpu.pth"),
        ("v1.0 of the long-suffixed model", "v1.0 of the long-suffixed model.cpu.pth"),
        ("b/b", "b/b.cpu.pth"),
        ("model_best.pth.tar", "model_best.cpu.pth.tar"),
        ("data.tar", "data.cpu.tar"),
        (".pth.tar", ".cpu.pth.tar"),
    ):
        assert free_path(path, "cpu") == free, path
    assert free_path("best.pth", "weights", "safetensors") == "best.weights.safetensors"


def test_what_stands_there_is_left_alone(tmp_path: Path) -> None:
    Path(tmp_path / "best.cpu.pth").touch()
    Path(tmp_path / "best.cpu-2.pth").symlink_to("nowhere")
    assert free_path(str(tmp_path / "best.pth"), "cpu") == str(tmp_path / "best.cpu-3.pth")


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    name = Path(free_path(str(tmp_path / ("\u540d" * 84 + ".pt")), "cpu")).name
    assert len(os.fsencode(name)) < 255
    assert name.endswith("\u540d.cpu.pt")


def test_folder_beside_a_folder_has_no_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.index.json").touch()
    for path in (tmp_path / "run", f"{tmp_path / 'run'}/", tmp_path / "run" / "model.index.json"):
        assert free_folder(str(path), "cpu") == str(tmp_path / "run.cpu")
    (tmp_path / "run.cpu").mkdir()
    assert free_folder(str(tmp_path / "run"), "cpu") == str(tmp_path / "run.cpu-2")
    monkeypatch.chdir(tmp_path / "run")
    for path in (".", "model.index.json"):
        assert free_folder(path, "gpu") == str(tmp_path / "run.gpu")
