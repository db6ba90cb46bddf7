from __future__ import annotations

from tests.unit.diagnose.script.following import check


def test_truth() -> None:
    check("truth")
