from __future__ import annotations

import pytest

from inspector.model.values.children import iter_values, parts_of
from inspector.pickles.values import Call, Dict, Global, PersistentId, Set, Value

NAME = Global("mine", "make")


def test_parts_are_all_that_a_value_refers_to() -> None:
    call = Call(NAME, ("args",), "reduce")
    call.kwargs, call.state, call.items, call.pairs = "kwargs", "state", ["item"], [("key", "value")]
    assert parts_of(call) == [("args",), "kwargs", "state", "item", "key", "value"]
    made = Call(call, (), "reduce")
    assert list(parts_of(made))[:2] == [call, ()]
    items = Set([1, 2], frozen=False)
    assert parts_of(items) == [1, 2]
    assert parts_of(PersistentId("pid")) == ["pid"]
    assert parts_of(Dict([(1, 2)])) == [1, 2]
    assert parts_of([1, 2]) == [1, 2]
    assert parts_of("text") == parts_of(NAME) == ()


def test_what_is_shared_or_holds_itself_comes_once() -> None:
    shared: list[Value] = ["inner"]
    root: list[Value] = [shared, shared, "leaf", "leaf"]
    root.append(root)
    assert [value for value in iter_values(root) if isinstance(value, str)] == ["leaf", "leaf", "inner"]
    assert sum(value is shared for value in iter_values(root)) == 1


@pytest.mark.wide
def test_no_depth_is_too_much_and_what_is_changed_is_followed() -> None:
    root: list[Value] = []
    for _ in range(100_000):
        root = [root]
    assert sum(1 for _ in iter_values(root)) == 100_001
    for value in iter_values(root):
        assert isinstance(value, list)
        value[:] = []
    assert root == []
