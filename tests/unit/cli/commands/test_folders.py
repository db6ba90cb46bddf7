"""Every command on folders: a model in several files, and what a trainer saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.archives import archive
from tests.builders.folders import pipeline, trainer, two_shards
from tests.builders.pickles import call, proto, stream
from tests.builders.safetensors import model


def test_model_in_several_files(tmp_path: Path, cli) -> None:
    index = two_shards(tmp_path / "m")
    checked = cli("check", index, "--target", "cpu")
    assert checked.code == 0
    assert f'transformers.AutoModel.from_pretrained("{index.parent}") works there' in checked.out
    assert f"-o {index.parent}.cpu --map" in checked.out
    document = json.loads(cli("show", "--json", index.parent).out)
    assert (document["format"], len(document["parts"])) == ("sharded", 2)
    assert [one["part"] for one in document["storages"]] == [0, 0, 1]
    assert "weight_map" in cli("snippet", index.parent).out
    out = tmp_path / "one.pt"
    assert cli("remap", index.parent, "-o", out).code == 0
    names = [one["path"] for one in json.loads(cli("show", "--json", out).out)["tensors"]]
    assert names == ["a.weight", "a.bias", "b.weight"]
    for options in (["--keep-times"], ["--verify", "torch"], ["--receipt", tmp_path / "r.json"]):
        answer = cli("remap", index.parent, "-o", tmp_path / "new", "--map", "*=cpu", *options)
        assert answer.code
        assert "are for single files" in answer.err
    (tmp_path / "m" / "pytorch_model-00002-of-00002.bin").unlink()
    checked = cli("check", index, "--target", "cpu")
    assert checked.code == 1
    assert "FileNotFoundError" in checked.out


def test_file_that_stops_loading_is_named(tmp_path: Path, cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = trainer(Path("run"), arguments="builtins.set")
    checked = cli("check", path, "--target", "cpu")
    assert checked.code == 1
    assert f'torch.load("{path / "optimizer.pt"}")' in checked.out
    assert "optimizer.pt/state/0/exp_avg" in cli("check", path, "--target", "cpu", "--full").out
    good = cli("check", path, "--target", "cuda")
    assert "LOADS on a machine with 1 NVIDIA GPU: loading each of its 4 files works there." in good.out
    (path / "training_args.bin").write_bytes(archive(stream(proto(), call("mine.Arguments")), {}))
    asked = cli("check", path, "--target", "cuda")
    assert f'torch.load("{path / "training_args.bin"}")' in asked.out
    assert "Asked for in training_args.bin." in " ".join(
        cli("check", path, "--target", "cuda", "--full").out.split()
    )
    assert "trainer.train(resume_from_checkpoint=folder)" in cli("snippet", path).out


def test_copy_of_a_folder_is_a_folder_on_the_device_asked_for(tmp_path: Path, cli) -> None:
    source, out = trainer(tmp_path / "run"), tmp_path / "run.cpu"
    answer = cli("remap", source, "-o", out, "--map", "*=cpu")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"{out}: ")
    assert sorted(file.name for file in out.iterdir()) == sorted(file.name for file in source.iterdir())
    before, after = (json.loads(cli("show", "--json", path).out)["tensors"] for path in (source, out))
    assert {one["device"] for one in before} == {"cuda:0", "none"}
    assert {one["device"] for one in after} == {"cpu", "none"}


def test_one_model_of_a_pipeline_is_exported_by_its_name(tmp_path: Path, cli) -> None:
    parts = {name: {"model.safetensors": model(w=(2,), b=(3,))} for name in ("unet", "vae")}
    source, out = pipeline(tmp_path / "p", parts), tmp_path / "vae.safetensors"
    answer = cli("export", source, "-o", out, "--only", "vae")
    assert answer.code == 0
    assert "taken from vae" in answer.out
    assert [one["path"] for one in json.loads(cli("show", "--json", out).out)["tensors"]] == ["w", "b"]
    for only in ((), ("--only", "net"), ("--only", "weights")):
        refused = cli("export", source, "-o", tmp_path / "none.pth", *only)
        assert (refused.code, (tmp_path / "none.pth").exists()) == (2, False)
        assert "several models: unet, vae" in refused.err
