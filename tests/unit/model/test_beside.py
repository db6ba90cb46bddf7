"""The model beside an optimizer's own file: which file is taken, and what of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import CancelledError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.beside import read_models_beside
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.records import replace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def states() -> tuple[dict[str, Any], dict[str, Any]]:
    """The state dicts of a model and its optimizer."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return model.state_dict(), optimizer.state_dict()


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(str(path), beside=True)


def names(checkpoint: Checkpoint) -> set[str | None]:
    return {tensor.parameter for tensor in checkpoint.tensors}


@pytest.mark.parametrize(
    ("optimizer", "model"),
    [
        ("optimizer.pt", "pytorch_model.bin"),
        ("optimizer.pt", "model.pt"),
        ("optim_12.pth", "model_12.pth"),
        ("best-opt.pth", "best.pth"),
        ("run.optimizer.ckpt", "run.model.pt"),
        ("Optimizer.bin", "adapter_model.bin"),
    ],
)
def test_slots_get_names_from_the_model_beside(
    tmp_path: Path, states: tuple[Any, Any], optimizer: str, model: str
) -> None:
    torch.save(states[1], tmp_path / optimizer)
    assert names(opened(tmp_path / optimizer)) == {None}
    torch.save(states[0], tmp_path / model)
    found = opened(tmp_path / optimizer)
    assert names(found) == set(states[0])
    (row,) = found.optimizers
    assert (row.naming, row.models) == ("order", ())
    assert row.detail == f"Count, order and shapes agree with {model}."
    assert names(open_checkpoint(str(tmp_path / optimizer))) == {None}


def test_file_that_is_not_named_after_an_optimizer_asks_nobody(
    tmp_path: Path, states: tuple[Any, Any]
) -> None:
    torch.save(states[0], tmp_path / "model.pt")
    torch.save(states[1], tmp_path / "adoption.pt")
    assert names(opened(tmp_path / "adoption.pt")) == {None}


def test_own_model_comes_first(tmp_path: Path, states: tuple[Any, Any]) -> None:
    torch.save({"net." + name: value for name, value in states[0].items()}, tmp_path / "model.pt")
    torch.save({"model": states[0], "optimizer": states[1]}, tmp_path / "optimizer.pt")
    assert names(opened(tmp_path / "optimizer.pt")) == {None, *states[0]}


def test_what_cannot_be_read_or_holds_no_model_is_passed_over(
    tmp_path: Path, states: tuple[Any, Any]
) -> None:
    torch.save(states[1], tmp_path / "optimizer.pt")
    (tmp_path / "model.pt").write_bytes(b"PK\3\4 no zip")
    (tmp_path / "model.pth").mkdir()
    torch.save({"epoch": 3}, tmp_path / "net.pt")
    os.mkfifo(tmp_path / "weights.pt")
    assert names(opened(tmp_path / "optimizer.pt")) == {None}
    torch.save({"module": {"sd": states[0]}}, tmp_path / "pytorch_model.bin")
    found = opened(tmp_path / "optimizer.pt")
    assert names(found) == set(states[0])
    assert "agree with module/sd of pytorch_model.bin." in found.optimizers[0].detail


def test_the_other_file_has_bounds_of_its_own(tmp_path: Path, states: tuple[Any, Any]) -> None:
    torch.save(states[0], tmp_path / "model.pt")
    path = str(tmp_path / "optimizer.pt")
    spent = DEFAULT_LIMITS.started()
    spent.work.parts = spent.parts + 1
    assert len(read_models_beside(path, spent, Progress())) == 1
    assert read_models_beside(path, replace(DEFAULT_LIMITS, rows=1), Progress()) == []
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        read_models_beside(path, DEFAULT_LIMITS, progress)
