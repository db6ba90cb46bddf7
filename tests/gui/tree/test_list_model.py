from __future__ import annotations

import pytest
from PySide6.QtCore import QModelIndex, Qt

from inspector.gui.tree.list_model import ListModel
from inspector.gui.tree.model import NODE_ROLE, Column, TreeModel
from inspector.report.tree import Tree
from tests.gui import fakes


@pytest.fixture
def tree() -> Tree:
    return fakes.make_tree(fakes.training_leaves(), fakes.COLOURS)


@pytest.fixture
def source(qapp, tree) -> TreeModel:
    source = TreeModel()
    source.set_tree(tree)
    return source


@pytest.fixture
def model(source) -> ListModel:
    return ListModel(source)


def test_rows_as_one_list(model, tree, qtmodeltester):
    nodes = tree.tensor_nodes[::-1]
    model.set_rows(nodes, total=99_999)
    qtmodeltester.check(model)
    assert (model.rowCount(), model.columnCount()) == (len(nodes), len(Column))
    row = tree.nodes[nodes[0]]
    first = model.index(0, 0)
    assert (first.data(), first.data(NODE_ROLE), model.node_id(first)) == (row.path, nodes[0], nodes[0])
    assert model.index(0, Column.SHAPE).data() == row.shape_text
    assert first.data(Qt.ItemDataRole.AccessibleTextRole) == f"Name: {row.path}"
    assert row.path in first.data(Qt.ItemDataRole.ToolTipRole)
    assert first.data(Qt.ItemDataRole.CheckStateRole) is None
    assert (model.level(nodes[0]), model.hasChildren(first), model.node_id(QModelIndex())) == (0, False, 0)
    assert model.index_of(nodes[50]).row() == 50
    assert not model.index_of(0).isValid()
    assert model.in_order([nodes[7], nodes[3]]) == [nodes[3], nodes[7]]
    assert (model.below(0), model.below(nodes[0]), model.first_below(0, 2)) == (nodes, (), list(nodes[:2]))


def test_the_title_says_how_many_of_how_many_are_listed(model, tree):
    nodes, horizontal = tree.tensor_nodes, Qt.Orientation.Horizontal
    model.set_rows(nodes, total=99_999)
    assert model.headerData(0, horizontal) == f"Path (first {len(nodes):,} of 99,999)"
    assert model.headerData(1, horizontal) == "Device"
    assert model.headerData(0, Qt.Orientation.Vertical) is None
    model.set_rows(nodes[:2], total=2)
    assert (model.headerData(0, horizontal), model.rowCount()) == ("Path", 2)
    assert model.index(1, 0).data() == tree.nodes[nodes[1]].path


def test_another_order_is_asked_for_and_kept_for_the_tree(model, source):
    wanted = []
    model.sort_wanted.connect(lambda *asked: wanted.append(asked))
    model.sort(Column.SIZE, Qt.SortOrder.DescendingOrder)
    model.sort(Column.SIZE, Qt.SortOrder.DescendingOrder)
    assert wanted == [(Column.SIZE, True)]
    assert source.order == (Column.SIZE, True)


def test_a_sample_has_the_first_rows_and_some_from_all_over(model):
    nodes = tuple(range(1, 1001))
    model._nodes = nodes
    found = model.sample()
    assert found[:60] == nodes[:60]
    assert len(found) < 150
    assert max(found) > 980
    model._nodes = (3, 1)
    assert model.sample() == (3, 1)
