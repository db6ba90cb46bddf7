from __future__ import annotations

from inspector.report.page import Line, cut_end, cut_middle, lines_of, page_of, plain_text, prose, width_of


def test_a_page_is_its_sections_with_empty_lines_between() -> None:
    page = page_of([Line("a"), Line("b", indent="  ")], [], lines_of(["c", "d"], "code"))
    assert plain_text(page) == "a\n  b\n\nc\nd\n"
    assert plain_text(page_of([])) == ""
    assert plain_text(page_of(prose("", "  "))) == ""


def test_sentences_are_wrapped_and_other_lines_are_not() -> None:
    (block,) = prose("word " * 30 + "\x1b", "  ", hang="    ")
    assert block.plain() == ["  " + " ".join(["word"] * 19), "    " + " ".join(["word"] * 11) + " \\u001b"]
    assert Line("x" * 300, indent=" ").plain() == [" " + "x" * 300]
    assert list(map(len, Line("x" * 150, wraps=True).plain())) == [100, 50]
    assert Line("x" * 150, wraps=True, keeps_words=True).plain() == ["x" * 150]


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
