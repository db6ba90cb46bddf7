"""Values of another type than the line expects."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.unit.diagnose.explaining import on


def test_lists_in_files() -> None:
    text = "TypeError: list indices must be integers or slices, not str"
    assert explain_error(text, on(("a", "cpu"), root="sequence")).fits == "yes"
    assert explain_error(text, on(("a", "cpu"))).fits == "no"
