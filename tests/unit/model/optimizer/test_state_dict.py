"""Optimizer state dicts as they lie in a file, malformed ones too."""

from __future__ import annotations

from inspector.limits import Limits
from inspector.model.checkpoint import Key
from inspector.model.optimizer.state_dict import OptimizerDraft, OptimizerReader, looks_like_optimizer
from inspector.pickles.values import Call, Dict, Global, Value


def group(**options: Value) -> Dict:
    return Dict(list(options.items()))


def optimizer(state: Value, *groups: Value) -> Dict:
    return Dict([("state", state), ("param_groups", list(groups))])


def read_optimizer(keys: tuple[Key, ...], path: str, value: Value) -> OptimizerDraft:
    return OptimizerReader(Limits().counted()).read(keys, path, value)


def test_what_looks_like_an_optimizer() -> None:
    assert looks_like_optimizer(optimizer(Dict([])))
    ordered = Call(Global("collections", "OrderedDict"), (), "reduce")
    ordered.pairs = optimizer(Dict([])).pairs
    assert looks_like_optimizer(ordered)
    assert not looks_like_optimizer(Dict([("state", 1)]))
    assert not looks_like_optimizer([1])
    assert not looks_like_optimizer(Dict([*optimizer(Dict([])).pairs, *((n, n) for n in range(80))]))


def test_groups_and_state_are_read() -> None:
    draft = read_optimizer(
        ("o",),
        "o",
        optimizer(
            Dict([(0, Dict([])), ("layer.w", 1)]),
            group(params=[0, "layer.w"], param_names=["a", "b"], capturable=True),
            group(params=(2,), fused=True, lambd=1, t0=2),
            group(params=5, param_names="x"),
            "no group",
        ),
    )
    assert (draft.keys, draft.path, draft.state_ids) == (("o",), "o", [0, "layer.w"])
    assert [found.ids for found in draft.listed.groups] == [[0, "layer.w"], [2], [], []]
    assert [found.names for found in draft.listed.groups] == [["a", "b"], [], [], []]
    assert [found.capturable for found in draft.listed.groups] == [True, True, False, False]
    assert [found.step_follows for found in draft.listed.groups] == [False, True, False, False]
    assert draft.group_of(2) is draft.listed.groups[1]
    assert draft.group_of(9) is None


def test_malformed_parts_count_as_empty() -> None:
    draft = read_optimizer((), "", Dict([("state", 5), ("param_groups", 6), (7, 8)]))
    assert (draft.listed.groups, draft.state_ids) == ([], [])


def test_only_group_serves_all() -> None:
    draft = read_optimizer((), "", optimizer(Dict([]), group(params=[], capturable=True)))
    assert draft.group_of(0) is draft.listed.groups[0]
    assert not draft.is_kept_on_cpu(0, "step", ())


def test_counters_are_kept_on_the_cpu() -> None:
    draft = read_optimizer(
        (),
        "",
        optimizer(
            Dict([]), group(params=[0]), group(params=[1], capturable=True), group(params=[2], lambd=1, t0=1)
        ),
    )
    assert draft.is_kept_on_cpu(0, "step", ())
    assert draft.is_kept_on_cpu(0, "mu_product", (1,))
    assert draft.is_kept_on_cpu(9, "step", ())
    assert not draft.is_kept_on_cpu(0, "step", (2,))
    assert not draft.is_kept_on_cpu(0, "exp_avg", ())
    assert not draft.is_kept_on_cpu(1, "step", ())
    assert not draft.is_kept_on_cpu(2, "step", ())


def test_what_optimizers_share_is_read_once() -> None:
    work = Limits().counted()
    reader = OptimizerReader(work)
    state = Dict([(number, Dict([])) for number in range(1000)])
    shared = group(params=list(range(1000)), param_names=["x"] * 1000)
    first = reader.read((), "", optimizer(state, shared))
    once = work.parts
    others = [reader.read((), "", optimizer(state, shared)) for _ in range(50)]
    assert work.parts < 2 * once
    assert all(other.state_ids is first.state_ids for other in others)
    assert all(other.listed.groups[0] is first.listed.groups[0] for other in others)
    ids = shared.pairs[0][1]
    assert (
        reader.read((), "", optimizer(state, group(params=ids))).listed.groups[0].ids
        is first.listed.groups[0].ids
    )


def test_groups_that_are_one_in_the_file_are_one() -> None:
    reader = OptimizerReader(Limits().counted())
    groups = [group(params=[1]), group(params=[2], capturable=True)]
    found = [reader.read((), "", Dict([("state", Dict([])), ("param_groups", groups)])) for _ in range(2)]
    assert found[0].listed is found[1].listed
    assert (found[0].listed.sizes, found[0].listed.parameters, found[0].listed.capturable) == (
        (1, 1),
        2,
        True,
    )
