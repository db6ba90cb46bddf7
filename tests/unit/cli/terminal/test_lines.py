from __future__ import annotations

from inspector.cli.terminal.writer import lay_line
from inspector.report.page import Line, width_of
from tests.unit.cli.terminal.looks import paint, seen

LONG = "DOES NOT LOAD on a machine with 1 NVIDIA GPU: torch.load('best.pth') stops with"


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


def test_paths_in_a_list_are_cut_and_sentences_in_it_are_wrapped() -> None:
    (path,) = lay_line(Line("layer." * 20 + "weight", "bullet", "     - "), paint(40))
    assert path.startswith("     - layer")
    assert path.endswith("weight")
    assert len(path) == 40
    lines = list(lay_line(Line("word " * 20, "bullet", "   - ", "     ", wraps=True), paint(40)))
    assert [line[:6] for line in lines] == ["   - w", *["     w"] * (len(lines) - 1)]
    assert list(lay_line(Line("word " * 9, "bullet", " - ", wraps=True), paint(40)))[1].startswith("   w")
