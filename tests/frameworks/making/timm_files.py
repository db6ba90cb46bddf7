"""Files of timm's training script: models, its saver, its averages and its groups."""

from __future__ import annotations

import argparse
from collections import OrderedDict
from typing import Any

import timm
import torch
from timm.optim import create_optimizer_v2
from timm.utils import CheckpointSaver, ModelEmaV2, ModelEmaV3
from torch import nn

from tests.frameworks.making.table import Out, maker
from tests.frameworks.oracle import Truth, saved_as_if_on


def vit() -> nn.Module:
    return timm.create_model(
        "vit_tiny_patch16_224", img_size=16, patch_size=8, embed_dim=8, depth=2, num_heads=2, num_classes=5
    )


def resnet() -> nn.Module:
    from timm.models.resnet import BasicBlock, ResNet

    return ResNet(BasicBlock, (1, 1, 1, 1), num_classes=5, channels=(2, 3, 4, 5), stem_width=2)


def convnext() -> nn.Module:
    from timm.models.convnext import ConvNeXt

    return ConvNeXt(depths=(1, 1, 1, 1), dims=(2, 3, 4, 5), num_classes=5)


def step(model: nn.Module, optimizer: Any, size: int = 32) -> None:
    model(torch.randn(2, 3, size, size)).square().mean().backward()
    optimizer.step()


def saved(
    out: Out,
    model: nn.Module,
    optimizer: Any,
    name: str,
    ema: Any = None,
    device: str = "",
    scaler: Any = None,
) -> None:
    """Save as `train.py` does, through the saver."""
    arguments = argparse.Namespace(model="tiny", lr=1e-3, opt="adamw", weight_decay=0.05)
    saver = CheckpointSaver(
        model, optimizer, arguments, model_ema=ema, amp_scaler=scaler, checkpoint_dir=str(out.scratch),
        recovery_dir=str(out.scratch),
    )  # fmt: skip
    with saved_as_if_on(device or "cpu"):
        saver.save_checkpoint(1, metric=12.5)
    truth = Truth().role("other").model(model, "state_dict").optimizer(optimizer, model, "optimizer")
    if ema is not None:
        truth.role("ema", "state_dict_ema")
    out.add(out.scratch / "last.pth.tar", name, truth)


@maker("timm/vit")
def vit_files(out: Out) -> None:
    model = vit()
    optimizer = create_optimizer_v2(model, opt="adamw", weight_decay=0.05)
    step(model, optimizer, 16)
    saved(out, model, optimizer, "vit_decay.pth.tar")
    saved(out, model, optimizer, "vit_decay_cuda.pth.tar", device="cuda:0")
    model = vit()
    optimizer = create_optimizer_v2(model, opt="adamw", weight_decay=0.05, layer_decay=0.7)
    step(model, optimizer, 16)
    saved(out, model, optimizer, "vit_layer_decay.pth.tar")


@maker("timm/resnet_ema")
def resnet_ema(out: Out) -> None:
    model = resnet()
    ema = ModelEmaV3(model, decay=0.9)
    optimizer = create_optimizer_v2(model, opt="sgd", momentum=0.9, weight_decay=1e-4)
    step(model, optimizer)
    ema.update(model)
    saved(out, model, optimizer, "resnet_ema.pth.tar", ema)
    saved(out, model, optimizer, "resnet_ema_cuda.pth.tar", ema, "cuda:0")


@maker("timm/convnext")
def convnext_files(out: Out) -> None:
    model = convnext()
    optimizer = create_optimizer_v2(model, opt="rmsproptf", momentum=0.9, weight_decay=1e-4)
    step(model, optimizer)
    saved(out, model, optimizer, "convnext_rmsprop.pth.tar", ModelEmaV2(model))
    model = convnext()
    optimizer = create_optimizer_v2(model, opt="lamb", weight_decay=1e-4)
    step(model, optimizer)
    saved(out, model, optimizer, "convnext_lamb.pth.tar")


@maker("timm/whole")
def whole(out: Out) -> None:
    torch.save(resnet(), out.scratch / "whole.pt")
    out.add(out.scratch / "whole.pt", "resnet_whole.pt", Truth())
    model = resnet()
    only = {"state_dict_ema": OrderedDict(model.state_dict()), "epoch": 3}
    torch.save(only, out.scratch / "ema.pt")
    out.add(out.scratch / "ema.pt", "ema_only.pt", Truth().role("other").role("ema", "state_dict_ema"))
    torch.save(model.state_dict(), out.scratch / "plain.pth")
    out.add(out.scratch / "plain.pth", "resnet.pth", Truth().model(model))
