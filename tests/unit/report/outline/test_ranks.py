from __future__ import annotations

import random
from typing import cast

from inspector.report.outline.flat import Column, natural_key, number_key, rank_by
from inspector.report.outline.nodes import Nodes
from inspector.report.tree import build_tree
from tests.unit.report.rows import checkpoint, tensor, value

ROWS = checkpoint(
    tensor("m", "layer10.w", device="cuda:10", shape=(9,), nbytes=36, dtype="int8"),
    tensor("m", "layer2.w", device="cuda:2", shape=(20, 2), nbytes=160),
    tensor("a", device="cuda:0", shape=(3,), nbytes=12),
    tensor("a", "part", part_of=2, nbytes=5),
    value("epoch", text="3", type="int"),
    value("name", text='"x"', type="str"),
)
NODES = cast("Nodes", build_tree(ROWS, {}).nodes)


def test_rows_are_ranked_by_what_their_columns_show() -> None:
    for id_, node in enumerate(NODES):
        is_leaf = node.kind in ("tensor", "value")
        ranks = {
            Column.NAME: natural_key(node.name),
            Column.DEVICE: natural_key(node.device_text),
            Column.SHAPE: natural_key(node.shape_text) if is_leaf else number_key(node.parameters),
            Column.TYPE: natural_key(node.type_text) if is_leaf else number_key(node.tensors),
            Column.SIZE: number_key(node.nbytes),
            Column.VALUE: natural_key(node.text),
        }
        for column, rank in ranks.items():
            for nodes in (NODES, tuple(NODES)):
                assert rank_by(nodes, column)(id_) == rank, (node, column, type(nodes))
        for nodes in (NODES, tuple(NODES)):
            assert rank_by(nodes, Column.NAME, paths=True)(id_) == natural_key(node.path), (node, type(nodes))


def test_numbers_within_names_are_compared_as_numbers() -> None:
    rows = ["", "1", "2", "02x", "10", "a", "a0", "a1b", "a1b9", "a01b10", "a1b" + "9" * 5000, "ab", "b"]
    mixed = random.Random(3).sample(rows, len(rows))

    assert sorted(mixed, key=natural_key) == rows
    assert natural_key("Layer.007") == natural_key("layer.7")
    # So many digits that they share the sign for their number: in some order, and without an error.
    assert natural_key("9" * 60_000) < natural_key("9" * 60_001)


def test_numbers_come_in_their_order_and_before_all_texts() -> None:
    numbers = [0, 1, 9, 10, 99, 100, 10**30]

    assert sorted(map(number_key, reversed(numbers))) == [number_key(number) for number in numbers]
    assert number_key(10**30) < natural_key("a")
