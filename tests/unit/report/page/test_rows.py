from __future__ import annotations

from inspector.records import replace
from inspector.report.page import tree_rows
from inspector.report.tree import build_tree
from tests.unit.report.rows import BLANK, tensor, value


def test_rows_down_to_a_level_or_with_their_ancestors() -> None:
    rows = (tensor("a", "b", "w", device="cuda:0"), tensor("a", "c"))
    tree = build_tree(replace(BLANK, tensors=rows, values=(value("n"),)), {})
    names = [(tree.nodes[id_].name, level) for id_, level in tree_rows(tree).rows]
    assert names == [("n", 0), ("a", 0), ("b", 1), ("w", 2), ("c", 1)]
    assert [level for _, level in tree_rows(tree, 1).rows] == [0, 0]
    found = tree_rows(tree, only=[tree.tensor_nodes[0]])
    assert [tree.nodes[id_].name for id_, _ in found.rows] == ["a", "b", "w"]
    assert found.sought
    assert [line.split()[0] for line in tree_rows(tree).plain()] == ["Name", "n", "a", "b", "w", "c"]


def test_a_branch_of_values_has_nothing_behind_its_name() -> None:
    tree = build_tree(replace(BLANK, values=(value("a", "b"), value("a", "c"))), {})
    assert [line.split() for line in tree_rows(tree).plain()][1] == ["a"]


def test_nothing_is_said_of_no_rows_unless_they_were_sought() -> None:
    tree = build_tree(BLANK, {})
    assert list(tree_rows(tree).plain()) == []
    assert list(tree_rows(tree, only=()).plain()) == ["Nothing matches the filter."]
