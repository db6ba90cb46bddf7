from __future__ import annotations

from PySide6.QtGui import QFont, QFontMetricsF

from inspector.gui.tree.delegate import (
    INDENT,
    _cut,
    indent_for,
    least_width,
    spans_in_cut,
    spans_in_name,
)
from inspector.gui.tree.model import Column
from inspector.report.query import parse_query
from tests.gui import fakes


def test_rows_are_indented_less_where_they_are_deep_and_never_by_less_than_six_pixels() -> None:
    assert indent_for(0, 220) == indent_for(3, 220) == INDENT
    assert indent_for(14, 250) == 9
    for deepest in (14, 64, 300):
        for width in (60, 180, least_width(deepest)):
            assert indent_for(deepest, width) == 6, (deepest, width)
    assert least_width(300) == least_width(64)  # what nests deeper is not indented further


def test_a_count_is_cut_before_its_noun_and_not_within(qapp) -> None:
    metrics = QFontMetricsF(QFont())
    room = metrics.horizontalAdvance("1,204 te")
    assert _cut("1,204 tensors", Column.TYPE, metrics, room) == "1,204"
    assert _cut("1,204 tensors", Column.TYPE, metrics, 2 * room) == "1,204 tensors"
    some = metrics.horizontalAdvance("1,204 tens\u2026") + 1
    assert _cut("1,204 tensors", Column.TYPE, metrics, some) == "1,204 tens\u2026"
    assert _cut("1,204 tensors", Column.TYPE, metrics, 9) == "\u2026"
    assert _cut("640 \u00d7 481", Column.SHAPE, metrics, metrics.horizontalAdvance("640 \u00d7 4")) != "640"


def test_what_matched_is_marked_in_the_name_it_stands_in() -> None:
    row = fakes.make_node(kind="tensor", name="weight", path="m/layer1.0.weight")
    group = fakes.make_node(kind="group", name="layer1.0", path="m/layer1.0.")
    spans = {
        "wei": ([(0, 3)], []),
        "0.w": ([(0, 1)], []),
        "layer": ([], [(0, 5)]),
        "1.0": ([], [(5, 8)]),
        "layer?.*t": ([(5, 6)], []),
        "-wei device:cpu": ([], []),
    }
    for text, (in_row, in_group) in spans.items():
        query = parse_query(text)
        found = spans_in_name(query, row, row.name), spans_in_name(query, group, group.name)
        assert found == (in_row, in_group), text
    cut = fakes.make_node(kind="tensor", name="wei\u2026", path="m/weight")
    assert spans_in_name(parse_query("wei"), cut, cut.name) == []
    assert spans_in_name(parse_query("m/layer"), row, row.path) == [(0, 7)]


def test_what_is_marked_in_a_cut_name_is_what_matched():
    name, cut = "model.layers.4.attn.q_proj.weight", "\u20264.attn.q_proj.weight"
    assert spans_in_cut([(0, 5)], name, name) == [(0, 5)]
    for word in ("attn", "q_proj", "4"):
        start = name.index(word)
        ((first, last),) = spans_in_cut([(start, start + len(word))], name, cut)
        assert cut[first:last] == word
    start = name.index("rs.4")
    assert spans_in_cut([(start, start + 4), (0, 5)], name, cut) == [(1, 2)]
    assert spans_in_cut([(0, 5)], name, cut) == [(0, len(cut))]
    assert spans_in_cut([(0, 5)], "abcdefgh", "ab\u2026gh") == [(0, 5)]
    assert spans_in_cut([], name, cut) == []
