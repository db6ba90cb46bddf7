from __future__ import annotations

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.report.outline.node import count_parameters
from inspector.report.tree import build_tree
from tests.corpus import varied
from tests.unit.report.rows import checkpoint, storage, tensor


def test_what_is_tied_counts_once_and_nothing_but_parameters() -> None:
    found = checkpoint(
        tensor("w", shape=(4,), storage="0"),
        tensor("tied", shape=(4,), storage="0"),
        tensor("half", shape=(2,), stride=(1,), nbytes=8, storage="0"),
        tensor("b", shape=(3, 5), storage="1"),
        tensor("mean", shape=(100,), role="buffer"),
        tensor("scales", shape=(9,), part_of=3),
        storage("0", tensors=3),
    )
    assert count_parameters(found) == 4 + 15
    assert count_parameters(checkpoint()) == 0


def test_sizes_without_end_are_not_multiplied() -> None:
    assert count_parameters(checkpoint(tensor("w", shape=(1 << 63,) * 9, nbytes=1 << 600))) == 1 << 600


def test_it_is_what_the_tree_says() -> None:
    wrong = {}
    for case in varied()[::2]:
        try:
            found = open_checkpoint(str(case.path))
        except CheckpointError:  # some are cut
            continue
        expected = build_tree(found, {}).nodes[0].parameters
        if count_parameters(found) != expected:
            wrong[case.name] = (count_parameters(found), expected)
    assert wrong == {}
