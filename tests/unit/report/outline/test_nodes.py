"""Rows are made when they are asked for, and are then what they would be had all been made at once."""

from __future__ import annotations

import pytest

from inspector.report.outline import nodes
from inspector.report.tree import build_tree
from tests.unit.report.rows import checkpoint, tensor, value
from tests.work import count_steps

FILE = checkpoint(
    tensor("m", "a.weight", device="cuda:1", nbytes=12),
    tensor("m", "a.bias", nbytes=2),
    value("m", "epoch", type="int", text="3"),
)


def test_rows_are_found_by_id_from_both_ends_and_in_slices() -> None:
    rows = build_tree(FILE, {}).nodes
    names = ["", "m", "a", "weight", "bias", "epoch"]
    assert [row.name for row in rows] == names
    assert [rows[place].name for place in range(-len(rows), 0)] == names
    assert [row.name for row in rows[1:3]] == ["m", "a"]
    assert len(rows) == 6
    with pytest.raises(IndexError):
        rows[6]


def test_a_row_is_made_once_and_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = build_tree(FILE, {}).nodes
    assert rows[3] is rows[3]
    monkeypatch.setattr(nodes, "_MOST_MADE", 2)
    first = rows[3]
    assert [row.name for row in rows] == ["", "m", "a", "weight", "bias", "epoch"]
    assert rows[3] is not first
    assert rows[3] == first


def test_large_groups_are_made_at_once_and_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "_LARGE", 3)
    monkeypatch.setattr(nodes, "_MOST_MADE", 1)
    rows = build_tree(FILE, {}).nodes
    large = rows[0], rows[1]
    assert [row.name for row in rows][:2] == ["", "m"]
    assert (rows[0], rows[1]) == large
    assert rows[0] is large[0]
    assert rows[1] is large[1]


def test_no_row_is_made_before_it_is_asked_for() -> None:
    def steps(count: int) -> int:
        rows = build_tree(checkpoint(*(tensor("m", f"l{place}.w") for place in range(count))), {}).nodes
        return count_steps(lambda: rows[3])

    assert steps(1000) == steps(100)


def test_a_slice_of_parts_counts_its_rows() -> None:
    parts = [tensor("whole", f"p{place}", part_of=0, storage=None, nbytes=1) for place in range(2001)]
    tree = build_tree(checkpoint(tensor("whole", storage=None, nbytes=9000), *parts), {})
    whole = tree.nodes[1]
    assert (whole.kind, whole.nbytes, whole.tensors, len(whole.children)) == ("tensor", 2001, 1, 3)
    slices = [tree.nodes[child] for child in whole.children]
    assert [(row.kind, row.tensors, row.nbytes) for row in slices] == [
        *(("bucket", 1000, 1000),) * 2,
        ("bucket", 1, 1),
    ]
    assert tree.nodes[0].tensors == 1
