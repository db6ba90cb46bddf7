from __future__ import annotations

from tests.unit.diagnose.script.following import check


def test_calls_of_python() -> None:
    check("python_calls")
