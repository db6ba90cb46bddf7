"""What plain training loops write with torch and torchvision: averages, whole optimizers, scalers, groups."""

from __future__ import annotations

import io
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn

from tests.frameworks.making.table import Out, maker
from tests.frameworks.oracle import Truth, saved_as_if_on


def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 5), nn.Linear(5, 5)
    )


def stepped(model: nn.Module, optimizer: Any, size: int = 4) -> None:
    model(torch.randn(2, 3, size, size)).square().mean().backward()
    optimizer.step()


@maker("torch/averaged")
def averaged(out: Out) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    average = AveragedModel(model)
    stepped(model, optimizer)
    average.update_parameters(model)
    scheduler = SWALR(optimizer, 0.05)
    state = {
        "model": model.state_dict(),
        "swa_model": average.state_dict(),
        "optimizer": optimizer.state_dict(),
        "swa_scheduler": scheduler.state_dict(),
        "epoch": 4,
    }
    torch.save(state, out.scratch / "swa.pt")
    truth = Truth().role("other").model(model, "model").role("ema", "swa_model")
    out.add(out.scratch / "swa.pt", "swa_model.pt", truth.optimizer(optimizer, model, "optimizer"))
    torch.save(average.state_dict(), out.scratch / "averaged.pt")
    truth = Truth().role("ema")
    out.add(out.scratch / "averaged.pt", "averaged_state.pt", truth)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    ema.update_parameters(model)
    torch.save({"model_ema": ema.state_dict(), "model": model.state_dict()}, out.scratch / "reference.pth")
    truth = Truth().model(model, "model").role("ema", "model_ema")
    out.add(out.scratch / "reference.pth", "torchvision_reference.pth", truth)


def owned(model: nn.Module, *path: str) -> Truth:
    """Claim an optimizer that was saved whole: its parameters are keys, told by their place."""
    truth = Truth().role("optimizer", *path, ".state").role("parameter", *path, ".param_groups")
    for number, (name, _) in enumerate(model.named_parameters()):
        truth.slots[(*path, ".state"), f"Parameter {number}"] = name
    return truth


@maker("torch/objects")
def objects(out: Out) -> None:
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    stepped(model, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer}, out.scratch / "object.pt")
    out.add(out.scratch / "object.pt", "optimizer_object.pt", owned(model, "optimizer").model(model, "model"))
    with saved_as_if_on("cuda:0"):
        torch.save(optimizer, out.scratch / "alone.pt")
    out.add(out.scratch / "alone.pt", "optimizer_alone_cuda.pt", Truth().role("optimizer", ".state"))
    torch.save({"net": model, "opt": optimizer, "sched": torch.optim.lr_scheduler.StepLR(optimizer, 2)},
               out.scratch / "all.pt")  # fmt: skip
    out.add(out.scratch / "all.pt", "all_objects.pt", owned(model, "opt"))


@maker("torch/scaler")
def scaler(out: Out) -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    stepped(model, optimizer)
    keeper = torch.amp.GradScaler("cpu")
    keeper.scale(torch.ones(()))
    state = {
        "model_state_dict": model.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "scaler": keeper.state_dict(),
        "loss": torch.tensor(0.25),
        "rng": {"torch": torch.get_rng_state(), "loader": torch.Generator().get_state()},
    }
    with saved_as_if_on("cuda:0"):
        torch.save(state, out.scratch / "scaler.pt")
    truth = Truth().role("other").model(model, "model_state_dict").role("rng", "rng")
    out.add(
        out.scratch / "scaler.pt", "scaler_cuda.pt", truth.optimizer(optimizer, model, "optimizer_state_dict")
    )


@maker("torch/ways")
def ways(out: Out) -> None:
    """Keep each optimizer of torch that shapes its slots in its own way."""
    kinds = {
        "adagrad": torch.optim.Adagrad,
        "adafactor": torch.optim.Adafactor,
        "lbfgs": torch.optim.LBFGS,
        "rprop": torch.optim.Rprop,
        "asgd": torch.optim.ASGD,
        "nadam": torch.optim.NAdam,
    }
    for name, kind in kinds.items():
        model = net()
        optimizer = kind(model.parameters(), lr=0.01)

        def loss(model: nn.Module = model) -> torch.Tensor:
            value = model(torch.ones(2, 3, 4, 4)).square().mean()
            value.backward()
            return value

        loss()
        optimizer.step(loss)
        path = out.scratch / f"{name}.pt"
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        truth = Truth().role("other").model(model, "model")
        truth.optimizer(optimizer, model, "optimizer")
        if name == "lbfgs":
            truth.slots.clear()  # one state for all parameters, kept at the first
        out.add(path, f"{name}.pt", truth)


@maker("torch/wrapped")
def wrapped(out: Out) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    stepped(model, optimizer)
    compiled = {f"_orig_mod.{name}": item for name, item in model.state_dict().items()}
    torch.save({"model": compiled, "optimizer": optimizer.state_dict()}, out.scratch / "compiled.pt")
    truth = Truth().role("other").model(model, "model", prefix="_orig_mod.")
    truth.optimizer(optimizer, {"_orig_mod": model}, "optimizer")
    out.add(out.scratch / "compiled.pt", "compiled.pt", truth)
    parallel = nn.DataParallel(model)
    torch.save(
        {"state_dict": parallel.state_dict(), "optimizer": optimizer.state_dict()}, out.scratch / "dp.pt"
    )
    truth = Truth().role("other").model(parallel, "state_dict")
    out.add(
        out.scratch / "dp.pt", "data_parallel.pt", truth.optimizer(optimizer, {"module": model}, "optimizer")
    )


@maker("torch/nested")
def nested(out: Out) -> None:
    model = net()
    inner = io.BytesIO()
    torch.save(model.state_dict(), inner)
    old = io.BytesIO()
    torch.save({"w": torch.ones(2, 2)}, old, _use_new_zipfile_serialization=False)
    state = {"model_bytes": inner.getvalue(), "parts": [old.getvalue()], "stream": inner, "epoch": 1}
    torch.save(state, out.scratch / "nested.pt")
    out.add(out.scratch / "nested.pt", "nested_bytes.pt", Truth().role("other"))


@maker("torch/several")
def several(out: Out) -> None:
    first, second = (
        nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(2, 5), nn.Linear(5, 1)),
    )
    both = torch.optim.Adam([*first.parameters(), *second.parameters()])
    second(first(torch.randn(2, 3))).sum().backward()
    both.step()
    state = {"encoder": first.state_dict(), "decoder": second.state_dict(), "optimizer": both.state_dict()}
    torch.save(state, out.scratch / "pair.pt")
    truth = Truth().role("other").model(first, "encoder").model(second, "decoder")
    truth.optimizer(both, {"encoder": first, "decoder": second}, "optimizer")
    out.add(out.scratch / "pair.pt", "encoder_decoder.pt", truth)


@maker("torch/torchvision")
def torchvision_files(out: Out) -> None:
    import torchvision

    model = torchvision.models.MobileNetV3(
        [torchvision.models.mobilenetv3.InvertedResidualConfig(8, 3, 8, 8, True, "RE", 1, 1, 0.25)],
        16,
        num_classes=3,
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
    model(torch.randn(2, 3, 16, 16)).square().mean().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}
    with saved_as_if_on("cuda:0"):
        torch.save(state, out.scratch / "mobilenet.pth")
    truth = Truth().role("other").model(model, "model").optimizer(optimizer, model, "optimizer")
    out.add(out.scratch / "mobilenet.pth", "mobilenet_cuda.pth", truth)
