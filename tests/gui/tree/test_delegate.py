from __future__ import annotations

from inspector.gui.tree.delegate import INDENT, indents_for, spans_in_cut, spans_in_name
from inspector.report.query import parse_query
from tests.gui import fakes


def test_deep_rows_are_indented_less_and_then_not_at_all() -> None:
    assert indents_for(3, 220) == (INDENT, 0)
    step, shift = indents_for(14, 220)
    assert step < INDENT
    assert shift == 0
    for deepest in (40, 300):
        for width in (60, 180, 400):
            step, shift = indents_for(deepest, width)
            assert step * (deepest - shift) <= max(0, width - 120)


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
