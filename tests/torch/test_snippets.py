"""Loading code of every style for files of `torch.save`, run by torch on files of its kind."""

# ruff: noqa: NPY002 - NumPy's global generator is the one whose state training scripts save
from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

from inspector.model.build import open_checkpoint
from inspector.snippet.styles.table import render, styles
from inspector.target.profile import CPU_ONLY, Profile
from tests.sweep import table
from tests.torch.running import play, pretend, run, save_as_if_on, tensors_in
from tests.unit.snippet.rows import THIS

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
NO_GPU = Profile(id="this", label="")


@pytest.fixture(autouse=True)
def _clean_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave torch as it was; and this machine has no GPU, whatever it has."""
    pretend(monkeypatch, NO_GPU)
    allowed = torch.serialization.get_safe_globals()
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()
    yield
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(allowed)
    torch.set_rng_state(states[0])
    random.setstate(states[1])
    np.random.set_state(states[2])


def write(path: Path, style: str, target: Profile) -> str:
    rows = open_checkpoint(str(path))
    assert style in [offer.id for offer in styles(rows)]
    return render(rows, style=style, target=target)


# --- whole modules ------------------------------------------------------------------------------------------


@pytest.fixture
def nets(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("nets")
    code = (
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.body = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))\n"
        "    def forward(self, x):\n"
        "        return self.body(x)\n"
    )
    exec(code, module.__dict__)
    monkeypatch.setitem(sys.modules, "nets", module)
    return module


def test_whole_module(tmp_path: Path, nets: Any) -> None:
    path = tmp_path / "net.pt"
    for tag in ("legacy", "cpu", "cuda:0", "cuda:3", "mps"):
        net = nets.Net()
        if tag == "legacy":
            torch.save(net, path, _use_new_zipfile_serialization=False)
        else:
            save_as_if_on(tag, net, path)
        for target in (CPU_ONLY, THIS):
            found = run(write(path, "module", target))
            assert type(found.model) is nets.Net, (tag, target.id)
            assert not found.model.training, (tag, target.id)
            assert torch.equal(found.model(torch.ones(1, 3)), net.eval()(torch.ones(1, 3))), (tag, target.id)
            model = nets.Net()
            run(write(path, "module-weights", target), model=model)
            assert torch.equal(model.body[0].weight, net.body[0].weight), (tag, target.id)


def test_missing_class_is_told_before_anything_is_loaded(tmp_path: Path, nets: Any, monkeypatch: Any) -> None:
    path = tmp_path / "net.pt"
    torch.save({"net": nets.Net()}, path)
    code = write(path, "module", CPU_ONLY)
    monkeypatch.delitem(sys.modules, "nets")
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(ModuleNotFoundError, match="No module named 'nets'"):
        run(code)


# --- Lightning's file without Lightning ---------------------------------------------------------------------


@table("prefix", ["model.", "net._orig_mod.", ""])
def test_weights_of_a_lightning_file(tmp_path: Path, prefix: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
    saved = {
        "pytorch-lightning_version": "2.4.0",
        "state_dict": {prefix + name: tensor for name, tensor in model.state_dict().items()},
        "hyper_parameters": {"width": 2},
    }
    path = tmp_path / "last.ckpt"
    save_as_if_on("cuda:0", saved, path)
    for target in (CPU_ONLY, THIS):
        bare = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
        found = run(write(path, "lightning-weights", target), model=bare)
        assert torch.equal(bare[1].weight, model[1].weight)
        assert found.hyper_parameters == {"width": 2}


# --- data ---------------------------------------------------------------------------------------------------

X, Y = torch.arange(120.0).reshape(40, 3), torch.arange(40)
DATA: dict[str, Any] = {
    "tensor": X,
    "pair": (X, Y),
    "names": {"x": X, "y": Y},
    "splits": {"train": {"images": X, "labels": Y}, "test": {"images": X[:4].clone()}},
    "pairs": [(X[index].clone(), int(Y[index])) for index in range(40)],
    "dicts": [{"image": X[index].clone(), "label": index} for index in range(40)],
    "list": [X[index].clone() for index in range(40)],
    "dataset": TensorDataset(X, Y),
    "subset": Subset(TensorDataset(X, Y), range(40)),
    "datasets": {"train": TensorDataset(X, Y), "test": TensorDataset(X[:4].clone(), Y[:4].clone())},
    "loader": DataLoader(TensorDataset(X, Y), batch_size=32),
}


@pytest.mark.parametrize("tag", ["cpu", "cuda:1"])
@pytest.mark.parametrize("kind", DATA)
def test_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, tag: str) -> None:
    path = tmp_path / "data.pt"
    save_as_if_on(tag, DATA[kind], path)
    found = run(write(path, "data", CPU_ONLY))
    first = [next(tensors_in(batch)) for batch in found.loader]
    assert [len(batch) for batch in first] == [32, 8]
    assert torch.equal(torch.cat(first).sort(dim=0).values, X)
    # And with a GPU, to which batches go one by one and nothing else does.
    machine = play(monkeypatch, Profile(id="this", label="", accelerators=(("cuda", 1),)))
    found = run(write(path, "data", THIS))
    assert set(machine.restored) == {"cpu"}
    assert set(machine.moved) == {"cuda:0"}
    assert len(next(tensors_in(found.batch))) == 8


# --- training goes on ---------------------------------------------------------------------------------------

ALGORITHMS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.1, "amsgrad": True},
    "AdamW": {"lr": 0.1, "weight_decay": 0.1},
    "NAdam": {"lr": 0.1},
    "Adagrad": {"lr": 0.1},
    "ASGD": {"lr": 0.1},
    "RMSprop": {"lr": 0.1},
    "LBFGS": {"lr": 0.1, "max_iter": 2},
}


class Training:
    """A run that depends on all of its state: dropout, two more generators, a loss scaler."""

    def __init__(self, seed: int, algorithm: str) -> None:
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1)
        )
        groups: Any = self.model.parameters()
        if algorithm != "LBFGS":  # which takes one group only
            layers = [list(layer.parameters()) for layer in self.model if list(layer.parameters())]
            groups = [{"params": layers[0]}, {"params": layers[1] + layers[2], "lr": 0.05}]
        self.optimizer = getattr(torch.optim, algorithm)(groups, **ALGORITHMS[algorithm])
        self.scheduler = torch.optim.lr_scheduler.SequentialLR(
            self.optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(self.optimizer, total_iters=2),
                torch.optim.lr_scheduler.StepLR(self.optimizer, 1),
            ],
            milestones=[2],
        )
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        for _ in range(3):
            self.step()

    def loss(self) -> torch.Tensor:
        noise = torch.randn(8, 4) + random.random() + np.random.rand()
        return self.model(noise).square().mean()

    def step(self) -> None:
        if isinstance(self.optimizer, torch.optim.LBFGS):  # calls back, so that it takes no scaler
            self.optimizer.step(self.closure)
        else:
            self.optimizer.zero_grad()
            self.scaler.scale(self.loss()).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.scheduler.step()

    def closure(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        return loss

    def checkpoint(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            "epoch": 3,
            "rng": {
                "cpu": torch.get_rng_state(),
                "python": random.getstate(),
                "numpy": np.random.get_state(),
            },
        }

    def variables(self) -> dict[str, Any]:
        names = ("model", "optimizer", "scheduler", "scaler")
        return {name: getattr(self, name) for name in names}


@table(("tag", "target"), [("cpu", CPU_ONLY), ("cuda:1", THIS)], ids=["cpu", "cuda"])
@table("algorithm", ALGORITHMS)
def test_resumed_training_takes_the_steps_it_would_have_taken(
    tmp_path: Path, algorithm: str, tag: str, target: Profile
) -> None:
    before = Training(1, algorithm)
    path = tmp_path / "run.pt"
    save_as_if_on(tag, before.checkpoint(), path)
    before.step()
    before.step()
    left, drawn = before.checkpoint(), (torch.rand(3), random.random(), np.random.rand())
    after = Training(2, algorithm)
    found = run(write(path, "resume", target), **after.variables())
    after.step()
    after.step()
    right = after.checkpoint()
    pairs = list(zip(tensors_in(left), tensors_in(right), strict=True))
    assert len(pairs) > 12
    assert all(torch.equal(one, other) for one, other in pairs)
    assert repr(left["optimizer"]["param_groups"]) == repr(right["optimizer"]["param_groups"])
    assert left["scheduler"]["_last_lr"] == right["scheduler"]["_last_lr"]
    assert left["scaler"] == right["scaler"]
    assert torch.equal(drawn[0], torch.rand(3))
    assert drawn[1:] == (random.random(), np.random.rand())
    assert found.epoch == 3


def test_a_run_that_is_not_resumed_goes_another_way(tmp_path: Path) -> None:
    """So the test above cannot pass by chance: each part that is left out shows."""
    before = Training(1, "Adam")
    path = tmp_path / "run.pt"
    torch.save(before.checkpoint(), path)
    before.step()
    code = write(path, "resume", CPU_ONLY)
    for left_out in ("optimizer.", "scheduler.", "torch.set_rng", "random.set", "numpy.random.set"):
        after = Training(2, "Adam")
        kept = [line for line in code.splitlines() if not line.startswith(left_out)]
        assert len(kept) == len(code.splitlines()) - 1
        run("\n".join(kept), **after.variables())
        after.step()
        after.step() if left_out == "scheduler." else None
        before.step() if left_out == "scheduler." else None
        pairs = zip(before.model.state_dict().values(), after.model.state_dict().values(), strict=True)
        assert not all(torch.equal(one, other) for one, other in pairs)
