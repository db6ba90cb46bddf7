"""Values that tensors are made of, where `test_arguments` has no call of them."""

from __future__ import annotations

from inspector.model.arguments.tensors import (
    TENSOR_RULES,
    facts_of,
    is_empty,
    is_view,
    may_be_attributes,
    may_be_state,
    takes_elements_of,
    takes_sparse_parts,
)
from inspector.pickles.values import Call, Dict, Global, Set, Value
from tests.hostile.palette import palette, stored
from tests.sweep import table
from tests.unit.model.making import root_of

STRANGER = Call(Global("mine", "Thing"), (), "reduce")


@table(
    ("color", "empty"),
    [
        *(("None", True), ("0", True), ("1", False), ("''", True), ("'cpu'", False), ("b''", True)),
        *(("b'ab'", False), ("()", True), ("(1,)", False), ("{}", True), ("{'a': 1}", False), ("set", True)),
        *(("set([4])", False), ("OrderedDict", True), ("OrderedDict(a=1)", False), ("Counter", False)),
        *(("Size()", True), ("Size", False), ("float32", False), ("storage", False), ("device", False)),
    ],
)
def test_what_is_false(color: str, empty: bool) -> None:
    assert is_empty(root_of(palette()[color])) == empty


def test_an_empty_frozen_set_is_false() -> None:
    assert is_empty(Set([], frozen=True))
    assert not is_empty(Set([1], frozen=True))


@table(
    ("state", "taken"),
    [
        (None, True),
        (Dict([("a", 1)]), True),
        (Dict([(1, 1)]), False),
        ((Dict([]), None), True),
        ((1, None), False),
        ((None,), False),
        ([1], False),
        (STRANGER, True),
    ],
)
def test_states(state: Value, taken: bool) -> None:
    assert may_be_state(state) == taken


def test_a_tensor_of_many_is_neither_true_nor_false() -> None:
    colors = palette()
    assert not may_be_attributes(root_of(colors["tensor"]))
    assert may_be_attributes(root_of(colors["long scalar"]))
    assert may_be_attributes(Call(Global("torch._utils", "_rebuild_tensor"), (), "reduce"))


def test_a_quantizer_may_come_from_anywhere() -> None:
    scheme, storage = Global("torch", "per_channel_affine"), root_of(palette()["storage"])
    assert facts_of(storage) is not None
    rule = TENSOR_RULES["torch._utils._rebuild_qtensor"]
    assert not rule((storage, 0, (4,), (1,), (scheme, STRANGER, STRANGER, 0), False, None))
    quantized = root_of(stored("s-qint"))
    assert rule((quantized, 0, (4,), (1,), (scheme, STRANGER, [0] * 4, 0), False, None))
    assert not rule((quantized, 0, (4,), (1,), (scheme, 5, [0] * 4, 0), False, None))
    assert not rule((quantized, 0, (4,), (1,), (scheme, [1] * 4, [0] * 4, 1), False, None))


@table(
    ("sizes", "taken"),
    [
        ((4,), True),
        ((True,), False),
        ((4, True), True),
        ((1 << 63,), False),
        ((STRANGER,), False),
        (None, True),
    ],
)
def test_sizes(sizes: Value, taken: bool) -> None:
    assert is_view((None, 0, sizes, ())) == taken


def test_elements_and_parts() -> None:
    colors = palette()
    assert takes_elements_of("float32", (1, 2))
    assert is_view((None, 0, (root_of(colors["long scalar"]),), ()))
    assert not takes_elements_of("float32", (1, -2))
    assert not takes_elements_of("", (root_of(colors["long storage"]),))
    assert not takes_sparse_parts("float32", (root_of(colors["long tensor"]), 1))
