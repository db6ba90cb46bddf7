from __future__ import annotations

from inspector.report.page import Bars


def test_a_histogram_is_one_line_of_bars() -> None:
    block = Bars("Histogram", (0, 1, 8), (0.0, 1.0, 2.0, 3.0), 9)
    assert list(block.plain()) == ["  Histogram  | ▁█|"]
