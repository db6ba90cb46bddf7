from __future__ import annotations

from inspector.containers.deepspeed_joining import (
    count_of,
    entry,
    items_of,
    named,
    pairs_of,
    shapes_of,
    size_of,
    stage_of,
)
from inspector.pickles.values import Call, Dict, Global


def test_entries_are_reached_by_keys() -> None:
    inner = Dict([("b", 3), (1, 4)])
    assert entry(Dict([("a", inner)]), "a", "b") == 3
    assert entry(Dict([("a", inner)]), "x", "b") is None
    ordered = Call(Global("collections", "OrderedDict"), (), "reduce")
    assert (pairs_of(ordered), pairs_of(3)) == ([], [])
    ordered.pairs = inner.pairs
    assert named(ordered) == {"b": 3}
    assert (items_of((1, 2)), items_of(None), items_of(3)) == ([1, 2], [], [3])


def test_sizes_and_shapes() -> None:
    size = Call(Global("torch", "Size"), ((2, 3),), "reduce")
    assert size_of(size) == size_of([2, 3]) == (2, 3)
    assert size_of(Call(Global("torch", "Size"), (), "reduce")) == ()
    for other in (3, (2, -1), (2.0,), (1,) * 65, (True,)):
        assert size_of(other) is None
    assert shapes_of([Dict([("a", size)]), Dict([("a", 3), ("b", size)])]) == [{"a": (2, 3)}, {}]


def test_stages_and_counts() -> None:
    assert stage_of(Dict([("zero_stage", 1)])) == 1
    assert stage_of(Dict([("zero_stage", Call(Global("x", "Y"), (3,), "reduce"))])) == 3
    assert stage_of(Dict([("zero_stage", Call(Global("x", "Y"), (), "reduce"))])) is None
    assert stage_of(Dict([("fp32_flat_groups", [])])) == 3
    assert stage_of(Dict([("single_partition_of_fp32_groups", [])])) == 2
    assert stage_of(3) is None
    assert (count_of([2, 4]), count_of(3), count_of(None), count_of([-1, "x", 1 << 70])) == (4, 3, 0, 0)
