"""Every command on a safetensors file: what it answers, and what it writes in its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.safetensors import model, row, safetensors

TIED = safetensors({"__metadata__": {"head": "body"}, "body": row()}, bytes(range(8)))


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(model(a__weight=(2, 3), a__bias=(3,)))
    return path


def test_copy_is_a_file_for_torch_and_back(sound: Path, tmp_path: Path, cli) -> None:
    copy, back = tmp_path / "copy.pth", tmp_path / "back.safetensors"
    assert cli("remap", sound, "-o", copy, "--map", "*=cuda:1").code == 0
    document = json.loads(cli("show", "--json", copy).out)
    assert [(one["path"], one["device"], one["shape"]) for one in document["tensors"]] == [
        ("a.weight", "cuda:1", [2, 3]),
        ("a.bias", "cuda:1", [3]),
    ]
    assert cli("remap", copy, "-o", back).code == 0
    assert back.read_bytes()[-36:] == sound.read_bytes()[-36:]
    plain = tmp_path / "plain.pth"
    assert cli("remap", sound, "-o", plain).code == 0
    assert {one["device"] for one in json.loads(cli("show", "--json", plain).out)["tensors"]} == {"cpu"}


def test_devices_are_changed_in_a_copy_for_torch_alone(sound: Path, tmp_path: Path, cli) -> None:
    before = sound.read_bytes()
    for options in (["--in-place"], ["-o", tmp_path / "x.pth", "--format", "same"]):
        answer = cli("remap", sound, "--map", "*=cuda:1", *options)
        assert answer.code
        assert "a safetensors file has no devices, so there are none to change" in answer.err
    assert sound.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [sound.name]


def test_tied_names_are_told_and_come_back(tmp_path: Path, cli) -> None:
    path, copy = tmp_path / "tied.safetensors", tmp_path / "copy.pth"
    path.write_bytes(TIED)
    document = json.loads(cli("show", "--json", path).out)
    assert [one["path"] for one in document["tensors"]] == ["body"]
    assert [one["id"] for one in document["findings"]] == ["tied-names"]
    assert "load_model(" in cli("snippet", path).out
    assert cli("remap", path, "-o", copy).code == 0
    tensors = json.loads(cli("show", "--json", copy).out)["tensors"]
    assert [(one["path"], one["storage"]) for one in tensors] == [("body", "0"), ("head", "0")]


def test_what_is_whole_of_a_file_that_was_cut_off_is_saved(sound: Path, tmp_path: Path, cli) -> None:
    sound.write_bytes(sound.read_bytes()[:-4])
    checked = cli("check", sound, "--target", "cpu")
    assert checked.code
    assert "incomplete metadata, file not fully covered" in checked.out.replace("\n      ", " ")
    out = tmp_path / "whole.pth"
    assert cli("recover", sound, "-o", out).code == 0
    document = json.loads(cli("show", "--json", out).out)
    assert [(one["path"], one["device"]) for one in document["tensors"]] == [("a.weight", "cpu")]


@pytest.mark.torch
def test_torch_loads_the_copy_as_the_library_loads_the_file(sound: Path, tmp_path: Path, cli) -> None:
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("safetensors.torch")
    values = {
        "f": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "h": torch.arange(4, dtype=torch.bfloat16),
        "q": torch.arange(4).to(torch.float8_e4m3fn),
        "s": torch.arange(5).to(torch.uint16),
        "c": torch.ones(2, dtype=torch.complex64),
        "e": torch.empty(0, 3),
        "b": torch.tensor(True),
    }
    library.save_file(values, sound)
    copy = tmp_path / "copy.pth"
    assert cli("remap", sound, "-o", copy).code == 0
    loaded = torch.load(copy, weights_only=True)
    assert set(loaded) == set(values)
    for name, value in values.items():
        assert (loaded[name].dtype, loaded[name].shape) == (value.dtype, value.shape)
        assert loaded[name].view(torch.uint8).equal(value.view(torch.uint8)) if value.dim() else True
