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
from tests.sweep import table

DEMO = demo_path()
FRAMEWORKS = CORPUS.parent / "frameworks"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.pt"


def names(path: Path) -> list[str]:
    return [row.path for row in open_checkpoint(str(path)).tensors]


def test_weights_alone_on_the_cpu(cli, out) -> None:
    answer = cli("remap", DEMO, "-o", out, "--only", "weights")
    assert (answer.code, answer.err) == (0, "")
    first, *rest = answer.out.splitlines()
    assert first.startswith(f"{out}: ")
    assert "taken from model;" in first
    assert first.endswith(
        "reopened and compared: names, types and shapes of the tensors and all other values as planned; "
        "of their bytes only the ends of what was copied"
    )
    assert any(line.startswith("  left out: optimizer: the state of an optimizer (") for line in rest)
    original = open_checkpoint(str(DEMO))
    kept = [row.path.removeprefix("model/") for row in original.tensors if row.path.startswith("model/")]
    assert names(out) == kept
    assert f"{len(kept)} tensors as zip" in first
    assert {row.device for row in open_checkpoint(str(out)).tensors} == {"cpu"}


def test_map_and_target_count_for_forms_as_well(cli, out) -> None:
    cli("remap", DEMO, "-o", out, "--only", "weights", "--map", "cuda:1=cuda:0")
    assert {row.device for row in open_checkpoint(str(out)).tensors} == {"cuda:0"}
    cli("remap", DEMO, "-o", out, "--compact", "--target", "mps", "--force")
    assert {row.device for row in open_checkpoint(str(out)).tensors} == {"mps", "cpu"}


def test_safetensors(cli, tmp_path) -> None:
    out = tmp_path / "out.safetensors"
    answer = cli("remap", DEMO, "-o", out, "--format", "safetensors", "--exclude", "model/*.bias")
    assert answer.code == 0
    data = out.read_bytes()
    header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
    assert header.pop("__metadata__")["format"] == "pt"
    assert header
    assert not any(name.endswith(".bias") for name in header)


def test_everything_but_what_is_excluded(cli, out) -> None:
    answer = cli(
        "remap",
        DEMO,
        "-o",
        out,
        "--exclude",
        "optimizer",
        "--exclude",
        "**/*.bias",
        "--keep-times",
        "--no-verify",
    )
    assert answer.code == 0
    assert "compared" not in answer.out
    assert not any(name.startswith("optimizer") or name.endswith(".bias") for name in names(out))
    assert out.stat().st_mtime_ns == DEMO.stat().st_mtime_ns


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--only", "all"], 2, "there is no 'all' (it can be weights)"),
        (["--format", "onnx"], 2, "there is no 'onnx' (it can be same, state-dict, safetensors)"),
        (
            ["--exclude", "nowhere"],
            2,
            "matches the pattern: nowhere (list the paths with: checkpoint-inspector show ",
        ),
        (["--exclude", ""], 2, "an empty pattern leaves nothing out"),
        (["--strip-prefix", "net."], 2, "names do not begin with 'net.'"),
        (["--format", "safetensors"], 2, "name is one for torch.load, but the file would be for safetensors"),
        (["--compact", "--map", "cuda0=cpu"], 2, "did you mean cuda:0=cpu?"),
        (["--compact", "--receipt", "r.json"], 2, "another form is no copy"),
        (["--compact", "--verify", "torch"], 2, "another form is no copy"),
        (["--only", "weights", "--map", "*=nowhere"], 2, "not a device to map to"),
    ],
)
def test_what_cannot_be_had_is_said(cli, out, options, code, said) -> None:
    answer = cli("remap", DEMO, "-o", out, *options)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert not out.exists()


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


@table("command", [("remap", "--format", "same"), ("remap", "--format", "state-dict"), ("recover",)])
def test_no_file_of_torch_is_named_as_one_of_safetensors(cli, tmp_path, command) -> None:
    out = tmp_path / "out.safetensors"
    answer = cli(command[0], DEMO, "-o", out, *command[1:])
    assert (answer.code, answer.out) == (2, "")
    assert "the file name is one for safetensors, but the file would be for torch.load" in answer.err
    assert not out.exists()


@pytest.mark.parametrize("where", [[], ["-o", "never.safetensors"]])
def test_a_form_is_told_before_anything_is_written(cli, where) -> None:
    answer = cli("remap", DEMO, "--dry-run", "--only", "weights", "--format", "safetensors", *where)
    assert (answer.code, answer.err) == (0, "")
    first, *lines = answer.out.splitlines()
    assert first.startswith("Would write about ")
    assert "tensors as safetensors; taken from model" in first
    assert any(line.startswith("  left out: optimizer: ") for line in lines)
    assert "Of what is written:" not in lines  # it has no device
    assert not any("->" in line for line in lines)


def test_the_devices_of_a_form_are_those_of_what_is_written(cli) -> None:
    said = cli("remap", DEMO, "--dry-run", "--only", "weights").out.split("Of what is written:\n")[1]
    assert "cuda:0 -> cpu: parameter, 30 tensors" in said
    assert "optimizer" not in said
    assert (
        "optimizer" not in cli("remap", DEMO, "--dry-run", "--exclude", "optimizer").out.split("written:")[1]
    )


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


def test_what_a_form_cannot_hold_is_told_before(cli) -> None:
    answer = cli("remap", CORPUS / "zip/sparse.pt", "--dry-run", "--format", "safetensors")
    assert answer.code == 4
    assert "sparse" in answer.err


@pytest.mark.parametrize("option", ["--in-place", "--undo"])
def test_forms_are_new_files(cli, option) -> None:
    answer = cli("remap", DEMO, option, "--compact")
    assert (answer.code, answer.out) == (2, "")
    assert "another form is a new file (name it with -o)" in answer.err


def test_files_that_stand_there_are_left_alone(cli, out) -> None:
    out.write_bytes(b"mine")
    answer = cli("remap", DEMO, "-o", out, "--only", "weights")
    assert (answer.code, out.read_bytes()) == (4, b"mine")


def test_the_same_format_is_a_plain_copy(cli, out) -> None:
    answer = cli("remap", DEMO, "-o", out, "--format", "same")
    assert "relabeled" in answer.out


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


@pytest.mark.parametrize(
    ("name", "shape", "lost"),
    [
        (
            "torchao/int8_weight_only.pt",
            "state-dict",
            "0.weight: its class stores the data in its own way (1",
        ),
        (
            "torchao/dynamic_int8.pt",
            "safetensors",
            "0._packed_params._packed_params: neither a tensor nor a str (2",
        ),
        ("torchao/dynamic_int8.pt", "state-dict", ""),
        ("torch/adagrad.pt", "safetensors", ""),
    ],
)
def test_what_a_form_cannot_hold_is_listed_and_strictly_no(
    name: str, shape: str, lost: str, cli, out
) -> None:
    out = out.with_suffix(".safetensors") if shape == "safetensors" else out
    for options, code in (([], 0), (["--strict"], 1 if lost else 0)):
        answer = cli("remap", FRAMEWORKS / name, "-o", out, "--format", shape, "--force", *options)
        assert (answer.code, answer.err) == (code, "")
        assert lost in answer.out


@pytest.mark.torch
def test_packed_weights_beside_plain_ones_are_no_attributes_of_a_class(cli, out, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1]._packed_params = (torch.ones(2, 3), None)
    torch.save(model, tmp_path / "model.pt")
    answer = cli("remap", tmp_path / "model.pt", "-o", out, "--only", "weights", "--strict")
    assert answer.code == 1
    assert "its module packs it in its own way (1 tensor, 24 B)" in answer.out
