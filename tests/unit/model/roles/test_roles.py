"""What tensors are for, in checkpoints as people save them."""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from inspector.model.checkpoint import Role
from inspector.model.roles.roles import (
    role_of_key,
)
from tests.sweep import table
from tests.unit.model.making import saved

torch = pytest.importorskip("torch")
nn = torch.nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.head = nn.Linear(2, 2)
        self.register_buffer("table", torch.zeros(2))


PARAMETERS = {"conv.weight", "conv.bias", "norm.weight", "norm.bias", "head.weight", "head.bias"}
BUFFERS = {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}


def roles(folder: Path, value: Any) -> dict[str, Role]:
    return {tensor.path: tensor.role for tensor in saved(folder, value).tensors}


def state_dict_roles(prefix: str = "", role: Role | None = None) -> dict[str, Role]:
    """What a state dict's tensors are: a float buffer of no known name passes as a parameter."""
    expected: dict[str, Role] = dict.fromkeys(PARAMETERS | {"table"}, role or "parameter")
    expected |= dict.fromkeys(BUFFERS, role or "buffer")
    return {f"{prefix}{name}": found for name, found in expected.items()}


pytestmark = pytest.mark.torch


def test_plain_state_dict(tmp_path: Path) -> None:
    assert roles(tmp_path, Net().state_dict()) == state_dict_roles()
    assert roles(tmp_path, dict(Net().state_dict())) == state_dict_roles()


@table("name", ["model", "state_dict", "model_state_dict", "net", "netG", "anything at all"])
def test_state_dict_under_a_name(name: str, tmp_path: Path) -> None:
    assert roles(tmp_path, {name: Net().state_dict(), "epoch": 3}) == state_dict_roles(f"{name}/")


def test_training_checkpoint(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    found = roles(
        tmp_path,
        {
            "epoch": 1,
            "model_state_dict": model.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "scheduler_state_dict": {**scheduler.state_dict(), "base": torch.zeros(1)},
            "scaler": {"scale": torch.zeros(1), "growth": 1},
            "rng_state": torch.get_rng_state(),
            "rng_states": {"cpu": torch.get_rng_state(), "cuda": [torch.zeros(16, dtype=torch.uint8)]},
            "loss": torch.zeros(()),
            "ema_state_dict": model.state_dict(),
        },
    )
    slots = {path: role for path, role in found.items() if path.startswith("optimizer_state_dict/")}
    assert len(slots) == 18
    assert set(slots.values()) == {"optimizer"}
    others = {path: role for path, role in found.items() if path not in slots}
    assert others == {
        **state_dict_roles("model_state_dict/"),
        **state_dict_roles("ema_state_dict/", "ema"),
        "scheduler_state_dict/base": "scheduler",
        "scaler/scale": "other",
        "rng_state": "rng",
        "rng_states/cpu": "rng",
        "rng_states/cuda/0": "rng",
        "loss": "other",
    }


@pytest.mark.parametrize("place", ["root", "below"])
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.filterwarnings("ignore:Couldn't retrieve source code:UserWarning")
def test_whole_module_says_what_is_what(place: str, zipped: bool, tmp_path: Path) -> None:
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.Linear(2, 2)))
    module.register_buffer("table", torch.zeros(2))
    value = module if place == "root" else {"model": module, "epoch": 1}
    checkpoint = saved(tmp_path, value, _use_new_zipfile_serialization=zipped)
    found = {tensor.path.rpartition("._")[2]: tensor.role for tensor in checkpoint.tensors}
    assert {role for name, role in found.items() if name.startswith("parameters/")} == {"parameter"}
    assert {role for name, role in found.items() if name.startswith("buffers/")} == {"buffer"}
    assert sum(tensor.role == "buffer" for tensor in checkpoint.tensors) == 4
    assert sum(tensor.role == "parameter" for tensor in checkpoint.tensors) == 6
    assert checkpoint.root == ("module" if place == "root" else "mapping")
    assert checkpoint.module_class == ("torch.nn.modules.container.Sequential" if place == "root" else None)


def test_lightning(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    found = roles(
        tmp_path,
        {
            "epoch": 0,
            "pytorch-lightning_version": "2.4.0",
            "state_dict": OrderedDict((f"model.{name}", value) for name, value in model.state_dict().items()),
            "optimizer_states": [optimizer.state_dict()],
            "lr_schedulers": [{"last": torch.zeros(1)}],
            "callbacks": {
                "EMA": {"weights": torch.zeros(1)},
                "Stop{'mode': 'min'}": {"best": torch.zeros(())},
            },
            "loops": {"fit_loop": {"state_dict": {}}},
        },
    )
    assert found == {
        "state_dict/model.weight": "parameter",
        "state_dict/model.bias": "parameter",
        "optimizer_states/0/state/0/momentum_buffer": "optimizer",
        "optimizer_states/0/state/1/momentum_buffer": "optimizer",
        "lr_schedulers/0/last": "scheduler",
        "callbacks/EMA/weights": "ema",
        "callbacks/Stop{'mode': 'min'}/best": "other",
    }


@table("name", ["ema", "model_ema", "ema_state_dict", "state_dict_ema", "g_ema", "swa_model", "params_ema"])
def test_averaged_weights(name: str, tmp_path: Path) -> None:
    assert set(roles(tmp_path, {name: Net().state_dict(), "x": 1, "y": 2}).values()) == {"ema"}


def test_names_inside_a_model_are_parameters_names(tmp_path: Path) -> None:
    state = {f"{part}.weight": torch.zeros(2) for part in ("ema", "scheduler", "optimizer", "rng_head")}
    assert set(roles(tmp_path, state).values()) == {"parameter"}
    assert set(roles(tmp_path, {"model": {"ema_block": state}, "a": 1}).values()) == {"ema"}


def test_random_states_by_name_and_by_size(tmp_path: Path) -> None:
    cpu, cuda = torch.get_rng_state(), torch.zeros(16, dtype=torch.uint8)
    trainer = {"python": (3, (1, 2), None), "numpy": ("MT19937", 1), "cpu": cpu, "cuda": cuda}
    assert roles(tmp_path, trainer) == {"cpu": "rng", "cuda": "rng"}
    accelerate = {"step": 1, "random_state": (3,), "torch_manual_seed": cpu, "torch_cuda_manual_seed": [cuda]}
    assert roles(tmp_path, accelerate) == {"torch_manual_seed": "rng", "torch_cuda_manual_seed/0": "rng"}
    masks = {"a": cuda, "b": torch.zeros(3, dtype=torch.uint8), "c": torch.zeros(4, 4, dtype=torch.uint8)}
    assert set(roles(tmp_path, masks).values()) == {"buffer"}


def test_few_tensors_among_much_else_are_other(tmp_path: Path) -> None:
    assert roles(tmp_path, {"x": torch.zeros(2), "a": 1, "b": 2}) == {"x": "other"}
    assert roles(tmp_path, [torch.zeros(2), torch.zeros(2)]) == {"0": "other", "1": "other"}
    assert roles(tmp_path, torch.zeros(2)) == {"": "other"}
    assert roles(tmp_path, torch.nn.Parameter(torch.zeros(2))) == {"": "parameter"}
    assert roles(tmp_path, {"a": {0: torch.zeros(2), 1: torch.zeros(2)}}) == {"a/0": "other", "a/1": "other"}
    assert roles(tmp_path, {"weights": {5: torch.zeros(2), "w": torch.zeros(2)}}) == {
        "weights/5": "other",
        "weights/w": "parameter",
    }


@table(
    ("key", "role"),
    [
        ("rng", "rng"),
        ("cuda_rng_state_all", "rng"),
        ("random_state", "rng"),
        ("generator_state", "rng"),
        ("lr_scheduler", "scheduler"),
        ("optimizer", "optimizer"),
        ("optimizerG", "optimizer"),
        ("g_optim", "optimizer"),
        ("optimizer_states", "optimizer"),
        ("optimization", None),
        ("schema", None),
        ("wrong", None),
        ("layers", None),
        (5, None),
    ],
)
def test_roles_that_names_give(key: str | int, role: Role | None) -> None:
    assert role_of_key(key) == role


def test_buffers_of_known_names(tmp_path: Path) -> None:
    """As the modules themselves say; a mask of pruning is as large as its weight, and no parameter."""
    prune = import_module("torch.nn.utils.prune")
    for module in (
        prune.identity(nn.Linear(3, 2), "weight"),
        nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2)),
        nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)),
    ):
        found = roles(tmp_path, module.state_dict())
        assert found == dict.fromkeys(dict(module.named_buffers()), "buffer") | dict.fromkeys(
            dict(module.named_parameters()), "parameter"
        )
    bounds = {"k.raw_scale_constraint.upper_bound": torch.tensor(1.0), "k.raw_scale": torch.zeros(1)}
    assert list(roles(tmp_path, bounds).values()) == ["buffer", "parameter"]
