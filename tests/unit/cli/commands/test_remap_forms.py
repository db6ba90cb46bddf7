from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.resources import demo_path
from tests.builders.archives import archive
from tests.builders.pickles import dict_, proto, state_dict, storage, stream, tensor, text
from tests.builders.safetensors import model
from tests.corpus import CORPUS

DEMO = demo_path()
FRAMEWORKS = CORPUS.parent / "frameworks"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.pt"


def names(path: Path) -> list[str]:
    return [row.path for row in open_checkpoint(str(path)).tensors]


def test_the_name_of_the_new_file_tells_its_format(cli, tmp_path) -> None:
    out = tmp_path / "out.SafeTensors"
    answer = cli("remap", DEMO, "-o", out)
    assert (answer.code, answer.err) == (0, "")
    assert "tensors as safetensors" in answer.out
    (nbytes,) = struct.unpack("<Q", out.read_bytes()[:8])
    assert json.loads(out.read_bytes()[8 : 8 + nbytes])


def test_plain_pickle_stays_one_unless_the_copy_alone_is_named_as_torch_names_files(cli, tmp_path) -> None:
    for name, copy, form in (
        ("a.pkl", "b.pkl", "pickle"),
        ("a.pkl", "b.PT", "zip"),
        ("a.pt", "b.pt", "pickle"),
        ("a.pth", "b.pt", "zip"),
    ):
        path, out = tmp_path / name, tmp_path / copy
        path.write_bytes((CORPUS / "plain_pickle/cloud.pkl").read_bytes())
        assert cli("remap", path, "-o", out, "--force").code == 0, name
        assert json.loads(cli("show", "--json", out).out)["format"] == form, (name, copy)


def test_no_map_for_a_copy_as_safetensors_of_what_has_no_devices(cli, tmp_path) -> None:
    path, out = tmp_path / "model.safetensors", tmp_path / "copy.safetensors"
    path.write_bytes(model(a=(2,)))
    for options in (["--map", "*=cuda:1"], ["--target", "cuda"]):
        answer = cli("remap", path, "-o", out, *options)
        assert (answer.code, answer.out) == (2, ""), options
        assert "a safetensors file has no devices, so there are none to change" in answer.err
        assert not out.exists()
    assert cli("remap", path, "-o", out).code == 0


def test_prefixes_and_twins_are_told_as_well(cli, tmp_path) -> None:
    path = tmp_path / "file.pth"
    tensors = {name: tensor(storage("0", numel=2), 2) for name in ("module.a", "module.b")}
    path.write_bytes(archive(state_dict(**tensors), {"0": bytes(8)}))
    said = cli("remap", path, "--dry-run", "--only", "weights", "--format", "safetensors").out.splitlines()[0]
    assert "prefix module. removed from every name; tied weights written once, b in the metadata only" in said
    assert "as zip" in cli("remap", path, "--dry-run", "--compact").out.splitlines()[0]


def test_entries_of_a_shared_object_are_told_by_all_their_names(cli, tmp_path) -> None:
    path, out = tmp_path / "file.pth", tmp_path / "out.pth"
    inner = dict_(
        (text("x"), tensor(storage("0", numel=2), 2)), (text("y"), tensor(storage("1", numel=2), 2))
    )
    root = dict_((text("a"), inner + b"q\x64"), (text("b"), b"h\x64"))
    path.write_bytes(archive(stream(proto(), root), {"0": bytes(8), "1": bytes(8)}))
    for where in (["--dry-run"], ["-o", out]):
        answer = cli("remap", path, "--exclude", "b/x", *where)
        assert "  left out: b/x: left out on request\n" in answer.out
        assert "  left out: a/x: the same entry of one object as b/x (1 tensor, 8 B)\n" in answer.out
    assert names(out) == ["a/y"]
    assert cli("remap", path, "--exclude", "b/z", "--dry-run").code == 2


# --- files of frameworks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model", "left_out"),
    [
        ("lightning/callbacks.ckpt", "state_dict", "callbacks"),
        ("lightning/swa.ckpt", "state_dict", "callbacks"),
        ("lightning/ema.ckpt", "state_dict", "current_model_state: another model"),
        ("lightning/hparams.ckpt", "state_dict", "hyper_parameters"),
        ("fastai/saved_with_opt.pth", "model", "opt: the state of an optimizer"),
        ("torch/averaged_state.pt", "", "n_averaged: counts what was averaged"),
        ("ultralytics/detect_last.pt", "ema", "optimizer"),
        ("timm/resnet_ema.pth.tar", "state_dict", "state_dict_ema: averaged weights"),
    ],
)
def test_weights_of_frameworks(name: str, model: str, left_out: str, cli, out) -> None:
    answer = cli("remap", FRAMEWORKS / name, "-o", out, "--only", "weights", "--strict")
    assert (answer.code, answer.err) == (0, "")
    assert not model or f"taken from {model};" in answer.out
    assert f"left out: {left_out}" in answer.out
    checkpoint = open_checkpoint(str(out))
    assert {tensor.role for tensor in checkpoint.tensors} <= {"parameter", "buffer"}
    assert checkpoint.optimizers == ()
    assert not any("averaged" in tensor.path for tensor in checkpoint.tensors)
    previewed = cli("remap", FRAMEWORKS / name, "--dry-run", "--only", "weights")
    assert f"left out: {left_out}" in previewed.out


@pytest.mark.parametrize("name", ["data.pt", "data_dict.pt", "batch.pt", "hetero.pt", "processed.pt"])
def test_graphs_have_no_weights(name: str, cli, out) -> None:
    answer = cli("remap", FRAMEWORKS / "pyg" / name, "-o", out, "--only", "weights")
    assert answer.code == 2
    assert "no weights of a model were recognized" in answer.err
    assert not out.exists()


@pytest.mark.torch
def test_packed_weights_beside_plain_ones_are_no_attributes_of_a_class(cli, out, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1]._packed_params = (torch.ones(2, 3), None)
    torch.save(model, tmp_path / "model.pt")
    answer = cli("remap", tmp_path / "model.pt", "-o", out, "--only", "weights", "--strict")
    assert answer.code == 1
    assert "its module packs it in its own way (1 tensor, 24 B)" in answer.out
