from __future__ import annotations

from inspector.report.page import Line, lines_of, page_of, plain_text, prose


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
