from __future__ import annotations

from inspector.cli.terminal.tree import fitted, lay_tree
from inspector.records import replace
from inspector.report.page import tree_rows, width_of
from inspector.report.tree import build_tree
from tests.sweep import table
from tests.unit.cli.terminal.looks import PLAIN, paint, seen
from tests.unit.report.rows import BLANK, tensor, value

WIDTHS = (20, 27, 38, 40, 52, 60, 80, 140, 400)


def tree(*tensors: object, values: tuple = ()) -> object:
    return tree_rows(build_tree(replace(BLANK, tensors=tensors, values=values), {}))


def deep(levels: int) -> object:
    keys = [part for number in range(levels) for part in (f"level{number}", "x")]
    side = [tensor(*keys[: 2 * number], "side", device=f"cuda:{number % 9}") for number in range(levels)]
    return tree(*side, tensor(*keys, "weight_with_a_very_long_name_that_ends_here"))


MIXED = tree(
    *(tensor("net", f"layer{number}.weight", device=f"cuda:{number}", shape=(64, 3)) for number in range(16)),
    tensor("名前", "重み", device="cpu", shape=(2,) * 20),
    tensor("e\u0301" * 30, device="privateuseone:12345678901234567890", dtype="float8_e4m3fn"),
    values=(value("text", text="word " * 30, type="str"),),
)


@table("block", [MIXED, deep(40), deep(3)], ids=["mixed", "deep", "shallow"])
def test_rows_fit_the_width_and_sizes_end_in_one_column(block) -> None:
    for width in WIDTHS:
        lines = seen(lay_tree(block, paint(width)))
        assert len(lines) == len(block.rows) + 1
        assert max(map(width_of, lines)) <= width
        ends = {width_of(line) for line in lines if line.endswith(" B")}
        assert len(ends) == (width >= 52), (width, ends)


def test_a_device_is_told_by_its_name_and_its_color() -> None:
    lines = list(lay_tree(MIXED, paint(80, depth="16")))
    assert "\x1b[34m●\x1b[0m   cuda:0" in lines[3]
    assert "\x1b[33m●\x1b[0m   cuda:1" in lines[5]
    assert "●●● cuda:0-15" in seen(lines)[2]


def test_colors_are_those_of_the_whole_file_whatever_is_shown() -> None:
    tensors = [tensor(f"t{number}", device=f"cuda:{number}") for number in range(3)]
    whole = tree(*tensors)
    colored = replace_colors(whole, {"cuda:0": 0, "cuda:1": 1, "cuda:2": 2})
    only = colored._replace(rows=colored.rows[2:])
    assert list(lay_tree(only, paint()))[1:] == list(lay_tree(whole, paint()))[3:]


def replace_colors(block: object, colors: dict[str, int]) -> object:
    return block._replace(tree=replace(block.tree, colors=colors))


def test_devices_that_nobody_counted_are_not_counted() -> None:
    many = tree(*(tensor("net", f"w{number:03}", device=f"cuda:{number}") for number in range(100)))
    for width in WIDTHS:
        line = seen(lay_tree(many, paint(width)))[1]
        assert "+64" not in line
        assert "65 devices" not in line


def test_levels_beyond_the_room_are_numbers() -> None:
    lines = seen(lay_tree(deep(40), paint(80)))
    assert any("39: " in line for line in lines)
    assert any(line.startswith("        level") for line in lines)
    assert lines[-1].split()[1].endswith("s_here")
    assert not any(": " in line for line in seen(lay_tree(deep(3), PLAIN)))


def test_sums_are_right_aligned_and_shorter_where_there_is_little_room() -> None:
    wide, narrow = (seen(lay_tree(MIXED, paint(width)))[2] for width in (140, 60))
    assert "16 tensors, 3,072 params  " in wide
    assert "16 tensors " in narrow
    assert "params" not in narrow


def test_names_take_the_room_that_they_are_shown_in() -> None:
    for is_unicode in (True, False):
        lines = seen(lay_tree(MIXED, paint(100, is_unicode=is_unicode)))
        assert max(map(len, lines)) <= 100 + 30 * is_unicode  # accents take no columns
        assert len({width_of(line) for line in lines if line.endswith(" B")}) == 1


def test_nothing_sought_is_found() -> None:
    assert list(lay_tree(tree(), PLAIN)) == []
    assert list(lay_tree(tree()._replace(sought=True), PLAIN)) == ["Nothing matches the filter."]


def test_columns_give_way_in_turn() -> None:
    natural = [64, 28, 44, 24, 12]
    for room in range(10, 200):
        widths = fitted(natural, room)
        shown = [width for width in widths if width]
        assert sum(shown) + 2 * (len(shown) - 1) <= max(room, 1 + 2 + 13)
        assert widths[0] >= 1
        assert widths[1] >= 13
    assert fitted([5, 4, 3, 2, 1], 80) == [5, 4, 3, 2, 1]


def test_how_many_tensors_there_are_is_cut_nowhere() -> None:
    """Where there is no room for all digits, three of them stand for the others."""
    whole = tree(*(tensor("net", f"layer_number_{number}", "weight") for number in range(1234)))
    block = whole._replace(rows=[whole.rows[0], *whole.rows[-2:]])  # a page of it
    for width in (*range(38, 70), 80):
        header, net, *_ = seen(lay_tree(block, paint(width)))
        counts = net[net.index("net") :]
        assert ("1,234 tensors" in counts or "1.23K tensors" in counts) == ("Shape" in header), (width, net)
        assert "…" not in counts
