"""Optimizers that leave out whole layers: named where one way is left, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.model.optimizer import recipes as layers
from inspector.model.optimizer.parameters import Parameters, Shape
from inspector.model.optimizer.recipes import names_of_layers
from tests.sweep import table
from tests.unit.model.making import saved

torch = pytest.importorskip("torch")

W, V, B = (6, 4), (6, 6), (6,)
MODEL = [("a.weight", W), ("a.bias", B), ("n.weight", B), ("n.bias", B), ("b.weight", V), ("b.bias", B)]


def named(*groups: list[Shape | None], classes: Any = None, budget: int = 10_000) -> list[str] | None:
    model = Parameters("m", [name for name, _ in MODEL], [shape for _, shape in MODEL])
    ids, shapes, left = [], {}, [budget]
    for number, group in enumerate(groups):
        ids.append([(number, place) for place in range(len(group))])
        shapes |= {key: shape for key, shape in zip(ids[-1], group, strict=True) if shape is not None}

    def spend(parts: int) -> bool:
        left[0] -= parts
        return left[0] >= 0

    found = names_of_layers(ids, shapes, classes or [range(6)], model, spend)
    return None if found is None else [found[key] for group in ids for key in group]


@table(
    ("group", "names"),
    [
        ([B, B, V, B], ["n.weight", "n.bias", "b.weight", "b.bias"]),  # the first layer is frozen
        ([W, B, B, B], ["a.weight", "a.bias", "n.weight", "n.bias"]),  # the last one is
        ([V, B], ["b.weight", "b.bias"]),
        ([V, None], ["b.weight", "b.bias"]),
        ([B, B], ["n.weight", "n.bias"]),
        ([W, B, V, B], None),  # biases of three layers could stand there
        ([B, B, B, B], None),  # only biases and norms: no whole layer
        ([B], None),
        ([V, V], None),
        ([(9,)], None),
    ],
)
def test_one_group(group: list[Shape | None], names: list[str] | None) -> None:
    assert named(group) == names


def test_groups_decide_for_each_other() -> None:
    classes = [[0, 4], [1, 2, 3, 5]]
    assert named([V], [B, B, B], classes=classes) == ["b.weight", "n.weight", "n.bias", "b.bias"]
    assert named([W, V], [B, B, B], classes=classes) is None


def test_what_costs_too_much_is_left() -> None:
    group = [B, B, V, B]
    assert named(group, budget=42) is not None
    for budget in range(42):
        assert named(group, budget=budget) is None, budget


def test_rounds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "_MOST_ROUNDS", 1)
    assert named([B, B, V, B]) is None


class Net(torch.nn.Sequential):
    def __init__(self) -> None:
        wide = [torch.nn.Linear(6, 6), torch.nn.BatchNorm1d(6)]
        super().__init__(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), *wide, torch.nn.Linear(6, 2))


def said(folder: Path, model: Any, groups: Any) -> tuple[str, list[tuple[str | None, str]]]:
    """Return the naming, and what is said of each parameter beside its true name."""
    optimizer = torch.optim.Adam(groups)
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    truth = {id(item): name for name, item in model.named_parameters()}
    names = [truth[id(item)] for group in optimizer.param_groups for item in group["params"]]
    checkpoint = saved(folder, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    slots = {tensor.keys[2]: tensor.parameter for tensor in checkpoint.tensors if tensor.slot == "exp_avg"}
    return checkpoint.optimizers[0].naming, [(slots[place], name) for place, name in enumerate(names)]


def test_frozen_front_is_named_in_one_group_and_in_two(tmp_path: Path) -> None:
    model = Net()
    for item in model[0].parameters():
        item.requires_grad_(requires_grad=False)
    naming, found = said(tmp_path, model, [item for item in model.parameters() if item.requires_grad])
    assert naming == "recipe"
    assert all(name == truth for name, truth in found)
    left = [item for item in model.parameters() if item.requires_grad]
    groups = [{"params": [item for item in left if (item.ndim > 1) == wide]} for wide in (True, False)]
    for order in (groups, groups[::-1]):
        naming, found = said(tmp_path, model, [dict(group) for group in order])
        assert naming == "recipe"
        assert all(name == truth for name, truth in found)


@table("kept", ["bias", "norm", "odd", "middle"])
def test_other_choices_are_never_named_wrongly(kept: str, tmp_path: Path) -> None:
    model = Net()
    items = dict(model.named_parameters())
    chosen = {
        "bias": [name for name in items if name.endswith("bias")],
        "norm": [name for name in items if name[0] in "13"],
        "odd": ["0.bias", "1.weight", "2.weight", "4.bias"],
        "middle": ["1.bias", "2.weight", "2.bias", "3.weight"],
    }[kept]
    _, found = said(tmp_path, model, [items[name] for name in chosen])
    assert [pair for pair in found if pair[0] not in {None, pair[1]}] == []
