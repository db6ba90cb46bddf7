from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.report.jsonable import cut_at
from inspector.report.query import matching_nodes, parse_query, searchable
from inspector.report.tree import BUCKET_ROWS, build_tree
from inspector.resources import demo_path
from tests.unit.report.rows import BLANK, tensor

CHECKPOINT = open_checkpoint(str(demo_path()))
TREE = build_tree(CHECKPOINT, {})


def test_groups_sum_up_what_is_below_the_level() -> None:
    shown = cut_at(CHECKPOINT, TREE, 1)
    groups = shown.groups
    assert shown.tensors == ()
    assert [row.path for row in shown.values] == ["epoch", "best_accuracy"]
    tops = {row["path"]: row for row in groups}
    assert tops["model/"]["tensors"] == 92
    assert sum(row["tensors"] for row in tops.values()) == len(CHECKPOINT.tensors)
    deeper = cut_at(CHECKPOINT, TREE, 2)
    assert [row.path for row in deeper.tensors] == ["rng_state/torch"]
    assert all(row in deeper.groups for row in groups)
    every = cut_at(CHECKPOINT, TREE, 99)
    assert (every.tensors, every.values) == (CHECKPOINT.tensors, CHECKPOINT.values)


def test_what_was_sought_is_cut_as_well() -> None:
    only = matching_nodes(parse_query("bias"), searchable(CHECKPOINT), TREE)
    shown = cut_at(CHECKPOINT, TREE, 3, only)
    groups = shown.groups
    assert {row.path for row in shown.tensors} >= {"model/head.bias", "optimizer/state/2/exp_avg"}
    assert not [row.path for row in shown.tensors if row.path.endswith("weight")]
    assert {row["path"] for row in groups} >= {"model/", "model/head."}
    assert "rng_state/" not in {row["path"] for row in groups}


def test_a_slice_of_a_long_list_is_no_group_of_the_file() -> None:
    many = replace(BLANK, tensors=tuple(tensor(f"t{number}") for number in range(2 * BUCKET_ROWS + 1)))
    tree = build_tree(many, {})
    assert cut_at(many, tree, 1) == ((), (), ())
    assert cut_at(many, tree, 2).tensors == many.tensors
