"""Explanations are frozen, and name as many tensors as findings do."""

from __future__ import annotations

import pytest

from inspector.diagnose.errors.explain import explain_error
from inspector.diagnose.errors.explanation import Explanation, first_paths
from inspector.model.findings import MOST_PATHS
from tests.unit.diagnose.explaining import on
from tests.unit.report.rows import checkpoint, tensor


def test_few_paths_are_named_and_all_counted() -> None:
    made = on(*((f"w{number}", "cuda:0") for number in range(50)))
    found = explain_error("Torch not compiled with CUDA enabled", made)
    assert (len(found.paths), found.count) == (MOST_PATHS, 50)
    assert first_paths(["a"] * 50) == ("a",) * MOST_PATHS


def test_all_tensors_of_a_finding_are_counted() -> None:
    rows = [
        tensor("._parameters", f"w{number}", device="cuda:0" if number < 50 else "cpu")
        for number in range(90)
    ]
    made = checkpoint(*rows)
    found = explain_error("Expected all tensors to be on the same device", made)
    assert (len(found.paths), found.count) == (MOST_PATHS, 40)


def test_frozen() -> None:
    found = explain_error("", None)
    assert isinstance(found, Explanation)
    with pytest.raises(AttributeError):
        found.title = "x"  # type: ignore[misc]
