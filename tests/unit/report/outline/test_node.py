from __future__ import annotations

from inspector.report import tree
from inspector.report.outline.node import Node


def test_a_row_has_no_counts_before_it_is_summed_up() -> None:
    node = Node(0, 1, "value", "lr", [], 0, (), "", "", "float", 0, 0, "0.1")
    assert (node.path, node.parameters, node.integers) == ("", 0, 0)
    assert tree.Node is Node
