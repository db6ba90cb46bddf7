"""Findings name a few tensors and count all."""

from __future__ import annotations

from inspector.model.findings import MOST_PATHS, Fix, finding


def test_names_the_first_and_counts_all() -> None:
    paths = [f"p{number}" for number in range(50)]
    found = finding("shared-storage", "note", "title", "detail", paths, fix=Fix(rule="*=cpu"))
    assert found.paths == tuple(paths[:MOST_PATHS])
    assert found.count == 50
    assert found.fix == Fix(rule="*=cpu")


def test_of_no_tensor() -> None:
    found = finding("whole-module", "warning", "title", "detail", [])
    assert (found.paths, found.count, found.fix) == ((), 0, None)
