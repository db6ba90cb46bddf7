from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.diff.facts import (
    compare_programs,
    compare_rows,
    compare_sharing,
    compare_unsaid,
    compare_values,
    marks_of,
    other_keys,
    unsaid_of,
)
from inspector.diff.records import NameChange, Pair, Rule
from inspector.diff.side import open_side
from inspector.diff.tokens import Tokens
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import OddKey, Tensor
from inspector.pickles.values import Call, Dict, Global, StoredTensor, Value
from inspector.progress import Progress
from tests.builders import pickles as p
from tests.builders.states import Pairs, Raw, T, save_zip


def test_the_first_other_keys_are_told() -> None:
    assert other_keys(("a", OddKey("None"), 1), ("a", "None", 2)) == ("None", "'None'")
    assert other_keys(("a", 1), ("a", "1")) == ("1", "'1'")


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


def test_strides_differ_where_an_element_sees_it() -> None:
    assert facts(stride=(1, 2)) == ("stride",)
    assert facts(shape=(3, 2), stride=(1, 3)) == ("shape",)
    row, plain = ROW._replace(shape=(1, 3), stride=(99, 1)), ROW._replace(shape=(1, 3), stride=None)
    assert compare_rows(row, plain, has_pickles=True) == ()
    row, plain = ROW._replace(shape=(0, 3), stride=(9, 9)), ROW._replace(shape=(0, 3), stride=None)
    assert compare_rows(row, plain, has_pickles=True) == ()


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


def changes(tmp_path: Path, a: Any, b: Any, *rules: Rule) -> dict[str, tuple[str, str]]:
    paths = [save_zip(tmp_path / f"{name}.pt", value) for name, value in (("a", a), ("b", b))]
    with open_side(paths[0], Progress()) as one, open_side(paths[1], Progress()) as other:
        found = compare_values(one, other, rules, lambda: None)
        texts = {
            one.checkpoint.values[change.a].path: (change.a_text, change.b_text) for change in found.changed
        }
        texts |= {one.checkpoint.values[number].path: ("gone", "") for number in found.removed}
        return texts | {other.checkpoint.values[number].path: ("", "new") for number in found.added}


def test_long_texts_and_lists_are_shown_where_they_differ(tmp_path: Path) -> None:
    a = {"t": "a" * 300 + "X", "s": "short", "l": [1, 2, 3], "e": [], "z": "b" * 200, "m": [1, 2]}
    b = {
        "t": "a" * 300 + "Y" * 200,
        "s": "shore",
        "l": [1, 2, 3, 4],
        "e": [5],
        "z": "c" * 200,
        "m": [1, True],
    }
    found = changes(tmp_path, a, b)
    assert found["t"] == (
        f"301 characters, from 300 on: \u2026{'a' * 24}X",
        f"500 characters, from 300 on: \u2026{'a' * 24}{'Y' * 95}\u2026",
    )
    assert found["s"] == ("short", "shore")
    assert found["l"] == ("3 items", "4 items, [3] is 4")
    assert found["e"] == ("[]", "[5]")
    assert found["z"] == (
        f"200 characters, from 0 on: {'b' * 119}\u2026",
        f"200 characters, from 0 on: {'c' * 119}\u2026",
    )
    assert found["m"] == ("2 items, [1] is 2", "2 items, [1] is True")


def test_contents_that_no_text_shows_are_said_to_differ(tmp_path: Path) -> None:
    from tests.builders import pickles as p
    from tests.builders.states import Raw

    def closed(text: str) -> Raw:
        return Raw(p.call("m.Closed", p.text("x" * 250 + text)))

    found = changes(tmp_path, {"o": closed("a")}, {"o": closed("b")})
    assert found["o"][1] == f"{found['o'][0]} (other contents)"


def test_keys_and_moved_values(tmp_path: Path) -> None:
    assert changes(tmp_path, Pairs(((1, 2.0),)), {"1": 2.0}) == {
        "1": ("under the key 1", "under the key '1'")
    }
    deep = Pairs(((1, {"a": 2.0}),)), {"1": {"a": 2.0}}
    assert changes(tmp_path, *deep) == {"1/a": ("under the key 1", "under the key '1'")}
    a, b = {"m": {"x": 1, "y": 2}, "k": 3}, {"n": {"x": 1, "z": 2}, "k": 3}
    assert changes(tmp_path, a, b, Rule("m/", "n/", 2, "prefix")) == {"m/y": ("gone", ""), "n/z": ("", "new")}
    assert set(changes(tmp_path, a, b, Rule("m.", "n.", 2, "prefix"))) == {"m/x", "m/y", "n/x", "n/z"}


def test_objects_at_two_places_are_those_of_the_first(tmp_path: Path) -> None:
    shared = {"x": 1, "w": T([1.0])}
    assert changes(tmp_path, {"p": shared, "q": shared}, {"p": shared, "q": {"x": 2, "y": 5}}) == {
        "p/x": ("1", "2"),
        "q/y": ("", "new"),
    }
    loop: dict[str, Any] = {"x": 1}
    loop["me"] = loop
    other: dict[str, Any] = {"x": 1, "in": {"y": 1}}
    other["me"] = other["in"]
    assert changes(tmp_path, loop, other)["me"] == ("the same object as the root", "the same object as in")


def rows(*storages: str | None) -> list[Tensor]:
    return [ROW._replace(path=f"t{number}", storage=key) for number, key in enumerate(storages)]


def test_neighbors_in_one_storage_are_not_tied() -> None:
    one = rows("x", "x")
    one[1] = one[1]._replace(storage_offset=6)
    assert compare_sharing(one, rows("1", "2"), [Pair(0, 0), Pair(1, 1)]) == ()
    for change in ({"nbytes": 0}, {"layout": "storage"}):
        other = [row._replace(**change) for row in rows("x", "x")]
        assert compare_sharing(other, rows("1", "2"), [Pair(0, 0), Pair(1, 1)]) == ()


def compared(tmp_path: Path, a: Any, b: Any) -> tuple[tuple[NameChange, ...], tuple[str, str]]:
    files = [
        open_checkpoint(save_zip(tmp_path / f"{name}.pt", value)) for name, value in (("a", a), ("b", b))
    ]
    return compare_programs(*files)


def dropped(command: str) -> Raw:
    """A call whose result nobody sees."""
    return Raw(p.call("os.system", p.text(command)) + p.op("POP") + p.NONE)


def test_names_that_one_file_alone_imports_come_the_worst_first(tmp_path: Path) -> None:
    plain = {"w": T([1.0])}
    evil = {**plain, "n": Raw(p.call("my.thing")), "x": Raw(p.call("os.system", p.text("id")))}
    names, verdicts = compared(tmp_path, plain, evil)
    assert names == (NameChange("os.system", "dangerous", "b"), NameChange("my.thing", "unknown", "b"))
    assert verdicts == ("weights-only", "dangerous")
    names, _ = compared(tmp_path, evil, plain)
    assert [name.only_in for name in names] == ["a", "a"]


def test_other_data_is_no_other_code(tmp_path: Path) -> None:
    def data(text: str) -> Raw:
        return Raw(p.call("_codecs.encode", p.text(text), p.text("latin1")) + p.op("POP") + p.NONE)

    assert compared(tmp_path, {"x": data("ab")}, {"x": data("cd")})[0] == ()


def test_calls_that_nobody_sees_are_compared_by_their_arguments(tmp_path: Path) -> None:
    names, _ = compared(tmp_path, {"x": dropped("id")}, {"x": dropped("rm")})
    assert names == (
        NameChange("os.system('rm')", "call", "b"),
        NameChange("os.system('id')", "call", "a"),
    ) or [(name.verdict, name.only_in) for name in names] == [("call", "b"), ("call", "a")]
    assert compared(tmp_path, {"x": dropped("id")}, {"x": dropped("id")})[0] == ()
