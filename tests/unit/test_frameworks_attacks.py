"""Files that make a role or the name of a slot a lie where anything is guessed too boldly."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint

torch = pytest.importorskip("torch")


def mlp(*sizes: int) -> Any:
    return torch.nn.Sequential(*(torch.nn.Linear(*pair) for pair in itertools.pairwise(sizes)))


def stepped(model: Any, parameters: Any, kind: Any = None) -> Any:
    optimizer = (kind or torch.optim.Adam)(parameters, lr=0.1)
    model(torch.ones(2, next(model.parameters()).shape[1])).sum().backward()
    optimizer.step()
    return optimizer


def opened(folder: Path, state: Any) -> Checkpoint:
    torch.save(state, folder / "file.pt")
    return open_checkpoint(str(folder / "file.pt"))


def said(checkpoint: Checkpoint, optimizer: str = "optimizer") -> dict[Any, str | None]:
    slots = (tensor for tensor in checkpoint.tensors if tensor.slot == "exp_avg")
    return {tensor.keys[-2]: tensor.parameter for tensor in slots if tensor.path.startswith(optimizer)}


def test_two_models_of_equal_shapes_and_their_optimizers_crosswise(tmp_path: Path) -> None:
    first, second = mlp(4, 8, 4), mlp(4, 8, 4)
    state = {
        "generator": first.state_dict(),
        "discriminator": second.state_dict(),
        "optimizer_a": stepped(second, second.parameters()).state_dict(),
        "optimizer_b": stepped(first, first.parameters()).state_dict(),
    }
    checkpoint = opened(tmp_path, state)
    for optimizer in ("optimizer_a", "optimizer_b"):
        named = [name for name in said(checkpoint, optimizer).values() if name is not None]
        assert all(name in dict(first.named_parameters()) for name in named)
    for row in checkpoint.optimizers:
        assert row.naming == "unknown" or row.models in {("generator",), ("discriminator",)}


def test_optimizer_of_a_model_that_is_not_in_the_file(tmp_path: Path) -> None:
    for sizes in ((3, 9, 5), (4, 8, 5), (8, 4, 8)):
        other = mlp(*sizes)
        optimizer = stepped(other, other.parameters())
        checkpoint = opened(
            tmp_path, {"model": mlp(4, 8, 4).state_dict(), "optimizer": optimizer.state_dict()}
        )
        assert set(said(checkpoint).values()) == {None}, sizes


def test_names_in_another_order_than_the_models(tmp_path: Path) -> None:
    model = mlp(4, 8, 8, 8, 2)
    optimizer = stepped(model, model.parameters())
    truth = dict(enumerate(name for name, _ in model.named_parameters()))
    for seed in range(12):
        names = list(model.state_dict())
        random.Random(seed).shuffle(names)
        state = {name: model.state_dict()[name] for name in names}
        found = said(opened(tmp_path, {"model": state, "optimizer": optimizer.state_dict()}))
        wrong = {number: name for number, name in found.items() if name not in {None, truth[number]}}
        assert wrong == {}, seed


def test_averages_alone_and_beside(tmp_path: Path) -> None:
    model = mlp(4, 8, 2)
    optimizer = stepped(model, model.parameters())
    names = [name for name, _ in model.named_parameters()]
    alone = opened(tmp_path, {"model_ema": model.state_dict(), "optimizer": optimizer.state_dict()})
    assert {tensor.role for tensor in alone.tensors} == {"ema", "optimizer"}
    assert list(said(alone).values()) == names
    smaller = mlp(4, 2)
    state = {"model": smaller.state_dict(), "ema": model.state_dict(), "optimizer": optimizer.state_dict()}
    beside = opened(tmp_path, state)
    assert set(said(beside).values()) == {None}


def test_objects_that_only_look_like_optimizers(tmp_path: Path) -> None:
    rows = [{"exp_avg": torch.ones(8, 4)}, {"exp_avg": torch.ones(8)}]
    model = mlp(4, 8).state_dict()
    for lookalike in (
        {"state": rows, "hypers": None, "extra": torch.ones(3)},
        {"state": torch.ones(3), "param_groups": torch.ones(2)},
        {"state": rows, "param_groups": "none"},
        {"state": {0: torch.ones(8, 4)}, "param_groups": [{"params": [[], {}]}]},
        {"state": [], "hypers": []},
    ):
        checkpoint = opened(tmp_path, {"model": model, "optimizer": lookalike})
        assert {tensor.role for tensor in checkpoint.tensors if tensor.path.startswith("model/")} == {
            "parameter"
        }
        assert {tensor.parameter for tensor in checkpoint.tensors} <= {None, "0.weight", "0.bias"}


def test_scores_with_names_of_weights_are_no_model(tmp_path: Path) -> None:
    scores = {"layer.weight": torch.tensor(0.1), "layer.bias": torch.tensor(0.2)}
    checkpoint = opened(tmp_path, {"importance": scores, "model": mlp(2, 2).state_dict()})
    roles = {tensor.path: tensor.role for tensor in checkpoint.tensors}
    assert roles["importance/layer.weight"] == "other"
    assert roles["model/0.weight"] == "parameter"
