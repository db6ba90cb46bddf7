from __future__ import annotations

from inspector.cli.terminal.wrapping import LEAST, wrap
from inspector.report.page.cells import width_of


def test_lines_fit_and_nothing_is_lost() -> None:
    text = "That breaks 名前名前名前名前名前名前 nothing/by/itself/however/long/it/is e\u0301e\u0301 end."
    for width in range(1, 90):
        lines = wrap(text, width)
        assert max(map(width_of, lines)) <= max(width, LEAST)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert wrap("a b", 80) == ["a b"]
    assert wrap("", 80) == []
    assert wrap("aaaaaa bbbbbb cc", 13) == ["aaaaaa bbbbbb", "cc"]
