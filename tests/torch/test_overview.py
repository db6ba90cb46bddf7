"""Optimizers and schedulers are told by the options that torch itself writes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.optim import lr_scheduler as rates
from torch.optim.swa_utils import SWALR

from inspector.model.build import open_checkpoint
from inspector.report.overview import overview_of

CLOSURE_WANTED = {"LBFGS"}
OPTIMIZERS = (
    *(
        "ASGD",
        "Adadelta",
        "Adafactor",
        "Adagrad",
        "Adam",
        "AdamW",
        "Adamax",
        "LBFGS",
        "Muon",
        "NAdam",
        "RAdam",
    ),
    *("RMSprop", "Rprop", "SGD"),
)
SCHEDULERS = {
    "StepLR": lambda one: rates.StepLR(one, 3),
    "MultiStepLR": lambda one: rates.MultiStepLR(one, [3, 5]),
    "ExponentialLR": lambda one: rates.ExponentialLR(one, 0.9),
    "CosineAnnealingLR": lambda one: rates.CosineAnnealingLR(one, 9),
    "CosineAnnealingWarmRestarts": lambda one: rates.CosineAnnealingWarmRestarts(one, 9),
    "OneCycleLR": lambda one: rates.OneCycleLR(one, 0.1, total_steps=9),
    "CyclicLR": lambda one: rates.CyclicLR(one, 0.1, 0.2),
    "ReduceLROnPlateau": rates.ReduceLROnPlateau,
    "LinearLR": rates.LinearLR,
    "ConstantLR": rates.ConstantLR,
    "PolynomialLR": rates.PolynomialLR,
    "LambdaLR": lambda one: rates.LambdaLR(one, lambda _: 1),
    "MultiplicativeLR": lambda one: rates.MultiplicativeLR(one, lambda _: 1),
    "SequentialLR": lambda one: rates.SequentialLR(one, [rates.ConstantLR(one), rates.StepLR(one, 2)], [3]),
    "SWALR": lambda one: SWALR(one, 0.1),
}


def said(folder: Path, caption: str, **objects: object) -> str:
    path = folder / "run.pt"
    torch.save({name: one.state_dict() for name, one in objects.items()}, path)
    groups = overview_of(open_checkpoint(str(path))).groups
    return next(line.text for group in groups for line in group.lines if line.caption == caption)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_is_told_by_its_options(tmp_path, name):
    layer = torch.nn.Linear(4, 4, bias=False)
    one = getattr(torch.optim, name)(layer.parameters(), lr=0.25)

    def loss() -> torch.Tensor:
        return layer(torch.ones(1, 4)).sum()

    loss().backward()
    one.step(loss if name in CLOSURE_WANTED else None)
    assert said(tmp_path, "Optimizer", optimizer=one) == f"{name}, learning rate 0.25"


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_is_told_by_its_keys(tmp_path, name):
    layer = torch.nn.Linear(4, 4)
    one = SCHEDULERS[name](torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9))
    kind, _, step = said(tmp_path, "Scheduler", scheduler=one).partition(", ")
    assert name in kind.split(" or ")
    assert step == "at its step 0"
