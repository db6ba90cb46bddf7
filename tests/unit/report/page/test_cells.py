from __future__ import annotations

from inspector.report.page import cut_end, cut_middle, width_of


def test_columns_are_those_of_a_terminal() -> None:
    assert [width_of(text) for text in ("abc", "名前", "e\u0301", "\u0e01\u0e31", "×…")] == [3, 4, 1, 1, 2]


def test_cuts_fit_and_keep_both_ends() -> None:
    for text in ("layer4.2.conv3.weight", "名前名前名前名前", "a" * 30 + "\u0301" * 9):
        for most in range(-1, 20):
            for cut in (cut_end(text, most), cut_middle(text, most)):
                assert width_of(cut) <= max(most, 1)
                assert "…" in cut or cut == text
    assert cut_middle("layer4.2.conv3.weight", 11) == "layer…eight"
    assert cut_end("abc", 3) == cut_middle("abc", 3) == "abc"
