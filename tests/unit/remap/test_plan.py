from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.remap.export import export_copy
from inspector.remap.plan import Plan, device_texts, plan_remap, rules_for_target
from inspector.remap.rules import Rule, parse_rule
from inspector.target.wish import parse_target
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.remap.samples import (
    CPU,
    CUDA_0,
    call,
    checkpoint_of,
    device,
    mapping,
    name,
    nested,
    sent,
    sparse,
    storage,
    stream,
    tensor,
    text,
    wrapper,
)
from tests.work import count_steps, growth

A, B, HOST = text("cuda:0"), text("cuda:1"), text("cpu")
META = call(
    name("torch._utils", "_rebuild_meta_tensor_no_storage"),
    *(name("torch", "float32"), b"K\x04\x85", b"K\x01\x85", b"\x89"),
)


def planned(body: bytes, *rules: str, move_all: bool = False) -> Plan:
    return plan_remap(checkpoint_of(stream(body)), [parse_rule(rule) for rule in rules], move_all=move_all)


def moves(body: bytes, *rules: str, move_all: bool = False) -> dict[str, str]:
    rows = checkpoint_of(stream(body)).tensors
    return {rows[index].path: to for index, to in planned(body, *rules, move_all=move_all).tensors.items()}


def adam(step: bytes, *, capturable: bool = False) -> bytes:
    group = mapping(params=b"](K\x00e", capturable=b"\x88" if capturable else b"\x89")
    state = b"}(K\x00" + mapping(step=step, exp_avg=tensor(HOST, "9")) + b"u"
    return mapping(state=state, param_groups=b"](" + group + b"e")


SCALAR = call(
    name("torch._utils", "_rebuild_tensor_v2"),
    *(storage(HOST, "1"), b"K\x00", b")", b")", b"\x89", call(name("collections", "OrderedDict"))),
)


# --- by device ----------------------------------------------------------------------------------------------


def test_tensors_and_their_storages_move() -> None:
    plan = planned(mapping(a=tensor(A, "0"), b=tensor(B, "1")), "cuda:0=cpu")
    assert plan.tensors == {0: "cpu"}
    assert plan.storages == {"0": "cpu"}
    assert plan.texts == {"cuda:0", "cuda:1"}
    assert not plan.is_empty


def test_the_first_rule_that_matches_decides() -> None:
    assert moves(mapping(a=tensor(A, "0"), b=tensor(B, "1")), "cuda:0=cuda:0", "cuda:*=cpu") == {"b": "cpu"}


@table("to", ["cpu:0", "meta", "GPU 1", "cuda:999"])
def test_destinations_that_torch_refuses_are_not_planned(to: str) -> None:
    with pytest.raises(PlanError, match=r"torch refuses|not a device to map to"):
        plan_remap(checkpoint_of(stream(tensor(A))), [Rule(device="*", to=to)])


@table("rules", [(), ("cuda:7=cpu",), ("cuda:0=cuda:0",)])
def test_a_plan_may_be_empty(rules: tuple[str, ...]) -> None:
    plan = planned(mapping(a=tensor(A)), *rules)
    assert plan.is_empty
    assert not plan.kept


def test_what_no_row_shows_follows_the_rules_by_device() -> None:
    hidden = call(name("mine", "Thing"), b"](" + storage(A, "5") + storage(B, "6") + b"e")
    plan = planned(hidden, "cuda:0=cpu")
    assert plan.storages.items() >= {"5": "cpu"}.items()
    assert plan.by_device("cuda:0") == "cpu"
    assert plan.by_device("cuda:1") is None
    assert plan.by_device("meta") is None


def test_a_storage_that_nothing_views_moves_too() -> None:
    view = b"(X\x01\x00\x00\x007K\x00K\x02t"
    plan = planned(mapping(a=tensor(A, "0", view=view)), "*=cpu")
    assert plan.storages == {"7": "cpu", "0": "cpu"}


def test_apples_gpu_is_one_device_by_two_names() -> None:
    body = wrapper(device(text("mps"), b"K\x00"), inner=tensor(text("mps")))
    assert planned(body, "*=mps").is_empty
    assert moves(body, "mps=cpu") == {"": "cpu", ".inner": "cpu"}
    assert planned(body, "path:**@mps").is_empty


def test_tensors_without_data_stay_on_meta() -> None:
    assert planned(mapping(a=META), "*=cpu").is_empty
    assert planned(mapping(a=META), "path:a@cpu").is_empty


def test_a_storage_on_meta_moves() -> None:
    assert moves(mapping(a=tensor(text("meta"))), "*=cpu") == {"a": "cpu"}


# --- what stays on the CPU by design ------------------------------------------------------------------------


def test_the_step_of_adam_stays() -> None:
    plan = planned(adam(SCALAR), "cpu=cuda:0")
    assert plan.tensors == {1: "cuda:0"}
    assert plan.kept == (0,)
    assert plan.held == {"1"}
    assert plan.storages == {"9": "cuda:0"}


def test_all_moves_when_that_is_wanted() -> None:
    plan = planned(adam(SCALAR), "cpu=cuda:0", move_all=True)
    assert plan.tensors == {0: "cuda:0", 1: "cuda:0"}
    assert not plan.kept


def test_a_step_that_belongs_on_the_device_moves() -> None:
    assert not planned(adam(SCALAR, capturable=True), "cpu=cuda:0").kept


def test_what_was_moved_off_the_cpu_comes_back() -> None:
    body = mapping(rng_state=tensor(A).replace(b"FloatStorage", b"ByteStorage"))
    assert moves(body, "*=cpu") == {"rng_state": "cpu"}
    assert moves(body, "*=cuda:3") == {"rng_state": "cuda:3"}


def test_a_state_that_is_made_of_parts_stays_whole() -> None:
    step = wrapper(CPU, inner=SCALAR).replace(b"K\x04\x85K\x01\x85", b"))", 1)
    plan = planned(adam(step), "cpu=cuda:0")
    assert plan.tensors == {2: "cuda:0"}
    assert plan.kept == (0, 1)


NESTED = nested(*(tensor(HOST, str(key)) for key in range(4)))


@table("move_all", [False, True])
@table("rule", ["cpu=cuda:0", "path:**@cuda:0", "path:n/buffer@cuda:0", "path:n@cuda:0"])
def test_of_a_nested_tensor_only_the_buffer_moves(rule: str, move_all: bool) -> None:
    plan = planned(mapping(n=NESTED), rule, move_all=move_all)
    assert plan.tensors == {0: "cuda:0", 1: "cuda:0"}
    assert plan.storages == {"0": "cuda:0"}
    assert plan.kept == (2, 3, 4)


MESH = call(name("mine", "Mesh")) + mapping(_rank_map=tensor(HOST, "5")) + b"b"
SPEC = call(name("mine", "Spec")) + mapping(mesh=MESH) + b"b"


@table("move_all", [False, True])
@table("rule", ["cpu=cuda:0", "path:w@cuda:0", "path:w/._local@cuda:0"])
def test_of_a_distributed_tensor_the_ranks_stay(rule: str, move_all: bool) -> None:
    plan = planned(mapping(w=wrapper(CPU, _local=tensor(HOST), _spec=SPEC)), rule, move_all=move_all)
    assert plan.tensors == {0: "cuda:0", 1: "cuda:0"}
    assert plan.kept == (2,)


# --- by path ------------------------------------------------------------------------------------------------


def test_a_branch_moves() -> None:
    body = mapping(a=mapping(x=tensor(A, "0")), b=mapping(x=tensor(A, "1")))
    assert moves(body, "path:a/**@cpu") == {"a/x": "cpu"}
    assert moves(body, "path:a/**@cuda:0", "*=cpu") == {"b/x": "cpu"}


def test_parts_follow_the_whole() -> None:
    body = mapping(s=sparse(tensor(A, "0"), tensor(A, "1")))
    assert moves(body, "path:s@cpu") == {"s": "cpu", "s/indices": "cpu", "s/values": "cpu"}


def test_a_part_that_is_named_takes_the_rest_along() -> None:
    body = mapping(s=sparse(tensor(A, "0"), tensor(A, "1")))
    assert moves(body, "path:s/indices@cpu") == {"s": "cpu", "s/indices": "cpu", "s/values": "cpu"}


def test_parts_cannot_be_sent_apart() -> None:
    with pytest.raises(PlanError, match="the parts of one tensor are sent to cpu and cuda:1") as error:
        planned(mapping(s=sparse(tensor(A, "0"), tensor(A, "1"))), "path:s/indices@cpu", "*=cuda:1")
    assert error.value.where == "s, s/indices, s/values"


def test_parts_on_other_devices_are_another_matter() -> None:
    body = mapping(w=wrapper(CUDA_0, data=tensor(A, "0"), scale=tensor(HOST, "1")))
    assert moves(body, "path:w/.data@cuda:5") == {"w": "cuda:5", "w/.data": "cuda:5"}


def test_attributes_of_a_tensor_go_their_own_way() -> None:
    plain = name("torch._utils", "_rebuild_tensor_v2")
    args = tensor(A, "0").removeprefix(plain).removesuffix(b"R")
    rebuild = name("torch._tensor", "_rebuild_from_type_v2")
    body = mapping(t=call(rebuild, plain, name("mine", "T"), args, mapping(scale=tensor(A, "1"))))
    assert moves(body, "path:t/.scale@cpu") == {"t/.scale": "cpu"}
    assert moves(body, "path:t@cpu") == {"t": "cpu", "t/.scale": "cpu"}


@table("rule", ["path:w@cuda:1", "path:w/**@cuda:1", "path:w/.state/**@cuda:1"])
def test_a_sharded_tensor_moves_by_its_name_and_by_that_of_its_shard(rule: str, tmp_path: Path) -> None:
    path = CORPUS / "dist" / "sharded_tensor.pt"
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule(rule)])
    export_copy(str(path), tmp_path / "out.pt", plan)
    assert [row.device for row in open_checkpoint(str(tmp_path / "out.pt")).tensors] == ["cuda:1", "cuda:1"]


# --- what shares bytes --------------------------------------------------------------------------------------


def test_tensors_that_share_bytes_must_agree() -> None:
    body = mapping(a=tensor(A), b=tensor(A))
    assert planned(body, "*=cpu").storages == {"0": "cpu"}
    with pytest.raises(PlanError, match="share one storage are sent to cpu and cuda:0") as error:
        planned(body, "path:a@cpu")
    assert error.value.where == "a, b"
    with pytest.raises(PlanError, match="share one storage are sent to cpu and cuda:1"):
        planned(body, "path:a@cpu", "path:b@cuda:1")


def test_two_labels_of_one_storage_are_no_trouble_unless_they_are_torn() -> None:
    # torch believes the first, except where there are no bytes to remember a storage by.
    assert planned(mapping(a=tensor(A), b=tensor(HOST)), "cuda:0=cuda:5").tensors == {
        0: "cuda:5",
        1: "cuda:5",
    }
    body = mapping(a=tensor(A, numel=0), b=tensor(HOST, numel=0), c=tensor(B, "1"))
    assert planned(body).is_empty
    assert planned(body, "cuda:0=cpu").storages == {"0": "cpu"}
    with pytest.raises(PlanError, match="share one storage"):
        planned(body, "cuda:0=cuda:5")


def test_a_tensor_that_is_sent_leaves_its_storage_alone() -> None:
    body = mapping(x=sent(tensor(HOST, "0"), text("xla:0")), y=tensor(HOST, "0"), z=tensor(HOST, "1"))
    plan = planned(body, "xla:0=cuda:0")
    assert plan.tensors == {0: "cuda:0"}
    assert not plan.storages
    assert not plan.is_empty
    assert planned(body, "path:y@cuda:1").storages == {"0": "cuda:1"}
    with pytest.raises(PlanError, match="share one storage"):
        planned(mapping(a=body, w=tensor(HOST, "0")), "path:a/*@cuda:1")


# --- targets ------------------------------------------------------------------------------------------------


def checkpoint_on(*devices: str) -> Checkpoint:
    return checkpoint_of(
        stream(mapping(**{f"t{n}": tensor(text(place), str(n)) for n, place in enumerate(devices)}))
    )


@table(
    ("target", "rules"),
    [
        ("cpu", {"cuda:0": "cpu", "cuda:3": "cpu", "GPU 1": "cpu", "mps": "cpu", "cpu:0": "cpu"}),
        ("2xcuda", {"cuda:3": "cuda:1", "GPU 1": "cpu", "mps": "cuda:0", "cpu:0": "cpu"}),
        ("mps", {"cuda:0": "mps", "cuda:3": "mps", "GPU 1": "cpu", "cpu:0": "cpu"}),
        ("cuda:0", {"cuda:3": "cuda:0", "GPU 1": "cuda:0", "mps": "cuda:0", "cpu:0": "cpu"}),
        (
            "4xcuda:1",
            {"cuda:0": "cuda:1", "cuda:3": "cuda:1", "GPU 1": "cuda:1", "mps": "cuda:1", "cpu:0": "cpu"},
        ),
        ("mps:0", {"cuda:0": "mps", "cuda:3": "mps", "GPU 1": "mps", "cpu:0": "cpu"}),
        (
            "2xcuda@cpu",
            {"cuda:0": "cpu", "cuda:3": "cpu", "GPU 1": "cpu", "mps": "cpu", "cpu:0": "cpu"},
        ),
    ],
)
def test_what_a_machine_lacks_is_folded_onto_what_it_has(target: str, rules: dict[str, str]) -> None:
    checkpoint = checkpoint_on("cuda:0", "cuda:3", "cpu", "meta", "mps", "GPU 1", "cpu:0")
    found = rules_for_target(checkpoint, parse_target(target))
    assert {rule.device: rule.to for rule in found} == rules


def test_the_other_name_of_the_wanted_device_is_the_wanted_device() -> None:
    assert rules_for_target(checkpoint_on("mps:0", "meta"), parse_target("mps:0")) == ()


def test_texts_are_those_of_storages_and_tensors() -> None:
    checkpoint = checkpoint_of(stream(wrapper(CUDA_0, inner=tensor(HOST))))
    assert device_texts(checkpoint) == {"cuda:0", "cpu"}


# --- by role and dtype, and what Apple's GPU cannot hold ----------------------------------------------------

DOUBLE = b"FloatStorage", b"DoubleStorage"


def test_roles_move_apart() -> None:
    body = mapping(model=mapping(w=tensor(A, "0")), optimizer=adam(SCALAR).replace(b"cpu", b"xpu"))
    assert moves(body, "role:optimizer@cpu") == {
        "optimizer/state/0/step": "cpu",
        "optimizer/state/0/exp_avg": "cpu",
    }


def test_what_apples_gpu_cannot_hold_is_named() -> None:
    body = mapping(a=tensor(A, "0"), b=tensor(A, "1").replace(*DOUBLE))
    with pytest.raises(PlanError, match=r"the Apple GPU \(mps\) cannot hold float64 tensors") as error:
        planned(body, "*=mps")
    assert error.value.where == "b"
    assert error.value.remedy == "put dtype:float64@cpu before the other rules"
    assert moves(body, "dtype:float64@cpu", "*=mps") == {"a": "mps", "b": "cpu"}
    with pytest.raises(PlanError, match="float64"):
        planned(body, "path:b@mps:0".replace(":0", ""))
    assert moves(body, "path:a@mps") == {"a": "mps"}


def test_many_of_them_are_counted() -> None:
    body = mapping(**{f"t{n}": tensor(A, str(n)).replace(*DOUBLE) for n in range(6)})
    with pytest.raises(PlanError) as error:
        planned(body, "*=mps")
    assert error.value.where == "t0, t1, t2, t3 and 2 more"


def test_parts_answer_to_the_dtype_of_each() -> None:
    body = mapping(s=sparse(tensor(A, "0"), tensor(A, "1").replace(*DOUBLE)))
    assert set(moves(body, "dtype:float64@cpu", "*=mps").values()) == {"cpu"}


def test_a_target_with_apples_gpu_keeps_the_rest_on_the_cpu() -> None:
    body = mapping(a=tensor(A, "0"), b=tensor(A, "1").replace(*DOUBLE))
    checkpoint = checkpoint_of(stream(body))
    found = rules_for_target(checkpoint, parse_target("mps"))
    assert found == (Rule(dtype="float64", to="cpu"), Rule(device="cuda:0", to="mps"))
    assert plan_remap(checkpoint, found).tensors == {0: "mps", 1: "cpu"}
    assert rules_for_target(checkpoint, parse_target("cpu")) == (Rule(device="cuda:0", to="cpu"),)


# --- speed --------------------------------------------------------------------------------------------------


def test_a_plan_takes_few_steps_for_each_tensor() -> None:
    """The window plans anew on each change of the device map; `benchmarks/` has the seconds."""
    one = open_checkpoint(str(CORPUS / "zip" / "many_storages.pt"))
    rules = [parse_rule("cpu=cuda:0")]
    assert count_steps(lambda: plan_remap(one, rules)) < 60 * len(one.tensors)


@pytest.mark.wide
@pytest.mark.parametrize("target", ["cpu", "mps"])
def test_a_device_more_costs_one_question_more(target: str) -> None:
    """A hostile file names a device for each of its tensors, and each gets a rule."""

    def prepare(count: int) -> Callable[[], object]:
        devices = [f"GPU {number}" for number in range(count)]
        rows = {f"t{number}": tensor(text(device), device) for number, device in enumerate(devices)}
        checkpoint = checkpoint_of(stream(mapping(**rows, x=tensor(HOST, "x").replace(*DOUBLE))))
        profile = parse_target(target)
        return lambda: plan_remap(checkpoint, rules_for_target(checkpoint, profile))

    assert growth(prepare, 100, 1000) < 1.3
