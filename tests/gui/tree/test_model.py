from __future__ import annotations

import random

import pytest
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt

from inspector.gui.tree.model import NODE_ROLE, Column, TreeModel, cell_text
from inspector.report.outline.flat import natural_key
from inspector.report.tree import Tree
from tests.gui import fakes


@pytest.fixture
def tree() -> Tree:
    return fakes.make_tree(fakes.training_leaves(), fakes.COLOURS)


@pytest.fixture
def model(qapp, tree) -> TreeModel:
    model = TreeModel()
    model.set_tree(tree)
    return model


def find(tree: Tree, *names: str) -> int:
    node = 0
    for name in names:
        node = next(child for child in tree.nodes[node].children if tree.nodes[child].name == name)
    return node


def names_below(model: TreeModel, index: QModelIndex | None = None) -> list[str]:
    index = index or QModelIndex()
    return [model.index(row, 0, index).data() for row in range(model.rowCount(index))]


def test_qt_finds_no_fault_with_it(model, qtmodeltester):
    qtmodeltester.check(model)


def test_qt_finds_no_fault_with_it_filtered_and_sorted(model, tree, qtmodeltester):
    model.set_filter([find(tree, "model", "layer2"), find(tree, "epoch")])
    model.sort(Column.SIZE, Qt.SortOrder.DescendingOrder)
    qtmodeltester.check(model)


def test_qt_finds_no_fault_with_an_empty_one(qapp, qtmodeltester):
    qtmodeltester.check(TreeModel())


def test_rows_come_in_the_order_of_the_file(model, tree):
    assert names_below(model) == [tree.nodes[child].name for child in tree.nodes[0].children]
    layer = model.index_of(find(tree, "model", "layer1", "0"))
    assert names_below(model, layer) == ["conv1", "conv2", "bn1"]
    assert layer.parent().data() == "layer1"
    assert not model.index_of(0).isValid()
    assert not model.index_of(10**9).isValid()


def test_what_the_cells_say(model, tree):
    weight = find(tree, "model", "conv1", "weight")
    said = [model.index_of(weight, column).data() for column in Column]
    assert said == ["weight", "cuda:0", "64 \u00d7 3 \u00d7 7 \u00d7 7", "float32", "37.6 KB", ""]
    epoch = find(tree, "epoch")
    assert [model.index_of(epoch, column).data() for column in Column] == ["epoch", "", "", "int", "", "41"]
    assert model.index_of(weight).data(NODE_ROLE) == weight
    assert [model.headerData(column, Qt.Orientation.Horizontal) for column in Column] == [
        "Name",
        "Device",
        "Shape",
        "Type",
        "Size",
        "Value",
    ]
    assert model.headerData(0, Qt.Orientation.Vertical) is None
    assert model.headerData(0, Qt.Orientation.Horizontal, Qt.ItemDataRole.DecorationRole) is None


def test_tooltips_and_spoken_texts(model, tree):
    folder = find(tree, "model")
    tip, spoken = Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole
    assert "cuda:0: " in model.index_of(folder, Column.DEVICE).data(tip)
    assert "29 tensors, " in model.index_of(folder, Column.SIZE).data(tip)
    assert " bytes" in model.index_of(folder, Column.SIZE).data(tip)
    assert model.index_of(find(tree, "epoch"), Column.SIZE).data(tip) == ""
    assert "41" in model.index_of(find(tree, "epoch"), Column.VALUE).data(tip)
    assert model.index_of(folder, Column.DEVICE).data(spoken) == "Device: cuda:1, cuda:0"
    assert model.index_of(find(tree, "epoch"), Column.SHAPE).data(spoken) == "Shape: none"
    assert model.index_of(folder).data(Qt.ItemDataRole.DecorationRole) is None
    assert model.data(QModelIndex()) is None


@pytest.mark.parametrize(
    "names", [["layer10", "layer2", "layer1"], ["a1b10", "a1b9", "a1b"], ["\u00b2", "2", "x", "10", ""]]
)
def test_natural_order(names):
    random.Random(1).shuffle(names)
    ordered = sorted(names, key=natural_key)
    assert ordered in (
        ["layer1", "layer2", "layer10"],
        ["a1b", "a1b9", "a1b10"],
        ["", "2", "10", "x", "\u00b2"],
    )


def test_sorting_keeps_what_is_selected_and_comes_back_to_the_files_order(model, tree):
    kept = QPersistentModelIndex(model.index_of(find(tree, "model", "layer4", "0"), Column.TYPE))
    before = names_below(model)
    model.sort(Column.SIZE, Qt.SortOrder.DescendingOrder)
    assert names_below(model)[:2] == ["optimizer", "model"]
    assert kept.isValid()
    assert kept.sibling(kept.row(), 0).data() == "0"
    model.sort(Column.NAME, Qt.SortOrder.AscendingOrder)
    assert names_below(model) == sorted(before, key=natural_key)
    model.sort(-1)
    model.sort(-1)
    assert names_below(model) == before
    assert kept.column() == Column.TYPE


def test_the_filter_shows_matches_what_leads_there_and_what_is_below(model, tree):
    model.set_filter([find(tree, "model", "layer2", "1"), find(tree, "model", "fc")])
    assert names_below(model) == ["model"]
    inside = model.index_of(find(tree, "model"))
    assert names_below(model, inside) == ["layer2", "fc"]
    block = model.index_of(find(tree, "model", "layer2", "1"))
    assert names_below(model, block) == ["conv1", "conv2", "bn1"]
    assert not model.index_of(find(tree, "model", "layer1")).isValid()
    assert model.index_of(find(tree, "model", "layer2", "1", "bn1", "weight")).isValid()


def test_a_match_with_further_matches_below_shows_only_those(model, tree):
    model.set_filter([find(tree, "model", "layer2"), find(tree, "model", "layer2", "1", "bn1")])
    assert names_below(model, model.index_of(find(tree, "model", "layer2"))) == ["1"]


def test_a_filter_without_matches_shows_nothing_and_none_shows_all(model, tree):
    model.set_filter([])
    assert model.rowCount() == 0
    model.set_filter(None)
    assert model.rowCount() == len(tree.nodes[0].children)


def test_out_of_range_and_children_of_other_columns(model):
    assert not model.index(0, 99).isValid()
    assert not model.index(99, 0).isValid()
    assert not model.index(0, 0, model.index(2, 1)).isValid()
    assert model.rowCount(model.index(2, 1)) == 0
    assert model.hasChildren()
    assert not model.parent(QModelIndex()).isValid()


def test_values_show_their_text_and_groups_none():
    assert cell_text(fakes.make_node(kind="value", text="41"), Column.VALUE) == "41"
    assert cell_text(fakes.make_node(kind="group"), Column.SIZE) == ""


def test_the_tooltip_of_a_name_has_the_whole_path_and_all_counts(model, tree):
    tip = Qt.ItemDataRole.ToolTipRole
    weight = find(tree, "model", "layer1", "0", "conv1", "weight")
    assert "model.layer1.0.conv1.weight" in model.index_of(weight).data(tip)
    group = tree.nodes[find(tree, "model", "layer1")]
    group.parameters, group.integers = 12_345, 2
    told = model.index_of(find(tree, "model", "layer1")).data(tip)
    assert "model.layer1\n" in told
    assert "12,345 parameters, " in told
    assert "2 matrices of integers, maybe packed weights, not counted" in told


def test_groups_are_sorted_by_what_they_count(model, tree):
    blocks = [find(tree, "model", f"layer{stage}") for stage in (1, 2, 3, 4)]
    for node, parameters in zip(blocks, (9_000, 10_000_000, 200, 80_000), strict=True):
        tree.nodes[node].parameters = parameters
    model.sort(Column.SHAPE, Qt.SortOrder.DescendingOrder)
    shown = names_below(model, model.index_of(find(tree, "model")))
    assert [name for name in shown if name.startswith("layer")] == ["layer2", "layer4", "layer1", "layer3"]
    tree.nodes[blocks[0]].tensors = 99
    model.sort(Column.TYPE, Qt.SortOrder.DescendingOrder)
    assert names_below(model, model.index_of(find(tree, "model")))[0] == "layer1"


def test_nodes_are_listed_as_they_are_sorted(model, tree):
    nodes = [
        find(tree, "optimizer"),
        find(tree, "model", "fc"),
        find(tree, "model", "conv1"),
        find(tree, "epoch"),
    ]
    names = lambda: [tree.nodes[node].name for node in model.in_order(nodes)]  # noqa: E731 - asked twice
    assert names() == ["epoch", "conv1", "fc", "optimizer"]
    model.sort(Column.SIZE, Qt.SortOrder.DescendingOrder)
    assert names() == ["optimizer", "fc", "conv1", "epoch"]


def test_a_filter_shows_what_its_words_say_for_any_matches(model, tree):
    """Compared with a walk over all rows: matches, what is above them, and what is below the innermost."""
    rng = random.Random(3)

    def above(node: int) -> set[int]:
        found: set[int] = set()
        while tree.nodes[node].parent > 0:
            node = tree.nodes[node].parent
            found.add(node)
        return found

    for _ in range(40):
        matches = rng.sample(range(1, len(tree.nodes)), rng.choice([1, 2, 5, 40]))
        parents = set().union(*map(above, matches))
        innermost = set(matches) - parents
        wanted = {
            node
            for node in range(1, len(tree.nodes))
            if node in parents or node in matches or not innermost.isdisjoint(above(node))
        }
        model.set_filter(matches)
        shown, todo = set(), [0]
        while todo:
            below = list(model.below(todo.pop()))
            shown |= set(below)
            todo += below
        assert shown == wanted
        assert {node for node in range(1, len(tree.nodes)) if model.index_of(node).isValid()} == wanted
        assert all(model.is_match(node) == (node in matches) for node in range(1, len(tree.nodes)))


@pytest.mark.parametrize("is_filtered", [False, True])
def test_some_rows_below_a_node_cost_no_more_than_those(model, tree, is_filtered):
    if is_filtered:
        model.set_filter(range(1, len(tree.nodes)))
    branch = find(tree, "model")
    assert model.first_below(branch, 3) == list(model.below(branch))[:3]
    assert model.first_below(0, 99) == list(model.below(0))
