"""A few of the kills that `benchmarks/kill_export.py` makes by the hundred: it asserts what must be left."""

from __future__ import annotations

import runpy
import struct
from pathlib import Path

import pytest

from tests.unit.remap.samples import legacy_of, stream, tensor, text, zip_of

SCRIPT = Path(__file__).parents[4] / "benchmarks" / "kill_export.py"
COUNT = 300
OBJECT = stream(
    b"]("
    + b"".join(
        tensor(text("cuda:0"), str(number)).replace(b"K\x04", b"M" + struct.pack("<H", 4))
        for number in range(COUNT)
    )
    + b"e"
)
STORAGES = {str(number): bytes([number % 256]) * 16 for number in range(COUNT)}


@pytest.mark.wide
@pytest.mark.slow
@pytest.mark.parametrize(("make", "rule"), [(zip_of, "*=cuda:11"), (legacy_of, "*=cpu")])
def test_nothing_is_lost_and_nothing_is_left(tmp_path: Path, make, rule: str) -> None:
    path = tmp_path / "in.pt"
    path.write_bytes(make(OBJECT, STORAGES))
    trial = runpy.run_path(str(SCRIPT))["Trial"](path, 7)
    for turn in range(5):
        trial.run("copy" if turn % 2 else "in place", rule)
    assert sum(trial.counts.values()) == 5
    assert path.read_bytes() == make(OBJECT, STORAGES)
