"""Files of ultralytics' trainers: best.pt and last.pt as training writes them, and as it strips them."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import torch
from ultralytics.engine.trainer import BaseTrainer
from ultralytics.nn.tasks import ClassificationModel, DetectionModel
from ultralytics.utils import DEFAULT_CFG_DICT
from ultralytics.utils.torch_utils import ModelEMA, strip_optimizer

from tests.frameworks.making.table import Out, maker
from tests.frameworks.oracle import Truth, saved_as_if_on

DETECT = {
    "nc": 2,
    "backbone": [[-1, 1, "Conv", [4, 3, 2]], [-1, 1, "Conv", [8, 3, 2]], [-1, 1, "C2f", [8, True]]],
    "head": [[[2], 1, "Detect", ["nc"]]],
}
CLASSIFY = {"nc": 3, "backbone": [[-1, 1, "Conv", [4, 3, 2]]], "head": [[-1, 1, "Classify", ["nc"]]]}


class Recipe(BaseTrainer):
    """The trainer's way of filling the optimizer's groups, without its data."""

    def __init__(self) -> None:
        self.args = SimpleNamespace(warmup_bias_lr=0.1, lr0=0.01, momentum=0.9)
        self.data = {"nc": 2}


def trained(model: Any, name: str = "SGD") -> tuple[Any, Any]:
    optimizer = Recipe().build_optimizer(model, name=name, lr=0.01, momentum=0.9, decay=5e-4)
    ema = ModelEMA(model)
    model.train()
    answer = model(torch.randn(2, 3, 64, 64))
    flat = _flat(answer)
    sum(item.float().square().mean() for item in flat).backward()
    optimizer.step()
    ema.update(model)
    return optimizer, ema


def _flat(answer: Any) -> list[torch.Tensor]:
    if isinstance(answer, torch.Tensor):
        return [answer]
    parts = answer.values() if isinstance(answer, dict) else answer
    return [item for part in parts for item in _flat(part) if item.requires_grad]


def save(out: Out, optimizer: Any, ema: Any, model: Any, name: str, device: str = "cpu") -> None:
    """Write what `BaseTrainer.save_model` writes."""
    from ultralytics.utils.torch_utils import convert_optimizer_state_dict_to_fp16

    state = {
        "epoch": 1,
        "best_fitness": 0.5,
        "model": None,
        "ema": deepcopy(ema.ema).half(),
        "updates": ema.updates,
        "optimizer": convert_optimizer_state_dict_to_fp16(deepcopy(optimizer.state_dict())),
        "scaler": torch.amp.GradScaler("cpu").state_dict(),
        "train_args": dict(DEFAULT_CFG_DICT),
        "date": "2025-01-01T00:00:00",
        "version": "8",
    }
    path = out.scratch / "last.pt"
    with saved_as_if_on(device):
        torch.save(state, path)
    out.add(path, name, Truth().role("other").role("ema", "ema").optimizer(optimizer, model, "optimizer"))


@maker("ultralytics/detect")
def detect(out: Out) -> None:
    model = DetectionModel(DETECT, ch=3, nc=2, verbose=False)
    optimizer, ema = trained(model)
    save(out, optimizer, ema, model, "detect_last.pt")
    save(out, optimizer, ema, model, "detect_last_cuda.pt", "cuda:0")
    strip_optimizer(out.scratch / "last.pt", out.scratch / "best.pt")
    out.add(out.scratch / "best.pt", "detect_best.pt", Truth())


@maker("ultralytics/classify")
def classify(out: Out) -> None:
    model = ClassificationModel(CLASSIFY, ch=3, nc=3, verbose=False)
    optimizer, ema = trained(model, "AdamW")
    save(out, optimizer, ema, model, "classify_last.pt")
    torch.save({"model": model, "ema": None, "epoch": -1, "optimizer": None}, out.scratch / "plain.pt")
    out.add(out.scratch / "plain.pt", "classify_model.pt", Truth())
    torch.save(model.state_dict(), out.scratch / "state.pt")
    out.add(out.scratch / "state.pt", "classify_state.pt", Truth().model(model))
