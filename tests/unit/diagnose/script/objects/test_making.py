from __future__ import annotations

from tests.unit.diagnose.script.following import check


def test_making() -> None:
    check("making")
