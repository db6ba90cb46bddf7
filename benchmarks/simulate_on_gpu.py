"""Compares simulated loads with real ones on this machine's GPUs: `python benchmarks/simulate_on_gpu.py`.

The table of `tests/torch/test_simulation_table.py`, with this machine in the place of those that are played
there. Prints what differs and how often, and ends with 1 if anything does.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from inspector.target.profile import Profile
from tests.torch.test_simulation_table import AGREEING, ask, explanation


def this_machine() -> Profile:
    """Return what torch finds here."""
    return Profile(
        id="this",
        label="this machine",
        accelerators=(
            ("cuda", torch.cuda.device_count() if torch.cuda.is_available() else 0),
            ("xpu", torch.xpu.device_count() if torch.xpu.is_available() else 0),
            ("mps", int(torch.backends.mps.is_available())),
        ),
        torch_version=torch.__version__,
    )


def main() -> int:
    """Compare and print."""
    warnings.simplefilter("ignore")  # torch deprecates storages while it saves them
    target = this_machine()
    with tempfile.TemporaryDirectory() as folder:
        answers = ask(Path(folder), (target,), is_real=True)
    counts = Counter(result if result in AGREEING else "different" for result in answers.results.values())
    print(f"torch {torch.__version__}, devices {', '.join(target.devices)}: {dict(counts)}")
    differing = {cell: result for cell, result in answers.results.items() if result not in AGREEING}
    shown = Counter(
        f"{cell.kind} [{cell.map}] {result} ({explanation(cell, result) or 'not explained'})"
        for cell, result in differing.items()
    )
    for text, count in shown.most_common():
        print(f"{count} x {text}")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
