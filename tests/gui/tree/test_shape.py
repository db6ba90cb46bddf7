from __future__ import annotations

from inspector.gui.tree.shape import Shape
from inspector.report.tree import Tree, build_tree
from tests.gui import fakes
from tests.unit.values.rows import checkpoint, tensor


def check(tree: Tree) -> None:
    shape, nodes = Shape(tree.nodes), tree.nodes
    for node_id, node in enumerate(nodes):
        assert list(shape.below(node_id)) == list(node.children)
        assert shape.has_below(node_id) == bool(node.children)
        last = node_id
        while nodes[last].children:
            last = nodes[last].children[-1]
        assert shape.last_below(node_id) == last
        assert (shape.parents[node_id], shape.rows[node_id]) == (node.parent, node.row)


def test_rows_stand_where_the_nodes_say():
    check(fakes.make_tree(fakes.training_leaves(), fakes.COLOURS))
    check(build_tree(checkpoint(*(tensor(f"a.{place}.w") for place in range(5))), {}))
