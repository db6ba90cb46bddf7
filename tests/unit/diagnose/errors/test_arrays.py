"""Messages of NumPy, tied to the NumPy objects of a file."""

from __future__ import annotations

from tests.unit.diagnose.explaining import asking, explained


def test_numpy() -> None:
    text = "ModuleNotFoundError: No module named 'numpy._core'"
    assert explained(text, asking("numpy._core.multiarray.scalar"), id_="numpy-version").fits == "yes"
    assert explained(text, asking("torch.Size"), id_="numpy-version").fits == "no"
