"""Builds of torch and of extensions that lack something."""

from __future__ import annotations

from tests.unit.diagnose.explaining import explained, on


def test_a_file_on_cuda_asks_for_it() -> None:
    text = "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'"
    assert explained(text, on(("a", "cuda:0")), id_="cpu-only-build").fits == "yes"
    assert explained(text, on(("a", "cpu")), id_="cpu-only-build").fits == "no"
