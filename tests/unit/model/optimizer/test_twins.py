"""Optimizers of models that have one shape: which of them is meant, or that nothing tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from tests.builders.safetensors import model as safetensors
from tests.unit.model.making import saved

torch = pytest.importorskip("torch")


class Net:
    """A network of two layers whose names begin with a prefix, and the state of Adam over it."""

    def __init__(self, prefix: str = "", size: int = 4) -> None:
        self.module = torch.nn.Sequential(torch.nn.Linear(3, size), torch.nn.Linear(size, 2))
        self.state = {prefix + name: tensor for name, tensor in self.module.state_dict().items()}


def adam(*nets: Net) -> Any:
    parameters = [item for net in nets for item in net.module.parameters()]
    optimizer = torch.optim.Adam(parameters)
    for item in parameters:
        item.grad = torch.ones_like(item)
    optimizer.step()
    return optimizer.state_dict()


def named(checkpoint: Checkpoint) -> dict[str, str | None]:
    """What the first slot of each optimizer is said to belong to."""
    rows: dict[str, str | None] = {}
    for row in checkpoint.tensors:
        if row.slot == "exp_avg":
            rows.setdefault(row.path.partition("/state/")[0], row.parameter)
    return rows


def test_the_name_of_an_optimizer_tells_its_model(tmp_path: Path) -> None:
    one, two = Net("g."), Net("d.")
    models = {"netG": one.state, "netD": two.state}
    found = saved(tmp_path, {**models, "optD": adam(two), "optG": adam(one)})
    assert named(found) == {"optD": "d.0.weight", "optG": "g.0.weight"}
    assert [(row.models, row.naming) for row in found.optimizers] == [
        (("netD",), "recipe"),
        (("netG",), "recipe"),
    ]
    models = {"generator": one.state, "discriminator": two.state}
    found = saved(tmp_path, {**models, "opt_d": adam(two), "opt_g": adam(one)})
    assert named(found) == {"opt_d": "d.0.weight", "opt_g": "g.0.weight"}


def test_two_critics_are_told_by_their_numbers(tmp_path: Path) -> None:
    one, two = Net("a."), Net("b.")
    models = {"critic1": one.state, "critic2": two.state}
    found = saved(tmp_path, {**models, "critic2_optimizer": adam(two), "critic1_optimizer": adam(one)})
    assert named(found) == {"critic2_optimizer": "b.0.weight", "critic1_optimizer": "a.0.weight"}


def test_a_student_is_trained_and_its_teacher_follows(tmp_path: Path) -> None:
    one, two = Net("module."), Net()
    found = saved(tmp_path, {"student": one.state, "teacher": two.state, "optimizer": adam(one)})
    assert named(found) == {"optimizer": "module.0.weight"}
    assert found.optimizers[0].models == ("student",)
    found = saved(tmp_path, {"student": one.state, "teacher": two.state, "teacher_opt": adam(two)})
    assert named(found) == {"teacher_opt": "0.weight"}


@pytest.mark.parametrize("names", [("optimizer_0", "optimizer_1"), ("policy_optimizer", "value_optimizer")])
def test_nothing_is_said_where_nothing_tells(tmp_path: Path, names: tuple[str, str]) -> None:
    """Both may train the student; a name that is no model's may say that the order is another."""
    first = "student" if names[0].endswith("0") else "a"
    models = {first: Net("s.").state, "teacher": Net().state}
    found = saved(tmp_path, {**models, **dict.fromkeys(names)} | {name: adam(Net()) for name in names})
    assert set(named(found).values()) == {None}
    assert {row.naming for row in found.optimizers} == {"unknown"}


def test_as_many_optimizers_as_models_are_in_one_order(tmp_path: Path) -> None:
    one, two = Net("a."), Net("b.")
    found = saved(tmp_path, {"x": one.state, "y": two.state, "optimizers": [adam(one), adam(two)]})
    assert named(found) == {"optimizers/0": "a.0.weight", "optimizers/1": "b.0.weight"}
    assert all(row.by_place and row.naming == "recipe" for row in found.optimizers)
    found = saved(tmp_path, {"x": one.state, "y": two.state, "optimizers": [adam(one)]})
    assert named(found) == {"optimizers/0": None}


def test_one_optimizer_over_two_models_is_in_the_order_of_the_file(tmp_path: Path) -> None:
    one, two = Net(), Net()
    models = {"network_fn": one.state, "network_fine": two.state}
    found = saved(tmp_path, {**models, "optimizer": adam(one, two)})
    assert named(found) == {"optimizer": "network_fn.0.weight"}
    assert found.optimizers[0].by_place
    assert found.optimizers[0].naming == "recipe"
    found = saved(tmp_path, {**models, "further": Net().state, "optimizer": adam(one, two)})
    assert named(found) == {"optimizer": None}  # of three models two may be meant


def test_numbered_files_of_accelerate_belong_together(tmp_path: Path) -> None:
    for number in ("", "_1"):
        shapes = {"0.weight": (4, 3), "0.bias": (4,), "1.weight": (2, 4), "1.bias": (2,)}
        (tmp_path / f"model{number}.safetensors").write_bytes(safetensors(**dict(sorted(shapes.items()))))
        torch.save(adam(Net()), tmp_path / f"optimizer{number}.bin")
    found = open_checkpoint(str(tmp_path))
    assert [row.models for row in found.optimizers] == [("model.safetensors",), ("model_1.safetensors",)]
    assert set(named(found).values()) == {"0.weight"}


def test_an_optimizer_of_one_number_is_named_after_it(tmp_path: Path) -> None:
    alpha = Net()
    alpha.module = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(1))])
    rest = {"actor": Net().state, "log_alpha": torch.zeros(1), "alpha_optimizer": adam(alpha)}
    assert named(saved(tmp_path, rest)) == {"alpha_optimizer": "log_alpha"}
    assert named(saved(tmp_path, {**rest, "old": {"log_alpha": torch.zeros(1)}})) == {"alpha_optimizer": None}
    assert named(saved(tmp_path, {**rest, "log_alpha": torch.zeros(2)})) == {"alpha_optimizer": None}
