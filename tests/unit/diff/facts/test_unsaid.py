from __future__ import annotations

from inspector.diff.facts import compare_unsaid, marks_of, unsaid_of
from inspector.diff.tokens import Tokens
from inspector.pickles.values import Call, Dict, Global, StoredTensor, Value

GEOMETRY: tuple[Value, ...] = (None, 0, (2,), (1,))
TOKENS = Tokens(b"", lambda: None)


def made(name: str, *args: Value) -> Call:
    return Call(Global("torch._utils", name), args, "reduce")


def typed(cls: str, inner: Call) -> Call:
    return Call(
        Global("torch._tensor", "_rebuild_from_type_v2"),
        (inner.func, Global("m", cls), inner.args, Dict([])),
        "reduce",
    )


def different(one: Value, other: Value) -> tuple[str, ...]:
    return compare_unsaid(one, other, TOKENS, TOKENS)


PLAIN = made("_rebuild_tensor_v2", *GEOMETRY, False, Dict([]))
CONJUGATED = made("_rebuild_tensor_v2", *GEOMETRY, False, Dict([]), Dict([("conj", True)]))
QUANTIZED = made("_rebuild_qtensor", *GEOMETRY, (1, 0.5, 0), False, Dict([]))


def test_classes_settings_and_quantizers_are_compared() -> None:
    parameter = made("_rebuild_parameter", PLAIN, True, Dict([]))
    with_state = made("_rebuild_parameter_with_state", PLAIN, True, Dict([]), Dict([("tag", 1)]))
    scaled = made("_rebuild_qtensor", *GEOMETRY, (1, 0.25, 0), False, Dict([]))
    assert different(PLAIN, made("_rebuild_tensor_v2", *GEOMETRY, False, Dict([]), None)) == ()
    assert different(PLAIN, made("_rebuild_tensor", *GEOMETRY)) == ()
    assert different(PLAIN, made("_rebuild_tensor_v3", *GEOMETRY, False, Dict([]), None, Dict([]))) == ()
    assert different(PLAIN, CONJUGATED) == ("metadata",)
    assert different(PLAIN, parameter) == ("class",)
    assert different(parameter, with_state) == ("metadata",)
    assert different(QUANTIZED, scaled) == ("metadata",)
    assert different(typed("Sub", PLAIN), typed("Sub", PLAIN)) == ()
    assert different(typed("Sub", PLAIN), typed("Other", PLAIN)) == ("class",)
    assert different(typed("Sub", PLAIN), CONJUGATED) == ("class", "metadata")


def test_whether_a_sparse_tensor_is_coalesced_is_compared() -> None:
    def sparse(*more: Value) -> Call:
        return made("_rebuild_sparse_tensor", Global("torch", "sparse_coo"), (None, None, (2, 2), *more))

    assert different(sparse(True), sparse(False)) == ("metadata",)
    assert different(sparse(None), sparse()) == ()
    assert different(sparse(True), PLAIN) == ()  # its layout is what differs
    assert different(sparse(False), sparse()) == ()
    assert different(made("_rebuild_sparse_tensor", None, None), sparse()) == ()


def test_what_is_only_said_of_the_elements_is_read() -> None:
    both = Dict([("neg", True), ("conj", True), ("other", True)])
    rows: list[tuple[Value, set[str]]] = [
        (PLAIN, set()),
        (CONJUGATED, {"conj"}),
        (made("_rebuild_tensor_v2", *GEOMETRY, False, Dict([]), both), {"conj", "neg"}),
        (made("_rebuild_tensor_v2", *GEOMETRY, False, Dict([]), Dict([("conj", False)])), set()),
        (made("_rebuild_tensor_v2", *GEOMETRY, False, Dict([]), "conj"), set()),
        (QUANTIZED, set()),
        (StoredTensor("0", "float32", (2,)), set()),
    ]
    for value, marks in rows:
        assert marks_of(value) == marks


def test_what_says_nothing_of_the_kind_is_no_difference() -> None:
    strange = Call(
        Global("torch._tensor", "_rebuild_from_type_v2"), (PLAIN.func, "no class", PLAIN.args, None), "reduce"
    )
    assert different(PLAIN, strange) == ()
    assert different(PLAIN, StoredTensor("0", "float32", (2,))) == ()
    for value in (
        Call(PLAIN, (), "reduce"),
        Call(PLAIN.func, None, "reduce"),
    ):
        assert unsaid_of(value) is None
        assert different(value, CONJUGATED) == ()


def test_a_parameter_is_one_whatever_is_in_it() -> None:
    nested = made("_rebuild_nested_tensor", None, None, None, None)
    assert different(nested, nested) == ()
    assert different(made("_rebuild_parameter", nested, True, None), nested) == ("class",)


def test_nesting_ends() -> None:
    nested = PLAIN
    for _ in range(9):
        nested = made("_rebuild_parameter", nested)
    assert unsaid_of(nested) is None
