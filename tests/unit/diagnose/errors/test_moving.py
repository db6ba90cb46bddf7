"""Tensors without data, and tensors that NumPy cannot have."""

from __future__ import annotations

from tests.unit.diagnose.explaining import explained, on

META = "NotImplementedError: Cannot copy out of meta tensor; no data!"


def test_meta_tensors_of_a_file() -> None:
    assert explained(META, on(("a", "meta"), ("b", "cpu")), id_="meta-tensor").paths == ("a",)
    assert explained(META, on(("b", "cpu")), id_="meta-tensor").fits == "no"
