from __future__ import annotations

import json
import shlex
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
    answer = cli("export", DEMO, "-o", out)
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
    said = cli("export", path, "--dry-run", "--format", "safetensors").out.splitlines()[0]
    assert "prefix module. removed from every name; tied weights written once, b in the metadata only" in said
    assert "as zip" in cli("export", path, "--dry-run", "--compact", "--format", "same").out.splitlines()[0]


def test_entries_of_a_shared_object_are_told_by_all_their_names(cli, tmp_path) -> None:
    path, out = tmp_path / "file.pth", tmp_path / "out.pth"
    inner = dict_(
        (text("x"), tensor(storage("0", numel=2), 2)), (text("y"), tensor(storage("1", numel=2), 2))
    )
    root = dict_((text("a"), inner + b"q\x64"), (text("b"), b"h\x64"))
    path.write_bytes(archive(stream(proto(), root), {"0": bytes(8), "1": bytes(8)}))
    for where in (["--dry-run"], ["-o", out]):
        answer = cli("export", path, "--exclude", "b/x", "--format", "same", *where)
        assert "  left out: b/x: left out on request\n" in answer.out
        assert "  left out: a/x: the same entry of one object as b/x (1 tensor, 8 B)\n" in answer.out
    assert names(out) == ["a/y"]
    assert cli("export", path, "--exclude", "b/z", "--format", "same", "--dry-run").code == 2


# --- spellings of before ------------------------------------------------------------------------------------

OLD = (
    "--only weights",
    "--only weights --format same --compact",
    "--only weights --format state-dict",
    "--only weights --format safetensors",
    "--only weights --ema",
    "--only weights --strip-prefix module.",
    "--only weights --strip-prefix ''",
    "--format state-dict --strict",
    "--format safetensors",
    "--format safetensors --strip-prefix module.",
    "--exclude optimizer --exclude '**.bias'",
    "--strip-prefix module.",
    "--compact --map '*=cuda:0' --keep-times",
    "--container legacy --no-verify --move-all",
)


@pytest.fixture
def wrapped(tmp_path: Path) -> Path:
    """A file of training with the prefix of DDP before its names, and averaged weights."""
    model_, average = (
        dict_(*((text(f"module.{name}"), tensor(storage(key, numel=2), 2)) for name, key in keys))
        for keys in ((("a.weight", "0"), ("a.bias", "1")), (("a.weight", "2"), ("a.bias", "3")))
    )
    slots = dict_((text("momentum"), tensor(storage("4", numel=2), 2)))
    root = dict_((text("model"), model_), (text("ema"), average), (text("optimizer"), slots))
    path = tmp_path / "wrapped.pth"
    path.write_bytes(archive(stream(proto(), root), {str(key): bytes([key] * 8) for key in range(5)}))
    return path


@pytest.mark.parametrize("old", OLD)
def test_an_old_spelling_names_the_line_that_writes_the_same(old: str, cli, wrapped, monkeypatch) -> None:
    monkeypatch.chdir(wrapped.parent)
    suffix = ".safetensors" if "--format safetensors" in old else ".pth"
    was = cli("remap", wrapped.name, "-o", f"out{suffix}", *shlex.split(old))
    new = told(was.err)
    written = Path(f"out{suffix}").read_bytes()
    now = cli(*new, "--force")
    assert (was.code, was.out, now.err) == (now.code, now.out, "")
    assert Path(f"out{suffix}").read_bytes() == written


def test_a_suffix_alone_is_such_a_spelling_too(cli, wrapped, monkeypatch) -> None:
    monkeypatch.chdir(wrapped.parent)
    for source, output in ((wrapped, "a.safetensors"), (CORPUS / "dcp/plain", "a.pth")):
        new = told(cli("remap", source, "-o", output).err)
        written = Path(output).read_bytes()
        assert cli(*new, "--force").code == 0
        assert Path(output).read_bytes() == written


def told(err: str) -> list[str]:
    (line,) = err.splitlines()
    return shlex.split(
        line.partition("checkpoint-inspector: another form")[2].partition("checkpoint-inspector ")[2]
    )


def test_old_spellings_are_told_of_once_and_on_stderr_alone(cli, wrapped, tmp_path) -> None:
    other = tmp_path / "other.pth"
    other.write_bytes(wrapped.read_bytes())
    answer = cli("remap", wrapped, other, "--into", tmp_path / "o", "--only", "weights", "--json")
    assert answer.err.count("\n") == 1
    assert [json.loads(line)["action"] for line in answer.out.splitlines()] == ["form", "form"]
    assert cli("remap", wrapped, "-n", "--only", "weights", "--quiet").err == ""
    assert cli("remap", wrapped, "-o", tmp_path / "plain.pth", "--no-verify").err == ""
    many = [tmp_path / f"{number}.pth" for number in range(5)]
    for path in many:
        path.write_bytes(wrapped.read_bytes())
    assert "2.pth ... --into" in cli("remap", *many, "--into", tmp_path / "m", "--only", "weights").err


def test_without_words_the_weights_lose_what_wrappers_put_before_them(cli, wrapped, out) -> None:
    kept, bare = ["module.a.weight", "module.a.bias"], ["a.weight", "a.bias"]
    safe = out.with_suffix(".safetensors")
    for words, expected in (
        ((), bare),
        (("--strip-prefix", ""), kept),
        (("--format", "state-dict"), kept),
        (
            ("--format", "same", "--strip-prefix", ""),
            [f"{it}/{name}" for it in ("model", "ema") for name in kept],
        ),
    ):
        assert cli("export", wrapped, "-o", out, "--force", *words).code == 0
        assert names(out)[: len(expected)] == expected, words
        if "same" not in words and "state-dict" not in words:
            assert cli("export", wrapped, "-o", safe, "--force", *words).code == 0
            assert sorted(names(safe)) == sorted(expected), words


def test_a_whole_file_of_another_kind_is_what_is_usual_for_it(cli, out, tmp_path) -> None:
    assert cli("export", CORPUS / "dcp/plain", "-o", out, "--format", "same").code == 0
    copy = tmp_path / "other" / out.name
    copy.parent.mkdir()
    assert cli("remap", CORPUS / "dcp/plain", "-o", copy).code == 0
    assert out.read_bytes() == copy.read_bytes()
    assert len(names(out)) == 10


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
    answer = cli("export", FRAMEWORKS / name, "-o", out, "--strict")
    assert (answer.code, answer.err) == (0, "")
    assert not model or f"taken from {model};" in answer.out
    assert f"left out: {left_out}" in answer.out
    checkpoint = open_checkpoint(str(out))
    assert {tensor.role for tensor in checkpoint.tensors} <= {"parameter", "buffer"}
    assert checkpoint.optimizers == ()
    assert not any("averaged" in tensor.path for tensor in checkpoint.tensors)
    previewed = cli("export", FRAMEWORKS / name, "--dry-run")
    assert f"left out: {left_out}" in previewed.out


@pytest.mark.parametrize("name", ["data.pt", "data_dict.pt", "batch.pt", "hetero.pt", "processed.pt"])
def test_graphs_have_no_weights(name: str, cli, out) -> None:
    answer = cli("export", FRAMEWORKS / "pyg" / name, "-o", out)
    assert answer.code == 2
    assert "no weights of a model were recognized" in answer.err
    assert not out.exists()


@pytest.mark.torch
def test_packed_weights_beside_plain_ones_are_no_attributes_of_a_class(cli, out, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1]._packed_params = (torch.ones(2, 3), None)
    torch.save(model, tmp_path / "model.pt")
    answer = cli("export", tmp_path / "model.pt", "-o", out, "--strict")
    assert answer.code == 1
    assert "its module packs it in its own way (1 tensor, 24 B)" in answer.out
