from __future__ import annotations

from inspector.cli.terminal import writer as tables
from inspector.report.page import Bars, Change, Columns, DeviceRow, Fact, Pointed, Result, width_of
from tests.unit.cli.terminal.looks import PLAIN, paint, seen

WIDTHS = (20, 40, 60, 140)


def test_figures_of_devices_stand_below_each_other() -> None:
    rows = [
        DeviceRow("cuda:0", "cuda:0", "1,150 tensors", "176 KB"),
        DeviceRow("cpu", "cpu", "1 tensor", "5 B"),
        DeviceRow("x" * 60, "x" * 60, "1 tensor", "5 B"),
    ]
    assert seen(tables.lay_devices(rows[:2], PLAIN)) == [
        "  ● cuda:0  1,150 tensors  176 KB",
        "  ○ cpu          1 tensor     5 B",
    ]
    for width in WIDTHS[1:]:
        lines = seen(tables.lay_devices(rows, paint(width)))
        assert len(set(map(width_of, lines))) == 1
        assert width_of(lines[0]) <= width


def test_what_a_caption_says_is_wrapped_beside_it() -> None:
    rows = [Fact("Mean", "0.5", 9), Fact("Python", "word " * 20, 9), Fact("Empty", "", 9)]
    lines = seen(tables.lay_facts(rows, paint(40)))
    assert lines[0] == "  Mean       0.5"
    assert lines[1].startswith("  Python     word")
    assert lines[2].startswith("             word")
    assert lines[-1] == "  Empty"
    assert max(map(width_of, lines)) <= 40


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


def test_what_differs_stands_below_each_other_where_there_is_room() -> None:
    rows = [
        Change("+", "a/b", "new"),
        Change("+", "重み", "new"),
        Change("~", "layer.weight", "word " * 9),
        Change("=", "c", ""),
        Change("-", "x" * 49, "gone"),
    ]
    lines = seen(tables.lay_changes(rows, paint(80)))
    assert lines == [
        "  + a/b            new",
        "  + 重み           new",
        f"  ~ layer.weight   {'word ' * 9}",
        "  = c",
        f"  - {'x' * 49}   gone",
    ]
    narrow = seen(tables.lay_changes(rows, paint(22)))
    assert narrow[:3] == ["  + a/b    new", "  + 重み   new", "  ~ layer.weight"]
    assert max(map(width_of, narrow)) <= 22


def test_a_title_stands_before_what_is_said_of_it() -> None:
    assert seen(tables.lay_pointed([Pointed("a", "float32", "", is_title=True)], PLAIN)) == ["a   float32"]
    first, second = tables.lay_pointed([Pointed("b" * 39, "float32", "", is_title=True)], paint(40))
    assert first == f"\x1b[1m{'b' * 39}\x1b[0m"
    assert second == "    float32"


def test_a_result_is_a_line_for_each_part() -> None:
    lines = seen(tables.lay_result(Result("out.pth", ("word " * 10, "two")), paint(30)))
    assert lines[0] == "✔ out.pth"
    assert lines[1].startswith("  - word")
    assert lines[2].startswith("    word")
    assert lines[-1] == "  - two"
    assert seen(tables.lay_result(Result("out.pth", ("a",), is_good=False), PLAIN))[0] == "✘ out.pth"


def test_a_table_goes_on_below_where_it_is_too_wide() -> None:
    cells = tuple(f"{number}.25" for number in range(12))
    block = Columns("Norm", tuple(map(str, range(1, 13))), (("layer1.weight", cells), ("名前", cells)))
    for width in WIDTHS:
        lines = seen(tables.lay_columns(block, paint(width)))
        assert max(map(width_of, lines)) <= width
        assert sum(line.count("11.25") for line in lines) == 2
    assert len(seen(tables.lay_columns(block, paint(140)))) == 4
    assert seen(tables.lay_columns(Columns("Norm", (), ()), PLAIN)) == ["Norm", ""]


def test_digits_stand_below_each_other_also_where_some_have_a_mark() -> None:
    block = Columns("Norm", ("1", "2"), (("a", ("7.9*", "1")), ("b", ("0", "12"))))
    assert seen(tables.lay_columns(block, PLAIN)) == [
        "Norm",
        "       1    2",
        "  a  7.9*   1",
        "  b    0   12",
    ]
