"""Checkpoints that Lightning's Trainer writes."""

from __future__ import annotations

import logging
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import (
    EarlyStopping,
    ModelCheckpoint,
    StochasticWeightAveraging,
    WeightAveraging,
)
from torch import nn
from torch.optim.swa_utils import get_ema_avg_fn

from tests.frameworks.making.table import Out, maker
from tests.frameworks.oracle import Truth, saved_as_if_on

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 6), nn.Linear(6, 2))


class Lit(pl.LightningModule):
    """A module with one optimizer; what differs is handed over as a function of the module."""

    def __init__(self, optimizers: Any = None, net: Any = None, manual: bool = False) -> None:
        super().__init__()
        self.net = net or Net()
        self.optimizers_of = optimizers or (lambda lit: torch.optim.Adam(lit.parameters()))
        self.automatic_optimization = not manual

    def configure_optimizers(self) -> Any:
        return self.optimizers_of(self)

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        loss = self.net(batch).square().mean()
        self.log("loss", loss)
        if not self.automatic_optimization:
            for optimizer in self.optimizers():
                optimizer.zero_grad()
            self.manual_backward(loss)
            for optimizer in self.optimizers():
                optimizer.step()
        return loss

    def validation_step(self, batch: Any, _: int) -> None:
        self.log("val_loss", self.net(batch).square().mean())


def trained(lit: pl.LightningModule, out: Out, callbacks: Any = (), **options: Any) -> pl.Trainer:
    options = {"max_steps": 3, "limit_val_batches": 1, **options}
    trainer = pl.Trainer(
        accelerator="cpu",
        callbacks=list(callbacks),
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=out.scratch,
        enable_checkpointing=any(isinstance(one, ModelCheckpoint) for one in callbacks),
        **options,
    )
    data = torch.utils.data.DataLoader(torch.randn(12, 4), batch_size=4)
    trainer.fit(lit, data, data)
    return trainer


def save(out: Out, trainer: pl.Trainer, name: str, *, device: str = "", weights_only: bool = False) -> Truth:
    path = out.scratch / "saved.ckpt"
    if device:
        with saved_as_if_on(device):
            trainer.save_checkpoint(path, weights_only=weights_only)
    else:
        trainer.save_checkpoint(path, weights_only=weights_only)
    lit = trainer.lightning_module
    truth = Truth().role("other").model(lit, "state_dict")
    for number, optimizer in enumerate(() if weights_only else trainer.optimizers):
        truth.optimizer(optimizer, lit, "optimizer_states", number)
    out.add(path, name, truth)
    return truth


@maker("lightning/fit")
def fit(out: Out) -> None:
    trainer = trained(Lit(), out)
    save(out, trainer, "fit.ckpt")
    save(out, trainer, "fit_cuda.ckpt", device="cuda:0")
    save(out, trainer, "weights_only.ckpt", weights_only=True)


@maker("lightning/callbacks")
def callbacks(out: Out) -> None:
    watch = [
        ModelCheckpoint(dirpath=out.scratch / "best", monitor="val_loss", save_top_k=2, save_last=True),
        ModelCheckpoint(dirpath=out.scratch / "step", every_n_train_steps=1, save_top_k=-1),
        EarlyStopping("val_loss"),
    ]
    trainer = trained(Lit(), out, watch, max_steps=6, max_epochs=2)
    save(out, trainer, "callbacks.ckpt")
    save(out, trainer, "callbacks_cuda.ckpt", device="cuda:1")


@maker("lightning/swa")
def swa(out: Out) -> None:
    trainer = trained(
        Lit(), out, [StochasticWeightAveraging(1e-2, swa_epoch_start=1)], max_steps=-1, max_epochs=3
    )
    path = out.scratch / "swa.ckpt"
    trainer.save_checkpoint(path)
    lit = trainer.lightning_module
    truth = (
        Truth()
        .role("other")
        .model(lit, "state_dict")
        .optimizer(trainer.optimizers[0], lit, "optimizer_states", 0)
    )
    truth.role("ema", "callbacks", "StochasticWeightAveraging", "average_model_state")
    out.add(path, "swa.ckpt", truth)


@maker("lightning/ema")
def ema(out: Out) -> None:
    averaging = WeightAveraging(avg_fn=get_ema_avg_fn(0.9), use_buffers=True)
    trainer = trained(Lit(), out, [averaging], max_epochs=2, max_steps=-1)
    path = out.scratch / "ema.ckpt"
    trainer.save_checkpoint(path)
    lit = trainer.lightning_module
    truth = Truth().role("other").role("ema", "averaging_state").role("ema", "current_model_state")
    # What is under `state_dict` is the average, and the trained weights stand in `current_model_state`.
    truth.model(lit, "state_dict").model(lit, "current_model_state").optimizer(
        trainer.optimizers[0], lit, "optimizer_states", 0
    )
    out.add(path, "ema.ckpt", truth)


@maker("lightning/hparams")
def hparams(out: Out) -> None:
    class WithParts(Lit):
        def __init__(self, backbone: nn.Module, loss: nn.Module, width: int = 3) -> None:
            super().__init__(net=backbone)
            self.save_hyperparameters()

    WithParts.__module__, WithParts.__qualname__ = "__main__", "WithParts"
    trainer = trained(WithParts(Net(), nn.CrossEntropyLoss(weight=torch.ones(2))), out)
    lit = trainer.lightning_module
    path = out.scratch / "hparams.ckpt"
    trainer.save_checkpoint(path)
    truth = Truth().model(lit, "state_dict").optimizer(trainer.optimizers[0], lit, "optimizer_states", 0)
    out.add(path, "hparams.ckpt", truth)


@maker("lightning/optimizers")
def optimizers(out: Out) -> None:
    def two(lit: Any) -> Any:
        first = [*lit.net[0].parameters(), *lit.net[1].parameters()]
        rest = [*lit.net[3].parameters(), *lit.net[4].parameters()]
        return [torch.optim.Adam(first), torch.optim.SGD(rest, 0.1, 0.9)]

    save(out, trained(Lit(two, manual=True), out), "two_optimizers.ckpt")

    def decay(lit: Any) -> Any:
        parts = list(lit.named_parameters())
        return torch.optim.AdamW(
            [
                {"params": [item for _, item in parts if item.ndim > 1], "weight_decay": 0.1},
                {"params": [item for _, item in parts if item.ndim < 2], "weight_decay": 0.0},
            ]
        )

    save(out, trained(Lit(decay), out), "decay.ckpt")

    def scheduled(lit: Any) -> Any:
        optimizer = torch.optim.SGD(lit.parameters(), 0.1, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)]

    save(out, trained(Lit(scheduled), out), "scheduler.ckpt")

    def named(lit: Any) -> Any:
        return torch.optim.AdamW(lit.named_parameters())

    save(out, trained(Lit(named), out), "named.ckpt")


@maker("lightning/frozen")
def frozen(out: Out) -> None:
    lit = Lit(lambda one: torch.optim.Adam([p for p in one.parameters() if p.requires_grad]))
    for parameter in lit.net[0].parameters():
        parameter.requires_grad_(False)
    save(out, trained(lit, out), "frozen.ckpt")


@maker("lightning/gan")
def gan(out: Out) -> None:
    class Gan(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False
            self.generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
            self.discriminator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))

        def configure_optimizers(self) -> Any:
            return [
                torch.optim.Adam(self.generator.parameters()),
                torch.optim.Adam(self.discriminator.parameters()),
            ]

        def training_step(self, batch: Any, _: int) -> None:
            for optimizer in self.optimizers():
                optimizer.zero_grad()
                self.manual_backward(self.discriminator(self.generator(batch)).square().mean())
                optimizer.step()

    trainer = trained(Gan(), out, limit_val_batches=0)
    save(out, trainer, "gan.ckpt")


@maker("lightning/fabric")
def fabric(out: Out) -> None:
    from lightning.fabric import Fabric

    runner = Fabric(accelerator="cpu")
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters())
    model, wrapped = runner.setup(net, optimizer)
    runner.backward(model(torch.randn(3, 4)).square().mean())
    wrapped.step()
    runner.save(out.scratch / "fabric.ckpt", {"model": model, "optimizer": wrapped, "step": 3})
    truth = Truth().role("other").model(net, "model").optimizer(optimizer, net, "optimizer")
    out.add(out.scratch / "fabric.ckpt", "fabric.ckpt", truth)
