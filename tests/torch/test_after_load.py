"""What is said of whole modules and whole optimizers after `torch.load`, against torch: parts x devices.

torch runs in one child process, see `restoring.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.target.after_load import (
    Complaint,
    first_of_parallel,
    is_registered,
    landed_places,
    meeting,
    mixing_failure,
    whole_optimizer_failure,
)
from inspector.target.parts import parts_of
from tests.sweep import tries
from tests.torches import run_with_torch

pytestmark = [pytest.mark.torch, pytest.mark.slow]
WHOLE = ("net", "masked", "parallel", "average", "weight")
CAPTURABLE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "Rprop", "RMSprop", "ASGD")
OPTIMIZERS = (*CAPTURABLE, "SGD", "Adagrad")
GPUS = ("cpu", "cuda:0", "cuda:1")
TAGS = (("cpu",), ("cuda:0",), ("cuda:1",), ("cuda:0", "cuda:1"), ("cuda:0", "cpu"))


class Cell(NamedTuple):
    """One file: large tensors have one device after the other, numbers one of their own."""

    kind: str
    what: str
    tags: tuple[str, ...]
    numbers: str
    options: tuple[str, ...] = ()

    def request(self) -> dict[str, Any]:
        name = "-".join([self.kind, self.what, *self.tags, self.numbers, *self.options]).replace(":", "")
        return {**self._asdict(), "name": f"{name}.pt", "options": dict.fromkeys(self.options, True)}


def cells() -> Iterator[Cell]:
    """Yield all cells."""
    for what, tags, numbers in product(WHOLE, TAGS, GPUS[:2]):
        yield Cell("whole", what, tags, numbers)
    for what, tag, more, numbers in product(OPTIMIZERS, GPUS, ((), ("cuda:0",)), GPUS):
        yield Cell("whole optimizer", what, (tag, *more), numbers)
        if what in CAPTURABLE:
            yield Cell("whole optimizer", what, (tag, *more), numbers, ("capturable",))


def predict(made: Checkpoint, cell: Cell) -> Complaint | None:
    (part,) = parts_of(made)
    if cell.kind == "whole optimizer":
        return whole_optimizer_failure(made, part)
    first = first_of_parallel(made, part)
    if first and any(is_registered(row) and row.device != first for row in part.tensors(made)):
        return Complaint.FIRST_DEVICE
    return mixing_failure(meeting(made, part, landed_places(made, part)))


def test_what_follows_from_a_file_follows_in_torch(tmp_path: Path) -> None:
    wanted = list(cells())[:: tries(7, 1)]
    child = run_with_torch(
        Path(__file__).with_name("restoring.py"),
        tmp_path,
        given=json.dumps([cell.request() for cell in wanted]) + "\n",
    )
    assert child.returncode == 0, child.stderr[-2000:]
    differing: Counter[str] = Counter()
    seen: set[Complaint | None] = set()
    for cell, said in zip(wanted, json.loads(child.stdout), strict=True):
        ours = predict(open_checkpoint(str(tmp_path / cell.request()["name"])), cell)
        seen.add(ours)
        if (ours or "") not in said or bool(ours) != bool(said):
            differing[f"{cell}: torch says {said[:120]!r}, and we said {ours}"] += 1
    assert not differing, "\n".join(differing)
    assert len(wanted) > tries(50, 400)
    # The comparison is not between cells in which nothing happens.
    assert seen >= {None, *Complaint} - {Complaint.NOT_EXPECTED}
