from __future__ import annotations

from inspector.cli.terminal import writer as tables
from inspector.report.page import Bars, Change, Columns, width_of
from tests.unit.cli.terminal.looks import PLAIN, paint, seen

WIDTHS = (20, 40, 60, 140)


def test_a_histogram_fills_the_width_and_names_its_ends() -> None:
    block = Bars("Histogram", tuple(range(64)), tuple(float(edge) for edge in range(65)), 9)
    for width in WIDTHS[1:]:
        bars, ends = seen(tables.lay_bars(block, paint(width)))
        assert width_of(bars) <= width
        assert ends.strip().startswith("0")
        assert ends.strip().endswith("64")
        assert width_of(ends) == width_of(bars)
    narrow, _ = seen(tables.lay_bars(block, paint(60, is_unicode=False)))
    assert narrow.isascii()
    assert narrow.endswith("#|")


def test_a_difference_has_its_sign_and_its_color() -> None:
    (line,) = tables.lay_changes([Change("+", "a/b", "new")], paint())
    assert line == "  \x1b[32m+\x1b[0m a/b   new"
    assert seen(tables.lay_changes([Change("=", "a/b", "")], PLAIN)) == ["  = a/b"]
    for width in WIDTHS:
        lines = seen(tables.lay_changes([Change("-", "layer." * 20, "word " * 20)], paint(width)))
        assert max(map(width_of, lines)) <= width
        assert lines[1].startswith("        word")


def test_a_table_goes_on_below_where_it_is_too_wide() -> None:
    cells = tuple(f"{number}.25" for number in range(12))
    block = Columns("Norm", tuple(map(str, range(1, 13))), (("layer1.weight", cells), ("名前", cells)))
    for width in WIDTHS:
        lines = seen(tables.lay_columns(block, paint(width)))
        assert max(map(width_of, lines)) <= width
        assert sum(line.count("11.25") for line in lines) == 2
    assert len(seen(tables.lay_columns(block, paint(140)))) == 4
    assert seen(tables.lay_columns(Columns("Norm", (), ()), PLAIN)) == ["Norm", ""]
