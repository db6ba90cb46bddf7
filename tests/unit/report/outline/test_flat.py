from __future__ import annotations

import random

import pytest

from inspector.report.outline import flat
from inspector.report.outline.flat import Column, Order, flat_rows
from inspector.report.outline.nodes import Nodes
from inspector.report.tree import Tree, build_tree
from tests.unit.report.rows import checkpoint, tensor, value

ROWS = checkpoint(
    tensor("m", "layer10.w", device="cuda:1", shape=(9,), nbytes=36, dtype="int8"),
    tensor("m", "layer2.w", device="cpu", shape=(20, 2), nbytes=160),
    tensor("a", device="cuda:0", shape=(3,), nbytes=12),
    tensor("a", "part", part_of=2),
    value("epoch", text="3"),
)
TREE = build_tree(ROWS, {})


def names(order: Order, matches: tuple[int, ...] | None = None, tree: Tree = TREE) -> list[str]:
    return [tree.nodes[id_].path for id_ in flat_rows(tree, matches, order).nodes]


def test_all_tensors_stand_in_one_list_sorted_by_any_column() -> None:
    whole = ["m/layer10.w", "m/layer2.w", "a", "a/part"]
    assert sorted(names(Order())) == sorted(whole)
    assert names(Order(Column.NAME)) == ["a", "a/part", "m/layer2.w", "m/layer10.w"]
    assert names(Order(Column.SIZE, descending=True))[:2] == ["m/layer2.w", "m/layer10.w"]
    assert names(Order(Column.DEVICE))[0] in ("m/layer2.w", "a/part")
    assert names(Order(Column.SHAPE))[-1] == "m/layer2.w"
    assert names(Order(Column.TYPE))[-1] == "m/layer10.w"


def test_what_a_search_found_is_listed_values_too() -> None:
    found = tuple(sorted((TREE.value_nodes[0], TREE.tensor_nodes[1])))
    assert names(Order(Column.VALUE, descending=True), found) == ["epoch", "m/layer2.w"]
    assert flat_rows(TREE, (), Order()) == ((), 0)


def test_a_list_has_an_end_and_says_how_much_there_is(monkeypatch) -> None:
    monkeypatch.setattr(flat, "MOST_LISTED", 2)
    for order in (Order(), Order(Column.SIZE)):
        rows = flat_rows(TREE, None, order)
        assert (len(rows.nodes), rows.total) == (2, 4)


@pytest.mark.parametrize("descending", [False, True])
def test_blocks_are_merged_into_one_order(monkeypatch, descending) -> None:
    monkeypatch.setattr(flat, "_BLOCK", 7)
    sizes = list(range(40))
    random.Random(5).shuffle(sizes)
    tree = build_tree(checkpoint(*(tensor(f"t{size}", nbytes=size) for size in sizes)), {})
    listed = [tree.nodes[id_].nbytes for id_ in flat_rows(tree, None, Order(Column.SIZE, descending)).nodes]
    assert listed == sorted(sizes, reverse=descending)


def test_no_row_is_made_to_list_all_tensors(monkeypatch) -> None:
    made: list[int] = []
    make = Nodes._make
    monkeypatch.setattr(Nodes, "_make", lambda nodes, id_: made.append(id_) or make(nodes, id_))

    for column in (-1, *Column):
        assert flat_rows(TREE, None, Order(column)).total == 4, column

    assert not made
