"""Our forecast beside what `torch.load` does, for files made at random: honest ones, and what mutations leave.

`python -m tests.torch.forecast --files 3000 --seed N` prints the table of docs/simulation.md.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.loading import load_call
from inspector.target.machine.profile import CPU_ONLY
from inspector.target.simulate import first_failure
from tests.hostile.asking_torch import ask_torch
from tests.torch.forecast_files import Made

HERE = replace(CPU_ONLY, torch_version=torch.__version__)
LOADS, REFUSED, UNSURE = "loads", "refused", "unsure"


class Row(NamedTuple):
    """One call.

    Attributes:
        title: The file.
        weights_only: The argument.
        ours: `loads`, `unsure` where programs read different things, `refused` where we do not open it, or the
            error that we foretell.
        theirs: `loads`, or the error.
    """

    title: str
    weights_only: bool
    ours: str
    theirs: str

    @property
    def agrees(self) -> bool:
        """Whether we say rightly that it loads or does not."""
        return self.ours == UNSURE or (self.ours == LOADS) == (self.theirs == LOADS)

    @property
    def same_words(self) -> bool:
        """Whether torch's text begins with what we quote; what depends on the build is no part of it."""
        return self.theirs.startswith(self.ours)

    @property
    def same_error(self) -> bool:
        """Whether it is an error of the class that we quote."""
        return self.theirs.partition(":")[0] == self.ours.partition(":")[0]


def foretold(path: Path) -> tuple[dict[bool, str], bool]:
    """Return what we say by `weights_only`, and whether nothing dangerous can happen without it."""
    try:
        checkpoint = open_checkpoint(str(path))
    except CheckpointError as error:
        return {True: REFUSED, False: REFUSED}, not error.programs
    safety = judge(checkpoint)
    said = {}
    for weights_only in (True, False):
        failure = first_failure(
            checkpoint, HERE, load_call(checkpoint, safety, weights_only=weights_only)
        )
        loads = UNSURE if safety.is_unsure else LOADS
        said[weights_only] = loads if failure is None else failure.message
    return said, all(verdict in {"allowed", "tensor"} for verdict in safety.globals)


def rows(files: Iterable[Made], folder: Path) -> list[Row]:
    """Ask both about files."""
    asked: list[tuple[str, Path, bool, str]] = []
    for number, (title, data, is_honest) in enumerate(files):
        path = folder / f"{number}.pt"
        path.write_bytes(data)
        said, is_harmless = foretold(path)
        asked += [(title, path, True, said[True])]
        asked += [(title, path, False, said[False])] if is_harmless or is_honest else []
    theirs = ask_torch([(path, weights_only) for _, path, weights_only, _ in asked])
    return [
        Row(title, weights_only, ours, LOADS if answer == "accepts" else answer)
        for (title, _, weights_only, ours), (answer,) in zip(asked, theirs, strict=True)
    ]
