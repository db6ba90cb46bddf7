"""Loading code for the formats and frameworks that have a loader of their own, run by it.

Lightning and Transformers are not asked for by this project, each brings some twenty packages: stand-ins do
what the real ones do with a file, see `running.py`. Their genuine files are in `tests/data/frameworks`.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.report.details import python_expression
from inspector.safety.verdict import judge
from inspector.snippet.styles.table import render, styles
from inspector.snippet.tensor import Wanted, tensor_code, why_no_code
from inspector.snippet.unopened import render_unopened, unopened_styles
from inspector.target.profile import CPU_ONLY, Profile, presets
from tests.corpus import CORPUS
from tests.sweep import table
from tests.torch.running import (
    LightningModule,
    Loadable,
    play,
    play_transformers,
    pretend,
    run,
    save_as_if_on,
)
from tests.unit.snippet.rows import THIS

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
TARGETS = pytest.mark.parametrize("target", [CPU_ONLY, THIS], ids=lambda target: target.id)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, Profile(id="this", label=""))


@pytest.fixture
def net() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout())


def bare() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout())


@TARGETS
def test_torchscript(tmp_path: Path, net: Any, target: Profile) -> None:
    path = tmp_path / "script.pt"
    torch.jit.script(net).save(path)
    for file in (path, CORPUS / "torchscript/conv.pt"):
        found = run(render_unopened("torchscript", str(file), target))
        assert isinstance(found.model, torch.jit.ScriptModule)
        assert not found.model.training
    found = run(render_unopened("torchscript", str(path), target))
    assert torch.equal(found.model(torch.ones(1, 3)), net.eval()(torch.ones(1, 3)))


@table(
    "name",
    [
        "zip/state_dict.pt",
        "devices/zip_cuda_proto3.pt",
        "old/t1.0_py27_legacy_sd.pt",
        "safetensors/all.safetensors",
    ],
)
def test_code_for_one_tensor_loads_that_tensor(name: str) -> None:
    file = open_checkpoint(str(CORPUS / name))
    for tensor in file.tensors:
        wanted = Wanted(checkpoint=file, tensor=tensor, expression=python_expression(tensor))
        assert why_no_code(wanted, judge(file)) == ""
        found = run(tensor_code(wanted, CPU_ONLY)).tensor
        assert (tuple(found.shape), str(found.dtype)) == (tensor.shape, f"torch.{tensor.dtype}"), tensor.path
        assert found.device.type == "cpu"


@TARGETS
def test_exported_program(target: Profile) -> None:
    found = run(render_unopened("pt2", str(CORPUS / "export/model.pt2"), target))
    (inputs,) = [found.program.example_inputs[0]]
    assert all(tensor.device.type == "cpu" for tensor in found.program.state_dict.values())
    assert torch.is_tensor(found.model(*inputs))


@TARGETS
def test_safetensors(tmp_path: Path, net: Any, target: Profile) -> None:
    from safetensors.torch import save_file

    path = tmp_path / "model.safetensors"
    save_file(net.state_dict(), path)
    model = bare()
    run(render_unopened("safetensors", str(path), target), model=model)
    assert torch.equal(model[0].weight, net[0].weight)
    run(render_unopened("safetensors", str(CORPUS / "safetensors/all.safetensors"), target), model=Loadable())


@TARGETS
@pytest.mark.parametrize("kind", ["bin", "safetensors"])
def test_shards(tmp_path: Path, net: Any, kind: str, target: Profile) -> None:
    from safetensors.torch import save_file

    stem = "pytorch_model.bin" if kind == "bin" else "model.safetensors"
    places = {}
    for number, (name, tensor) in enumerate(net.state_dict().items(), start=1):
        file = f"{stem.partition('.')[0]}-0000{number}-of-00002.{kind}"
        places[name] = file
        if kind == "bin":
            save_as_if_on("cuda:0", {name: tensor}, tmp_path / file)
        else:
            save_file({name: tensor}, tmp_path / file)
    index = tmp_path / f"{stem}.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}), encoding="utf-8")
    model = bare()
    run(render_unopened("sharded", str(index), target), model=model)
    assert torch.equal(model[0].weight, net[0].weight)
    assert torch.equal(model[0].bias, net[0].bias)


def test_genuine_shards() -> None:
    model, path = Loadable(), CORPUS / "hf_sharded/pytorch_model.bin.index.json"
    run(render_unopened("sharded", str(path), THIS), model=model)
    index = json.loads(path.read_text(encoding="utf-8"))
    assert model.state.keys() == index["weight_map"].keys()


@TARGETS
@pytest.mark.parametrize("style", ["plain", "distributed"])
def test_dcp(tmp_path: Path, net: Any, style: str, target: Profile) -> None:
    import torch.distributed.checkpoint as dcp

    folder = tmp_path / "step_10"
    dcp.save({"model": net.state_dict()}, checkpoint_id=folder)
    model = bare()
    run(render_unopened("dcp", f"{folder}/", target, style=style), model=model)
    assert torch.equal(model[0].weight, net[0].weight)
    assert (tmp_path / "step_10.pth").exists() == (style == "plain")


@table("tag", ["cpu", "cuda:0"])
@table("protocol", [2, 4])
def test_plain_pickle_of_tensors(tmp_path: Path, tag: str, protocol: int) -> None:
    from tests.torch.remapping import tagged

    path = tmp_path / "data.pkl"
    with tagged(lambda _: tag), path.open("wb") as file:
        pickle.dump({"x": torch.arange(3.0), "names": ["a"]}, file, protocol)
    if tag != "cpu":
        with path.open("rb") as file, pytest.raises(RuntimeError, match="Attempting to deserialize"):
            pickle.load(file)
    found = run(render_unopened("pickle", str(path), THIS))
    assert found.checkpoint["x"].tolist() == [0, 1, 2]
    assert found.checkpoint["names"] == ["a"]


@pytest.mark.parametrize("target", presets(), ids=lambda target: target.id)
@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("torchscript", "torchscript/conv.pt"),
        ("safetensors", "safetensors/all.safetensors"),
        ("sharded", "hf_sharded/pytorch_model.bin.index.json"),
    ],
)
def test_no_device_is_asked_for_that_the_machine_lacks(
    monkeypatch: pytest.MonkeyPatch, form: str, name: str, target: Profile
) -> None:
    for meant in (target, THIS):  # described beforehand, and found out when the code runs
        with monkeypatch.context() as patch:
            machine, model = play(patch, target), Loadable()
            run(render_unopened(form, str(CORPUS / name), meant), model=model)
            best = target.devices[0]
            assert machine.used <= {best, "cpu"}
            assert model.device in {best, None}
            assert best in machine.used or model.device == best


def test_package() -> None:
    path = str(CORPUS / "package/pkg.pt")
    found = run(render(open_checkpoint(path), style=None, target=CPU_ONLY))
    assert found.checkpoint["0.weight"].shape == (4, 3, 3, 3)


def test_tied_weights(tmp_path: Path) -> None:
    from safetensors.torch import save_model

    def tied() -> Any:
        model = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3), "b": torch.nn.Linear(3, 3)})
        model["b"].weight = model["a"].weight
        return model

    saved, model = tied(), tied()
    path = tmp_path / "model.safetensors"
    save_model(saved, str(path))
    run(render_unopened("tied", str(path), CPU_ONLY), model=model)
    assert torch.equal(model["b"].weight, saved["a"].weight)
    assert model["b"].weight is model["a"].weight


def test_folder_of_a_trainer() -> None:
    folder = CORPUS.parent / "frameworks/transformers/bert_run"
    made = {name: Loadable() for name in ("model", "optimizer", "scheduler")}
    run(render_unopened("folder", str(folder), CPU_ONLY), **made)
    assert "param_groups" in made["optimizer"].state
    assert all(tensor.device.type == "cpu" for tensor in made["model"].state.values())
    assert "last_epoch" in made["scheduler"].state


def test_packages_that_are_not_installed_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    weights = {"w": torch.ones(2)}
    joined = SimpleNamespace(get_fp32_state_dict_from_zero_checkpoint=lambda folder, tag=None: weights)
    for name in ("deepspeed", "deepspeed.utils"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    monkeypatch.setitem(sys.modules, "deepspeed.utils.zero_to_fp32", joined)
    model = Loadable()
    run(render_unopened("deepspeed", str(tmp_path), CPU_ONLY), model=model)
    assert model.state is weights
    monkeypatch.setitem(sys.modules, "joblib", SimpleNamespace(load=lambda file: weights))
    (tmp_path / "a.joblib").touch()
    assert weights in vars(run(render_unopened("joblib", str(tmp_path / "a.joblib"), CPU_ONLY))).values()
    tensors = [SimpleNamespace(name="w", data=weights["w"].numpy(), tensor_type=0)]
    reader = SimpleNamespace(
        GGUFReader=lambda path: SimpleNamespace(tensors=tensors), dequantize=lambda a, _: a
    )
    monkeypatch.setitem(sys.modules, "gguf", reader)
    found = run(render_unopened("gguf", "a.gguf", CPU_ONLY))
    assert torch.equal(found.state_dict["w"], weights["w"])


def test_arrays_of_numpy(tmp_path: Path) -> None:
    one, two = np.arange(6, dtype="<f4").reshape(2, 3), np.ones(2, "<i8")
    np.save(tmp_path / "a.npy", one)
    np.savez(tmp_path / "b.npz", one=one, two=two)
    found = run(render_unopened("npy", str(tmp_path / "a.npy"), CPU_ONLY))
    assert torch.equal(found.tensor, torch.from_numpy(one))
    found = run(render_unopened("npz", str(tmp_path / "b.npz"), CPU_ONLY))
    assert {name: tensor.tolist() for name, tensor in found.state_dict.items()} == {
        "one": one.tolist(),
        "two": two.tolist(),
    }


def test_ranks_of_megatron(tmp_path: Path) -> None:
    for rank in range(2):
        path = tmp_path / f"iter_0000005/mp_rank_0{rank}/model_optim_rng.pt"
        path.parent.mkdir(parents=True)
        save_as_if_on(f"cuda:{rank}", {"model": {"w": torch.full((2,), float(rank))}}, path)
    ranks = run(render_unopened("megatron", str(tmp_path), CPU_ONLY)).ranks
    assert {name: held["model"]["w"].tolist() for name, held in ranks.items()} == {
        "mp_rank_00": [0.0, 0.0],
        "mp_rank_01": [1.0, 1.0],
    }


def test_agents_of_stable_baselines3(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    agents = SimpleNamespace(PPO=SimpleNamespace(load=lambda path, device: asked.append((path, device))))
    monkeypatch.setitem(sys.modules, "stable_baselines3", agents)
    run(render_unopened("stable-baselines3", "agent.zip", CPU_ONLY))
    assert asked == [("agent.zip", "cpu")]


# --- frameworks ---------------------------------------------------------------------------------------------


class Lit(LightningModule):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.model = torch.nn.Linear(3, width)


def save_lightning(path: Path, tag: str, **more: Any) -> Lit:
    """Save as the Trainer does."""
    module = Lit(width=2)
    saved = {
        "epoch": 0,
        "global_step": 0,
        "pytorch-lightning_version": "2.6.6",
        "state_dict": module.state_dict(),
        "loops": {},
        "optimizer_states": [torch.optim.Adam(module.parameters()).state_dict()],
        "lr_schedulers": [],
        "hparams_name": "kwargs",
        "hyper_parameters": {"width": 2},
        **more,
    }
    save_as_if_on(tag, saved, path)
    return module


@TARGETS
@pytest.mark.parametrize("tag", ["cpu", "cuda:0", "cuda:3"])
def test_lightning(tmp_path: Path, tag: str, target: Profile) -> None:
    module = save_lightning(tmp_path / "last.ckpt", tag)
    rows = open_checkpoint(str(tmp_path / "last.ckpt"))
    assert [style.id for style in styles(rows)][:2] == ["lightning", "lightning-weights"]
    found = run(render(rows, style="lightning", target=target), MyModel=Lit)
    assert isinstance(found.model, Lit)
    assert not found.model.training
    assert torch.equal(found.model.model.weight, module.model.weight)
    inner = torch.nn.Linear(3, 2)
    found = run(render(rows, style="lightning-weights", target=target), model=inner)
    assert torch.equal(inner.weight, module.model.weight)
    assert found.hyper_parameters["width"] == 2


@pytest.mark.parametrize("odd", [argparse.Namespace(lr=0.1), defaultdict(int, lr=1)], ids=["allowed", "run"])
def test_lightning_file_with_more_than_weights(tmp_path: Path, odd: Any) -> None:
    module = save_lightning(tmp_path / "last.ckpt", "cuda:0", callbacks={"odd": odd})
    code = render(open_checkpoint(str(tmp_path / "last.ckpt")), style="lightning", target=THIS)
    assert ("add_safe_globals" in code) == isinstance(odd, argparse.Namespace)
    assert ("weights_only=False" in code) != isinstance(odd, argparse.Namespace)
    allowed = torch.serialization.get_safe_globals()
    found = run(code, MyModel=Lit)
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(allowed)
    assert torch.equal(found.model.model.weight, module.model.weight)


@TARGETS
def test_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Profile) -> None:
    """A folder as `save_pretrained` leaves it, with the weights saved on cuda:0."""
    play_transformers(monkeypatch)
    folder = tmp_path / 'it\'s a "model"'
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"vocab_size": 5, "hidden_size": 4}), encoding="utf-8")
    state = {"embedding.weight": torch.randn(5, 4)}
    save_as_if_on("cuda:0", state, folder / "pytorch_model.bin")
    rows = open_checkpoint(str(folder / "pytorch_model.bin"))
    assert styles(rows)[0].id == "transformers"
    for code in (
        render(rows, style="transformers", target=target),
        render_unopened("pretrained", str(folder), target),
    ):
        found = run(code)
        assert torch.equal(found.model.embedding.weight, state["embedding.weight"])
        assert found.inputs["input_ids"].device == found.model.device
        assert not found.model.training
        assert found.outputs.shape[-1] == 4


def test_every_style_has_been_run() -> None:
    """What is added to the table must be run above."""
    run_above = {
        "torchscript": {"plain"},
        "pt2": {"plain"},
        "package": {"plain"},
        "distcp": {"plain"},
        "safetensors": {"plain", "transformers"},  # the latter above, as peft
        "sharded": {"plain", "transformers"},
        "dcp": {"plain", "distributed"},
        "pickle": {"plain"},
        "tied": {"plain", "transformers"},
        "folder": {"plain"},
        "deepspeed": {"plain"},
        "joblib": {"plain"},
        "gguf": {"plain"},
        "npy": {"plain"},
        "npz": {"plain"},
        "megatron": {"plain"},
        "stable-baselines3": {"plain"},
        "pretrained": {"transformers"},
        # Of packages that are not installed here: what they wrote is in tests/data/folders, and its code was
        # run with them when it was made.
        "diffusers": {"plain"},
        "speechbrain": {"plain"},
        "tensordict": {"plain"},
        "adapters": {"plain"},
    }
    from inspector.snippet import unopened

    assert unopened._WAYS.keys() == run_above.keys()
    for form, ids in run_above.items():
        assert set(unopened_styles(form, "model.safetensors")) == ids
