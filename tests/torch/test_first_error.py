"""Which of several errors a load ends with: a device that is missing, or a name, whichever comes first."""

from __future__ import annotations

import argparse
import datetime as dt
import io
import random
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import judge_load
from tests.sweep import put_through, tries
from tests.torch.running import tagged

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
HERE = replace(CPU_ONLY, torch_version=torch.__version__)
ON_CPU, ON_GPU = 8, 24  # bytes, by which a storage gets its tag
THINGS: list[Any] = [
    lambda: torch.zeros(ON_CPU // 4),
    lambda: torch.zeros(ON_CPU // 4),
    lambda: torch.zeros(ON_GPU // 4),
    lambda: torch.nn.Parameter(torch.zeros(ON_GPU // 4)),
    lambda: OrderedDict(w=torch.zeros(ON_CPU // 4)),
    lambda: argparse.Namespace(lr=0.1, weight=torch.zeros(ON_CPU // 4)),
    lambda: dt.timedelta(1),
    lambda: np.zeros(2),
    lambda: np.float64(0.5),
    lambda: torch.nn.Linear(1, 2, bias=False),
    lambda: 7,
]


def some(chance: random.Random) -> dict[str, Any]:
    """A few things in any order, some of them the same, some in one another."""
    made = [chance.choice(THINGS)() for _ in range(chance.randint(2, 6))]
    made.append(chance.choice(made))
    if chance.random() < 0.5:
        made.append({"in": made[1], "own": chance.choice(THINGS)()})
    return {str(number): made[number] for number in chance.sample(range(len(made)), len(made))}


def test_the_first_error_is_the_one_that_is_told(tmp_path: Path) -> None:
    ends: set[str] = set()

    def check(seed: int) -> None:
        path = tmp_path / "file.pt"
        with tagged(lambda storage: "cuda:0" if storage.nbytes() == ON_GPU else "cpu"):
            torch.save(some(random.Random(seed)), path, _use_new_zipfile_serialization=seed % 3 > 0)
        load = judge_load(open_checkpoint(str(path)), HERE)
        try:
            torch.load(io.BytesIO(path.read_bytes()) if seed % 2 else path)
        except Exception as error:  # noqa: BLE001 - whatever torch says
            said = f"{type(error).__name__}: {error}"
            assert load.failure is not None, said
            assert load.failure.message == said
            ends.add(load.failure.finding)
        else:
            assert load.failure is None

    put_through(check, range(tries(150, 2000)))
    assert ends == {"cuda-unavailable", "needs-allow-list", "runs-code"}
