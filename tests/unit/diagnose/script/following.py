"""Scripts in a few lines, followed with the small files of `tests/data/scripts`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from inspector.diagnose.script.answer import ScriptAnswer, answer_script
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.target.profile import Profile

FILES = Path(__file__).parents[3] / "data" / "scripts" / "files"
MACHINES = {"cpu": (), "cuda": (("cuda", 1),), "2cuda": (("cuda", 2),), "mps": (("mps", 1),)}
NET = """import torch
from torch import nn, optim
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 2)
    def forward(self, x):
        return self.fc2(torch.relu(self.bn(self.fc1(x))))
model = Net()
"""
"""Eleven lines that make the model of the files; what follows begins at line 12."""
LOADED = NET + 'model.load_state_dict(torch.load("sd_cpu.pth"))\n'
"""The same, loaded at line 12."""


@cache
def opened(name: str) -> Checkpoint:
    return open_checkpoint(str(FILES / name))


def machine(name: str, version: str | None = None) -> Profile:
    return Profile(id=name, label=name, accelerators=MACHINES[name], torch_version=version)


def follow(
    text: str,
    file: str = "sd_cpu.pth",
    target: str = "cpu",
    version: str | None = None,
    **more: str | None,
) -> ScriptAnswer:
    return answer_script(text, "train.py", opened(file), machine(target, version), **more)


def said(text: str, file: str = "sd_cpu.pth", target: str = "cpu", **more: str | None) -> str:
    """The answer in a word or two: `works 2`, `lost 12`, or the kind and line of the problem."""
    answer = follow(text, file, target, **more)
    if answer.line:
        return f"{answer.kind} {answer.line}"
    return f"{answer.outcome} {answer.load_line}" if answer.load_line else answer.outcome


def loaded_as(file: str, **changes: object) -> Checkpoint:
    return replace(opened(file), **changes)
