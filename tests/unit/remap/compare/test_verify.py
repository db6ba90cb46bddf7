from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.records import replace
from inspector.remap.compare.verify import compare_with_plan
from inspector.remap.plan import Plan, plan_remap
from inspector.remap.rules import parse_rule
from tests.sweep import table
from tests.unit.remap.samples import (
    CUDA_0,
    checkpoint_of,
    device,
    mapping,
    sparse,
    stream,
    tensor,
    text,
    wrapper,
)

A, CPU, META = text("cuda:0"), text("cpu"), text("meta")


def read(place: bytes, own: bytes = CUDA_0) -> Checkpoint:
    return checkpoint_of(
        stream(mapping(a=tensor(place), w=wrapper(own, i=tensor(place, "1")), d=CUDA_0, n=b"K\x01"))
    )


BEFORE, AFTER = read(A), read(CPU, device(CPU))


def planned(checkpoint: Checkpoint, *rules: str) -> Plan:
    return plan_remap(checkpoint, [parse_rule(rule) for rule in rules])


PLAN = planned(BEFORE, "*=cpu")


def test_a_copy_as_planned_has_no_differences() -> None:
    assert compare_with_plan(BEFORE, AFTER, PLAN) == ()
    assert compare_with_plan(BEFORE, BEFORE, planned(BEFORE)) == ()


def test_a_device_that_did_not_change_is_found() -> None:
    assert compare_with_plan(BEFORE, BEFORE, PLAN) == (
        "a is not as planned.",
        "w is not as planned.",
        "w/.i is not as planned.",
        "The storages differ from the plan.",
    )


def test_a_wrapper_that_stayed_behind_is_found() -> None:
    assert compare_with_plan(BEFORE, read(CPU), PLAN) == ("w is not as planned.",)


def test_a_device_that_should_not_have_changed_is_found() -> None:
    assert "a is not as planned." in compare_with_plan(BEFORE, AFTER, planned(BEFORE))


@table(
    "change",
    [
        {"keys": ("z",)},
        {"dtype": "float64"},
        {"shape": (1,)},
        {"stride": (2,)},
        {"storage": "9"},
        {"storage_offset": 1},
        {"requires_grad": True},
        {"layout": "sparse_coo"},
        {"problem": "odd"},
        {"role": "ema"},
        {"slot": "step"},
        {"part_of": 3},
        {"path": "z"},
    ],
)
def test_whatever_else_differs_in_a_tensor_is_found(change: dict[str, object]) -> None:
    changed = replace(AFTER, tensors=(AFTER.tensors[0]._replace(**change), *AFTER.tensors[1:]))
    assert compare_with_plan(BEFORE, changed, PLAN) == ("a is not as planned.",)


@table("change", [{"nbytes": 3}, {"key": "7"}, {"missing": True}, {"dtype": "int8"}])
def test_whatever_else_differs_in_a_storage_is_found(change: dict[str, object]) -> None:
    changed = replace(AFTER, storages=(AFTER.storages[0]._replace(**change), *AFTER.storages[1:]))
    assert compare_with_plan(BEFORE, changed, PLAN) == ("The storages differ from the plan.",)


def test_missing_tensors_are_counted() -> None:
    assert compare_with_plan(BEFORE, replace(AFTER, tensors=()), PLAN) == (
        "There are 0 tensors instead of 3.",
    )


def test_other_values_must_be_the_same() -> None:
    assert compare_with_plan(BEFORE, replace(AFTER, values=()), PLAN) == (
        "Values other than tensors differ.",
    )
    assert compare_with_plan(BEFORE, replace(AFTER, hidden_devices=()), PLAN) == (
        "Devices stored as values differ.",
    )


def test_names_to_import_must_be_the_same_however_often() -> None:
    more = replace(AFTER, globals=tuple(replace(use, count=use.count + 1) for use in AFTER.globals))
    assert compare_with_plan(BEFORE, more, PLAN) == ()
    other = replace(AFTER, globals=(*AFTER.globals, GlobalUse(name="os.system", count=1)))
    assert compare_with_plan(BEFORE, other, PLAN) == ("The imported names differ.",)


def test_a_tensor_on_meta_follows_its_parts() -> None:
    before = checkpoint_of(stream(sparse(tensor(META, "0"), tensor(META, "1"))))
    after = checkpoint_of(stream(sparse(tensor(CPU, "0"), tensor(CPU, "1"))))
    assert compare_with_plan(before, after, planned(before, "*=cpu")) == ()


def test_a_long_list_of_differences_is_cut() -> None:
    before = checkpoint_of(stream(mapping(**{f"t{n}": tensor(A, str(n)) for n in range(30)})))
    assert len(compare_with_plan(before, before, planned(before, "*=cpu"))) == 20
