"""Files of fastai's Learner: saved weights with the optimizer, and exported learners."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fastai.basics import DataLoader, DataLoaders, Learner
from fastai.callback.all import SaveModelCallback
from fastai.data.core import Datasets
from fastai.losses import MSELossFlat
from fastai.optimizer import Adam, OptimWrapper, ranger
from torch import nn

from tests.frameworks.making.table import Out, maker
from tests.frameworks.oracle import Truth, saved_as_if_on


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 6), nn.Linear(6, 1))


def learner(out: Out, model: nn.Module, **options: Any) -> Learner:
    rows = [(torch.randn(4), torch.randn(1)) for _ in range(8)]
    loaders = DataLoaders(DataLoader(rows, bs=4), DataLoader(rows, bs=4), device=torch.device("cpu"))
    return Learner(loaders, model, loss_func=MSELossFlat(), path=out.scratch, **options)


def quiet_fit(one: Learner, rounds: int = 1) -> None:
    with one.no_bar(), one.no_logging():
        one.fit(rounds, 1e-2)


def saved_truth(one: Learner) -> Truth:
    names = {id(item): name for name, item in one.model.named_parameters()}
    truth = Truth().role("other").model(one.model, "model").role("optimizer", "opt")
    for number, item in enumerate(one.opt.all_params()):
        truth.slots[("opt", "state"), str(number)] = names[id(item[0])]
    return truth


@maker("fastai/saved")
def saved(out: Out) -> None:
    one = learner(out, net())
    quiet_fit(one)
    path = one.save("one", with_opt=True)
    out.add(path, "saved_with_opt.pth", saved_truth(one))
    with saved_as_if_on("cuda:0"):
        path = one.save("two", with_opt=True)
    out.add(path, "saved_with_opt_cuda.pth", saved_truth(one))
    path = one.save("three", with_opt=False)
    out.add(path, "saved.pth", Truth().model(one.model))


@maker("fastai/groups")
def groups(out: Out) -> None:
    def halves(model: nn.Module) -> Any:
        return [list(model[:3].parameters()), list(model[3:].parameters())]

    one = learner(out, net(), splitter=halves)
    one.freeze()
    quiet_fit(one)
    out.add(one.save("frozen", with_opt=True), "frozen_groups.pth", saved_truth(one))
    one.unfreeze()
    quiet_fit(one)
    out.add(one.save("unfrozen", with_opt=True), "unfrozen_groups.pth", saved_truth(one))


@maker("fastai/ranger")
def with_ranger(out: Out) -> None:
    one = learner(out, net(), opt_func=ranger, cbs=[SaveModelCallback(monitor="train_loss", fname="best")])
    quiet_fit(one)
    out.add(one.save("ranger", with_opt=True), "ranger.pth", saved_truth(one))


@maker("fastai/wrapped")
def wrapped(out: Out) -> None:
    def adamw(parameters: Any, **options: Any) -> Any:
        return OptimWrapper(parameters, torch.optim.AdamW, **options)

    one = learner(out, net(), opt_func=adamw)
    quiet_fit(one)
    truth = Truth().role("other").model(one.model, "model").optimizer(one.opt.opt, one.model, "opt")
    out.add(one.save("wrapped", with_opt=True), "opt_wrapper.pth", truth)


def inputs_of(number: int) -> torch.Tensor:
    return torch.full((4,), float(number))


def target_of(number: int) -> torch.Tensor:
    return torch.full((1,), float(number))


@maker("fastai/export")
def export(out: Out) -> None:
    np.random.seed(0)  # noqa: NPY002 - fastai asks the old generator
    rows = Datasets(range(8), [[inputs_of], [target_of]])
    one = Learner(rows.dataloaders(bs=4), net(), loss_func=MSELossFlat(), path=out.scratch, opt_func=Adam)
    quiet_fit(one)
    one.export(out.scratch / "export.pkl")
    out.add(out.scratch / "export.pkl", "export.pkl", Truth())
