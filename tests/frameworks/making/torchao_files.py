"""Quantized weights of torchao, and those of torch's own quantization."""

from __future__ import annotations

import torch
from torch import nn
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    quantize_,
)

from tests.frameworks.making.table import Out, maker
from tests.frameworks.oracle import Truth, saved_as_if_on


def net(dtype: torch.dtype = torch.float32) -> nn.Module:
    return nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 8)).to(dtype)


@maker("torchao/weight_only")
def weight_only(out: Out) -> None:
    configs = {
        "int8_weight_only": Int8WeightOnlyConfig(),
        "int8_dynamic": Int8DynamicActivationInt8WeightConfig(),
        "float8_weight_only": Float8WeightOnlyConfig(),
    }
    for name, config in configs.items():
        model = net(torch.bfloat16)
        quantize_(model, config)
        torch.save(model.state_dict(), out.scratch / f"{name}.pt")
        out.add(out.scratch / f"{name}.pt", f"{name}.pt", Truth().model(model))


@maker("torchao/optimizer")
def low_bit(out: Out) -> None:
    from torchao.optim import AdamW4bit, AdamW8bit

    for name, kind in (("adamw8bit", AdamW8bit), ("adamw4bit", AdamW4bit)):
        model = nn.Sequential(nn.Linear(64, 128), nn.Linear(128, 3))
        optimizer = kind(model.parameters())
        model(torch.randn(2, 64)).square().mean().backward()
        optimizer.step()
        path = out.scratch / f"{name}.pt"
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        truth = Truth().role("other").model(model, "model").optimizer(optimizer, model, "optimizer")
        out.add(path, f"{name}.pt", truth)


@maker("torchao/packed")
def packed(out: Out) -> None:
    """Keep the packed weights of torch's own quantization."""
    model = torch.ao.quantization.quantize_dynamic(
        nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2)), {nn.Linear}, dtype=torch.qint8
    )
    path = out.scratch / "dynamic.pt"
    torch.save(model.state_dict(), path)
    out.add(path, "dynamic_int8.pt", Truth())
    with saved_as_if_on("cuda:0"):
        torch.save(model, path)
    out.add(path, "dynamic_int8_whole.pt", Truth())
