from __future__ import annotations

from inspector.cli.terminal.writer import lay_line
from inspector.report.page import Line, width_of
from tests.unit.cli.terminal.looks import PLAIN, paint, seen

LONG = "DOES NOT LOAD on a machine with 1 NVIDIA GPU: torch.load('best.pth') stops with"


def test_a_verdict_has_a_sign_and_its_first_words_in_color() -> None:
    first, second = lay_line(Line(LONG, "bad", "  "), paint(60))
    assert first.startswith("  \x1b[1;31m✘\x1b[0m \x1b[1;31mDOES NOT LOAD\x1b[0m on a machine")
    assert second.startswith("    ")
    assert seen(lay_line(Line("loads", "good", "  "), PLAIN)) == ["  ✔ loads"]
    assert seen(lay_line(Line("", "good", "  "), PLAIN)) == ["  ✔ "]


def test_what_ends_a_verdict_stands_below_its_text() -> None:
    (first, *_), (last,) = (
        seen(lay_line(Line(text, role, "  ", wraps=True), PLAIN))
        for text, role in ((LONG, "bad"), ("at the tensor a.", "more"))
    )
    assert first.index("DOES") == last.index("at the tensor")


def test_what_is_pasted_stays_one_line_without_a_color() -> None:
    command = "checkpoint-inspector remap " + "x" * 300
    assert list(lay_line(Line(command, "code", "   "), paint(40))) == [command]
    assert list(lay_line(Line("x" * 38, "code", "   "), paint(40))) == [f"  {'x' * 38}"]
    assert list(lay_line(Line("x", "code", "   "), paint(40))) == ["   x"]
    assert list(lay_line(Line("x" * 50, "code", "  1. "), paint(40))) == [f"  1. {'x' * 50}"]


def test_sentences_fit_whatever_the_width() -> None:
    roles = ("text", "heading", "aside", "good", "caution", "bad", "error", "warning", "note", "file")
    for role in roles:
        for width in (20, 41, 60, 200):
            lines = seen(lay_line(Line(LONG * 3, role, "  "), paint(width)))
            assert max(map(width_of, lines)) <= min(width, 200 if role == "file" else 102), (role, width)
            assert len(lines) == 1 if role == "file" else len(lines) > 1


def test_findings_are_told_by_their_signs() -> None:
    signs = [seen(lay_line(Line("Title", role, "!! "), PLAIN)) for role in ("error", "warning", "note")]
    assert signs == [["✘ Title"], ["▲ Title"], ["• Title"]]


def test_paths_in_a_list_are_cut_and_sentences_in_it_are_wrapped() -> None:
    (path,) = lay_line(Line("layer." * 20 + "weight", "bullet", "     - "), paint(40))
    assert path.startswith("     - layer")
    assert path.endswith("weight")
    assert len(path) == 40
    lines = list(lay_line(Line("word " * 20, "bullet", "   - ", "     ", wraps=True), paint(40)))
    assert [line[:6] for line in lines] == ["   - w", *["     w"] * (len(lines) - 1)]
    assert list(lay_line(Line("word " * 9, "bullet", " - ", wraps=True), paint(40)))[1].startswith("   w")


def test_an_empty_line_is_empty() -> None:
    assert list(lay_line(Line("", indent="  "), PLAIN)) == [""]
