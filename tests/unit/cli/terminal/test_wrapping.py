from __future__ import annotations

from inspector.cli.terminal.wrapping import LEAST, wrap, wrap_message
from inspector.report.page import width_of


def test_lines_fit_and_nothing_is_lost() -> None:
    text = "That breaks 名前名前名前名前名前名前 nothing/by/itself/however/long/it/is e\u0301e\u0301 end."
    for width in range(1, 90):
        lines = wrap(text, width)
        assert max(map(width_of, lines)) <= max(width, LEAST)
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert wrap("a b", 80) == ["a b"]
    assert wrap("", 80) == []
    assert wrap("aaaaaa bbbbbb cc", 13) == ["aaaaaa bbbbbb", "cc"]


def test_a_message_is_broken_between_words_and_its_commands_nowhere() -> None:
    hint = "did you mean a/b.weight? see: checkpoint-inspector show a  b.pth"
    text = f"program: error: no tensor: a/b.weigth ({hint})"
    assert wrap_message(text, 40).split("\n") == [
        "program: error: no tensor: a/b.weigth",
        "  (did you mean a/b.weight? see:",
        "  checkpoint-inspector show a  b.pth)",
    ]
    both = "error: " + "x" * 30 + " (write a copy: checkpoint-inspector remap a.pth -o b.pth, or use --force)"
    assert wrap_message(both, 24).split("\n") == [
        "error:",
        "  " + "x" * 30,
        "  (write a copy:",
        "  checkpoint-inspector remap a.pth -o b.pth,",
        "  or use --force)",
    ]
    for width in range(1, 200, 7):
        for one in (text, both):
            assert " ".join(wrap_message(one, width).split("\n  ")) == one
