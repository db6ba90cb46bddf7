"""Makes `demo.pth`, the checkpoint that ships with the program: `python resources/demo/make_demo.py [OUT]`.

It is what `torch.save` writes in a training run on two GPUs: a small ResNet whose first half is on cuda:0 and
whose second half is on cuda:1, with Adam, a scheduler, a loss scaler, averaged weights and the random states.
It is made without a GPU: the tensors are on the CPU and only their location tags say otherwise, which is all
that a file knows of a device.

Every run writes the same bytes. So the numbers come from uniform draws, sums and products, which every
processor rounds alike; a logarithm or a matrix product would differ in the last bit.
"""

# ruff: noqa: INP001 - a script beside the file that it makes, no package

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn
from typing_extensions import override

WIDTHS = (8, 16, 32)
SECOND_GPU = ("layer3.", "head.")
EPOCHS, STEPS_PER_EPOCH = 50, 195
SEED, LEARNING_RATE, WEIGHT_DECAY, MILESTONES = 2024, 0.001, 0.0001, [30, 60, 80]
CONFIG = {
    "model": "resnet14-tiny",
    "dataset": "CIFAR-10",
    "num_classes": 10,
    "image_size": (32, 32),
    "batch_size": 256,
    "epochs": 90,
    "learning_rate": LEARNING_RATE,
    "weight_decay": WEIGHT_DECAY,
    "milestones": MILESTONES,
    "augmentations": {"random_crop": {"size": 32, "padding": 4}, "horizontal_flip": 0.5, "cutout": 8},
    "ema_decay": 0.999,
    "mixed_precision": True,
    "devices": ["cuda:0", "cuda:1"],
    "seed": SEED,
}


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        if inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    @override
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Add what the convolutions see to what came in."""
        shortcut: torch.Tensor = self.downsample(images) if hasattr(self, "downsample") else images
        seen = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(images)))))
        return torch.relu(seen + shortcut)


class Classifier(nn.Module):
    """A ResNet for small images."""

    def __init__(self) -> None:
        super().__init__()
        first, second, third = WIDTHS
        self.stem = nn.Sequential()
        self.stem.add_module("conv", nn.Conv2d(3, first, 3, padding=1, bias=False))
        self.stem.add_module("bn", nn.BatchNorm2d(first))
        self.layer1 = nn.Sequential(Block(first, first), Block(first, first))
        self.layer2 = nn.Sequential(Block(first, second), Block(second, second))
        self.layer3 = nn.Sequential(Block(second, third), Block(third, third))
        self.head = nn.Linear(third, 10)

    @override
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Give a score for each class."""
        seen: torch.Tensor = self.layer3(self.layer2(self.layer1(torch.relu(self.stem(images)))))
        scores: torch.Tensor = self.head(seen.mean((2, 3)))
        return scores


@contextlib.contextmanager
def location_tags(tag_of: Callable[[int], str | None]) -> Iterator[None]:
    """Let `torch.save` write other devices than the CPU.

    Args:
        tag_of: Gives the tag for a storage, told by its `data_ptr()`; None leaves it as it is.
    """
    truthful = torch.serialization.location_tag

    def tag(storage: torch.UntypedStorage) -> str:
        return tag_of(storage.data_ptr()) or truthful(storage)

    with mock.patch.object(torch.serialization, "location_tag", tag):
        yield


class Trained:
    """Numbers that look as if training had left them."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def uniform(self, shape: torch.Size) -> torch.Tensor:
        """Draw from [0, 1)."""
        return torch.rand(shape, generator=self._generator)

    def bell(self, shape: torch.Size) -> torch.Tensor:
        """Draw from nearly a normal distribution: the sum of 12 uniform draws has the variance 1."""
        total = torch.full(shape, -6.0)
        for _ in range(12):
            total += self.uniform(shape)
        return total

    def fill(self, name: str, tensor: torch.Tensor) -> None:
        """Set a parameter or buffer."""
        shape, is_norm = tensor.shape, ".bn" in name or "downsample.1" in name
        if name.endswith("num_batches_tracked"):
            tensor.fill_(EPOCHS * STEPS_PER_EPOCH)
        elif name.endswith("running_var"):
            tensor.copy_(0.05 + self.uniform(shape) * self.uniform(shape))
        elif tensor.dim() == 1:
            tensor.copy_(self.bell(shape) * 0.15 + (1.0 if is_norm and name.endswith("weight") else 0.0))
        else:  # some filters have grown, others have nearly died
            gains = 0.2 + self.uniform(shape[:1]).reshape(-1, *[1] * (tensor.dim() - 1))
            fan_in = math.prod(shape[1:])
            tensor.copy_(self.bell(shape) * gains * math.sqrt(2 / fan_in))


def make_checkpoint() -> tuple[dict[str, Any], dict[int, str]]:
    """Make the checkpoint, and the tags of its storages by `data_ptr()`."""
    trained = Trained(SEED)
    torch.manual_seed(SEED)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, MILESTONES, gamma=0.1)
    train(trained, model, optimizer, scheduler)
    averaged = {
        name: parameter.detach() * (1 + 0.01 * trained.bell(parameter.shape))
        for name, parameter in model.named_parameters()
    }
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": torch.amp.GradScaler("cpu", init_scale=32768.0).state_dict(),
        "ema": averaged,
        "epoch": EPOCHS,
        "best_accuracy": 0.9137,
        "rng_state": {
            "torch": torch.Generator().manual_seed(SEED).get_state(),
            "cuda": [cuda_random_state(offset) for offset in (4096, 8192)],
        },
        "config": CONFIG,
    }
    return checkpoint, tags(model, optimizer, averaged)


def train(
    trained: Trained,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler,
) -> None:
    """Leave everything as it is after `EPOCHS` epochs."""
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for _ in range(EPOCHS):
        scheduler.step()
    for name, tensor in model.state_dict().items():
        trained.fill(name, tensor)
    for slots in optimizer.state.values():
        shape = slots["exp_avg"].shape
        slots["step"].fill_(EPOCHS * STEPS_PER_EPOCH)
        slots["exp_avg"].copy_(trained.bell(shape) * 3e-4)
        slots["exp_avg_sq"].copy_(trained.uniform(shape) * trained.uniform(shape) * 2e-6)


def cuda_random_state(offset: int) -> torch.Tensor:
    """Give what `torch.cuda.get_rng_state` gives: seed and offset, 16 bytes on the CPU."""
    return torch.tensor([SEED, offset]).view(torch.uint8)


def tags(
    model: nn.Module, optimizer: torch.optim.Optimizer, averaged: dict[str, torch.Tensor]
) -> dict[int, str]:
    """Give the tags of all storages that a GPU would hold; Adam keeps `step` on the CPU."""
    kept = [*model.state_dict().items(), *averaged.items()]
    for name, parameter in model.named_parameters():
        kept += [(name, slot) for key, slot in optimizer.state[parameter].items() if key != "step"]
    return {tensor.data_ptr(): "cuda:1" if name.startswith(SECOND_GPU) else "cuda:0" for name, tensor in kept}


def write_demo(path: Path) -> None:
    """Write the demo checkpoint."""
    checkpoint, found = make_checkpoint()
    with location_tags(found.get):
        torch.save(checkpoint, path)


if __name__ == "__main__":
    write_demo(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("demo.pth"))
