"""Sums by device, role and type."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.totals import device_totals, dtype_totals, role_totals, storage_nbytes_by, wasted_nbytes

torch = pytest.importorskip("torch")


def test_sums(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    whole = torch.zeros(100)
    counts = torch.zeros(3, dtype=torch.int64)
    torch.save({"w": whole, "part": whole[:10], "n": counts, "meta": torch.empty(5, device="meta")}, path)
    checkpoint = open_checkpoint(str(path))
    totals = {total.device: total for total in device_totals(checkpoint)}
    assert list(totals) == ["cpu", "meta"]
    assert (totals["cpu"].tensors, totals["cpu"].storages, totals["cpu"].nbytes) == (3, 2, 424)
    assert (totals["meta"].tensors, totals["meta"].nbytes) == (1, 0)
    assert dtype_totals(checkpoint) == (("float32", 400), ("int64", 24))
    assert dict(role_totals(checkpoint)) == {"parameter": 400, "buffer": 24}
    assert storage_nbytes_by(checkpoint, lambda tensor: tensor.path) == {"w": 400, "n": 24}
    assert wasted_nbytes(checkpoint.storages) == 0


def test_waste(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"part": torch.zeros(100)[10:20]}, path)
    assert wasted_nbytes(open_checkpoint(str(path)).storages) == 360
