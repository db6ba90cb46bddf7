"""Makes the checkpoints that are measured: `python make_files.py KIND OUT`, in a process of its own.

Every tensor is saved from the same 64 MB of random bytes, so that a file of 10 GB takes no memory; and the
location tags are written as a GPU would have them, by the means of the demo checkpoint's script.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import torch

DEMO_SCRIPT = Path(__file__).parents[1] / "resources" / "demo" / "make_demo.py"
PARAMETERS = 100
GIGABYTE = 1_000_000_000


def training_run(nbytes: int) -> dict[str, object]:
    """Return a model with Adam's state: 400 tensors, of this size together."""
    numel = nbytes // (3 * PARAMETERS) // 4
    data = torch.randn(min(numel, 16 << 20)).repeat(-(-numel // (16 << 20)))[:numel].numpy()

    def tensor() -> torch.Tensor:
        return torch.frombuffer(data, dtype=torch.float32)  # a storage of its own over the same bytes

    names = [f"layers.{index}.weight" for index in range(PARAMETERS)]
    slots = {
        index: {"step": torch.tensor(1.0), "exp_avg": tensor(), "exp_avg_sq": tensor()}
        for index in range(PARAMETERS)
    }
    group = {"lr": 0.001, "params": list(range(PARAMETERS))}
    return {
        "model": {name: tensor() for name in names},
        "optimizer": {"state": slots, "param_groups": [group]},
        "epoch": 1,
    }


def whole_module(nbytes: int) -> torch.nn.Module:
    """Return a module to pickle as a whole: linear layers of this size together."""
    numel = nbytes // PARAMETERS // 4
    data = torch.randn(min(numel, 16 << 20)).repeat(-(-numel // (16 << 20)))[:numel].numpy()
    layers = []
    for _ in range(PARAMETERS):
        layer = torch.nn.Linear(1, 1, bias=False)
        layer.weight = torch.nn.Parameter(torch.frombuffer(data, dtype=torch.float32).unsqueeze(1))
        layers.append(layer)
    return torch.nn.Sequential(*layers)


def save_module(module: torch.nn.Module, path: Path, tag: str) -> None:
    """Save a module as a whole with all tensors on one device."""
    location_tags = runpy.run_path(str(DEMO_SCRIPT))["location_tags"]
    with location_tags(lambda _: tag):
        torch.save(module, path)


def many_tensors(count: int) -> dict[str, object]:
    """Return a state dict of many small tensors."""
    return {f"blocks.{index // 10}.part_{index % 10}.weight": torch.zeros(4) for index in range(count)}


def save(checkpoint: dict[str, object], path: Path, tag: str, *, legacy: bool = False) -> None:
    """Save a checkpoint with all tensors but scalars on one device."""
    scalars = {
        slots["step"].data_ptr()
        for slots in checkpoint.get("optimizer", {"state": {}})["state"].values()  # type: ignore[index]
    }
    location_tags = runpy.run_path(str(DEMO_SCRIPT))["location_tags"]
    with location_tags(lambda pointer: None if pointer in scalars else tag):
        torch.save(checkpoint, path, _use_new_zipfile_serialization=not legacy)


KINDS: dict[str, Callable[[Path], None]] = {
    "zip-1gb": lambda path: save(training_run(GIGABYTE), path, "cuda:0"),
    "zip-10gb": lambda path: save(training_run(10 * GIGABYTE), path, "cuda:0"),
    "cpu-1gb": lambda path: save(training_run(GIGABYTE), path, "cpu"),
    "cpu-10gb": lambda path: save(training_run(10 * GIGABYTE), path, "cpu"),
    "legacy-10gb": lambda path: save(training_run(10 * GIGABYTE), path, "cuda:0", legacy=True),
    "module-1gb": lambda path: save_module(whole_module(GIGABYTE), path, "cuda:0"),
    "module-10gb": lambda path: save_module(whole_module(10 * GIGABYTE), path, "cuda:0"),
    "legacy-1gb": lambda path: save(training_run(GIGABYTE), path, "cuda:0", legacy=True),
    "many": lambda path: save(many_tensors(100_000), path, "cuda:0"),
}

if __name__ == "__main__":
    KINDS[sys.argv[1]](Path(sys.argv[2]))
