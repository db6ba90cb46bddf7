"""Findings name a few tensors and count all."""

from __future__ import annotations

from inspector.model.findings import MOST_PATHS, SEVERITIES, Fix, finding


def test_paths_are_cut_and_counted() -> None:
    made = finding(
        "id", "note", "title", "detail", [str(number) for number in range(50)], fix=Fix(rule="*=cpu")
    )
    assert (len(made.paths), made.count, made.paths[-1]) == (MOST_PATHS, 50, str(MOST_PATHS - 1))
    assert made.fix == Fix(rule="*=cpu")
    assert finding("id", "note", "title", "detail", []).fix is None


def test_worst_is_first() -> None:
    assert SEVERITIES == ("error", "warning", "note")
