from __future__ import annotations

from typing import Any

from inspector.diff.facts import compare_rows
from inspector.model.checkpoint import Tensor

ROW = Tensor(
    keys=("w",),
    path="w",
    device="cpu",
    dtype="float32",
    shape=(2, 3),
    stride=(3, 1),
    storage_offset=0,
    layout="strided",
    requires_grad=False,
    nbytes=24,
    storage="0",
    role="parameter",
    parameter=None,
    slot=None,
    part_of=None,
    on_cpu_by_design=False,
    problem=None,
)


def facts(*, has_pickles: bool = True, has_roles: bool = True, **changed: Any) -> tuple[str, ...]:
    other = ROW._replace(**changed)
    said = {"has_pickles": has_pickles, "has_roles": has_roles}
    found = compare_rows(ROW, other, **said)
    assert compare_rows(other, ROW, **said) == found
    return found


def test_each_fact_is_told_by_its_name() -> None:
    assert facts() == ()
    assert facts(keys=(1,)) == ("key",)
    assert compare_rows(ROW, ROW._replace(keys=(1,)), has_pickles=True, has_keys=False) == ()
    assert facts(keys=("v",), path="v") == ()
    assert facts(
        device="cuda:0", dtype="float16", layout="sparse_coo", role="buffer", problem="too long"
    ) == (
        "device",
        "dtype",
        "layout",
        "role",
        "problem",
    )
    assert facts(requires_grad=True) == ("requires_grad",)


def test_what_a_format_does_not_say_is_no_difference() -> None:
    assert facts(device="none") == ()
    assert facts(requires_grad=True, has_pickles=False) == ()
    assert facts(stride=None) == ()
    assert facts(role="buffer", has_roles=False) == ()
    assert facts(role="buffer", has_roles=False, path="v") == ()


def test_strides_differ_where_an_element_sees_it() -> None:
    assert facts(stride=(1, 2)) == ("stride",)
    assert facts(shape=(3, 2), stride=(1, 3)) == ("shape",)
    row, plain = ROW._replace(shape=(1, 3), stride=(99, 1)), ROW._replace(shape=(1, 3), stride=None)
    assert compare_rows(row, plain, has_pickles=True) == ()
    row, plain = ROW._replace(shape=(0, 3), stride=(9, 9)), ROW._replace(shape=(0, 3), stride=None)
    assert compare_rows(row, plain, has_pickles=True) == ()
