from __future__ import annotations

from tests.unit.diagnose.script.following import check


def test_data_sets_that_move_their_items() -> None:
    check("containing")
