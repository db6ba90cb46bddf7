"""The walk: order, sharing, and what a hostile file can make it cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.notes import sentences
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.errors import CancelledError, ModelError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.tensors.views import Known
from inspector.model.walk import walk
from inspector.pickles.values import Call, Dict, Global, PersistentId, Set, StoredTensor, Value
from inspector.progress import Progress
from tests.builders.pickles import NONE, dict_, list_, name, number, op, text
from tests.sweep import table
from tests.unit.model.making import (
    built,
    by_hand,
    by_path,
    call,
    numbers,
    only,
    pairs,
    root_of,
    storage,
    view,
)
from tests.work import growth


def listed(root: Value, limits: Limits = DEFAULT_LIMITS) -> list[tuple[str, str, str]]:
    """Values by path, type and text."""
    found = walk(root, limits, Progress())
    return [(leaf.path, leaf.type, leaf.text) for leaf in found.values]


def tensor_value(key: str = "0", numel: int = 4) -> Call:
    """A plain tensor as an inert value."""
    pid = PersistentId(("storage", Global("torch", "FloatStorage"), key, "cpu", numel))
    return Call(Global("torch._utils", "_rebuild_tensor_v2"), (pid, 0, (numel,), (1,), False, None), "reduce")


def test_what_a_file_does_not_call_a_weight_is_none() -> None:
    weight, other = tensor_value(), tensor_value()
    root = Dict([("weight", weight), ("other", other)])
    found = walk(root, DEFAULT_LIMITS, Progress(), declared={id(weight): "parameter"})
    assert [row.role for row in found.tensors] == ["parameter", "other"]
    assert [model.rows for model in found.models] == [[0]]


# --- order, paths and sharing -------------------------------------------------------------------------------


def test_rows_stand_in_file_order_with_escaped_paths() -> None:
    checkpoint = by_hand(
        pairs(
            **{"a/b": view(), "c~d": list_(number(1), view(storage("1")), text("x")), "e\nf\u202e": number(2)}
        )
    )
    assert [(tensor.keys, tensor.path) for tensor in checkpoint.tensors] == [
        (("a/b",), "a~1b"),
        (("c~d", 1), "c~0d/1"),
    ]
    assert [(value.path, value.after) for value in checkpoint.values] == [
        ("c~0d/0", 1),
        ("c~0d/2", 2),
        ("e\\u000af\\u202e", 2),
    ]


def test_root_may_be_anything() -> None:
    assert only(by_hand(view())).path == ""
    assert only(by_hand(view())).keys == ()
    assert by_hand(number(5)).values[0].path == ""
    assert only(by_hand(storage())).layout == "storage"


def test_tensor_reached_twice_is_listed_twice_and_a_container_once() -> None:
    shared = view() + op("BINPUT", b"\1")
    inner = list_(op("BINGET", b"\1"), number(1)) + op("BINPUT", b"\2")
    checkpoint = by_hand(pairs(a=shared, b=op("BINGET", b"\1"), c=inner, d=op("BINGET", b"\2")))
    assert [tensor.path for tensor in checkpoint.tensors] == ["a", "b", "c/0"]
    assert {tensor.storage for tensor in checkpoint.tensors} == {"0"}
    assert checkpoint.storages[0].tensors == 3
    assert [(value.path, value.text) for value in checkpoint.values] == [
        ("c/1", "1"),
        ("d", "the same object as c"),
    ]


def test_container_that_holds_itself_ends() -> None:
    looped: list[Value] = [1]
    looped.append(looped)
    assert listed(looped) == [("0", "int", "1"), ("1", "list", "the same object as the root")]
    mapping = Dict([])
    mapping.pairs.append(("me", mapping))
    assert listed([mapping, 1]) == [("0/me", "dict", "the same object as 0"), ("1", "int", "1")]


def test_parts_stand_right_below_their_tensor() -> None:
    sparse = call(
        "torch._utils._rebuild_sparse_tensor",
        text("torch.sparse_coo"),
        op("MARK") + view(storage("0")) + view(storage("1")) + numbers(9) + op("TUPLE"),
    )
    rows = by_hand(pairs(a=sparse, b=view(storage("2")))).tensors
    assert [(row.path, row.part_of, row.storage) for row in rows] == [
        ("a", None, None),
        ("a/indices", 0, "0"),
        ("a/values", 0, "1"),
        ("b", None, "2"),
    ]


def test_attributes_of_a_tensor_are_listed_below_it() -> None:
    state = pairs(note=text("mine"), extra=view(storage("1")), shards=list_(view(storage("2"))))
    rebuilt = call(
        "torch._tensor._rebuild_from_type_v2",
        name("torch._utils._rebuild_tensor_v2"),
        name("my.Tensor"),
        op("MARK")
        + storage()
        + number(0)
        + numbers(4)
        + numbers(1)
        + op("NEWFALSE")
        + op("NONE")
        + op("TUPLE"),
        state,
    )
    checkpoint = by_hand(pairs(w=rebuilt))
    assert [(row.path, row.part_of) for row in checkpoint.tensors] == [
        ("w", None),
        ("w/.extra", 0),
        ("w/.shards/0", 0),
    ]
    assert [(value.path, value.text) for value in checkpoint.values] == [("w/.note", "mine")]


def test_state_of_a_tensor_that_is_no_dictionary_is_listed_too() -> None:
    tensor = built(view(), op("MARK") + list_(view(storage("1"))) + number(7) + op("TUPLE"))
    checkpoint = by_hand(pairs(w=tensor))
    assert [row.path for row in checkpoint.tensors] == ["w", "w/.state/0/0"]
    assert [(value.path, value.text) for value in checkpoint.values] == [("w/.state/1", "7")]


def test_composite_reached_twice_lists_its_parts_twice_but_its_attributes_once() -> None:
    sparse = Call(
        Global("torch._utils", "_rebuild_sparse_tensor"),
        ("torch.sparse_coo", (tensor_value("0"), tensor_value("1"), (9,))),
        "reduce",
    )
    sparse.state = Dict([("note", 1)])
    found = walk([sparse, sparse], DEFAULT_LIMITS, Progress())
    assert [tensor.path for tensor in found.tensors] == [
        "0", "0/indices", "0/values", "1", "1/indices", "1/values",
    ]  # fmt: skip
    assert [leaf.path for leaf in found.values] == ["0/.note"]


def test_sources_are_the_values_of_the_rows() -> None:
    first, second = tensor_value("0"), tensor_value("1")
    found = walk([first, Dict([("a", second)])], DEFAULT_LIMITS, Progress())
    assert found.sources == [first, second]
    assert len(found.tensors) == 2


# --- what a hostile file can make it cost -------------------------------------------------------------------


def nested(depth: int, wrap: Callable[[Value], Value]) -> Value:
    value: Value = 1
    for _ in range(depth):
        value = wrap(value)
    return value


WRAPS: dict[str, Callable[[Value], Value]] = {
    "list": lambda value: [value, None],
    "tuple": lambda value: (value,),
    "dict": lambda value: Dict([("k", value)]),
    "set": lambda value: Set([value], frozen=True),
    "call": lambda value: Call(Global("a", "B"), (value,), "reduce"),
    "set call": lambda value: Call(Global("builtins", "set"), (value,), "reduce"),
    "persistent id": PersistentId,
    "parameter": lambda value: Call(
        Global("torch._utils", "_rebuild_parameter"), (value, True, None), "reduce"
    ),
    "wrapper": lambda value: Call(
        Global("torch._tensor", "_rebuild_from_type_v2"),
        (Global("torch._utils", "_rebuild_parameter"), Global("a", "B"), (value, True, None), None),
        "reduce",
    ),
    "state": lambda value: with_state(Call(Global("a", "B"), (), "newobj"), Dict([("k", value)])),
    "kwargs": lambda value: Call(Global("a", "B"), (), "newobj", Dict([("k", value)])),
}


def with_state(call_: Call, state: Value) -> Call:
    call_.state = state
    return call_


@pytest.mark.wide
@table("kind", WRAPS)
def test_endless_nesting_is_capped(kind: str) -> None:
    root = nested(5_000, WRAPS[kind])
    found = walk(root, DEFAULT_LIMITS, Progress())
    assert found.too_deep == 1
    assert all(len(leaf.keys) <= DEFAULT_LIMITS.depth for leaf in found.values)


@pytest.mark.wide
@table("kind", WRAPS)
def test_what_is_nested_too_deeply_is_not_walked(kind: str) -> None:
    def prepare(levels: int) -> Callable[[], object]:
        root = nested(levels, WRAPS[kind])
        return lambda: walk(root, DEFAULT_LIMITS, Progress())

    assert growth(prepare, 2_000, 8_000) < 1


def test_depth_is_noted_and_the_rest_is_shown() -> None:
    checkpoint = by_hand(
        pairs(deep=list_(list_(list_(view()), number(1)), number(2)), w=view(storage("1"))),
        limits=Limits(depth=3),
    )
    assert [tensor.path for tensor in checkpoint.tensors] == ["w"]
    assert sentences(checkpoint.notes) == ["1 values are nested too deeply to be shown."]


def test_billion_laughs_are_told_by_identity() -> None:
    laugh: Value = ["ha", Dict([])]
    for _ in range(60):
        laugh = [laugh, laugh, laugh, laugh, laugh, laugh, laugh, laugh, laugh, laugh]
    found = walk(laugh, DEFAULT_LIMITS, Progress())
    assert len(found.values) == 9 * 60 + 2
    assert all(len(leaf.text) <= 200 for leaf in found.values)


@table("made_of", ["sparse", "jagged", "attributes"])
def test_composites_of_composites_do_not_double(made_of: str) -> None:
    value: Value = tensor_value()
    for _ in range(200):
        if made_of == "sparse":
            arguments = ("torch.sparse_coo", (value, value, (9,)))
            value = Call(Global("torch._utils", "_rebuild_sparse_tensor"), arguments, "reduce")
        elif made_of == "jagged":
            arguments = (Dict([("values", value), ("offsets", value), ("lengths", value)]),)
            value = Call(Global("torch.nested", "_rebuild_njt"), arguments, "reduce")
        else:
            value = with_state(tensor_value(), Dict([("a", value), ("b", value)]))
    found = walk([value, value], DEFAULT_LIMITS, Progress())
    assert len(found.tensors) + len(found.values) < 3000


def test_attributes_of_attributes_are_capped() -> None:
    value = tensor_value()
    for _ in range(2000):
        value = with_state(tensor_value(), Dict([("a", value)]))
    found = walk(value, DEFAULT_LIMITS, Progress())
    assert found.too_deep == 1
    assert len(found.tensors) == DEFAULT_LIMITS.depth + 1


class CountedKey(int):
    """An integer that counts how often it is compared, which is what keys with the same hash cost."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedKey.compared += 1
        return int(self) == other

    def __hash__(self) -> int:
        return super().__hash__()


@pytest.mark.parametrize("step", [1, 2**61 - 1], ids=["apart", "colliding"])
def test_integer_keys_are_not_compared_with_each_other(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python hashes every multiple of 2**61 - 1 to 0: a dictionary of n of them compares n * n / 2 times."""
    monkeypatch.setattr(CountedKey, "compared", 0)
    keys = [CountedKey(step * place) for place in range(1_000)]
    state = Dict([(key, tensor_value(str(place))) for place, key in enumerate(keys)])
    groups: list[Value] = [Dict([("params", [*keys])])]
    found = walk(Dict([("state", state), ("param_groups", groups)]), DEFAULT_LIMITS, Progress())
    assert len(found.tensors) == len(keys)
    assert CountedKey.compared < 10 * len(keys)


def test_long_sequence_reached_often_is_read_once() -> None:
    def prepare(times: int) -> Callable[[], object]:
        numbers_: Value = list(range(times))
        return lambda: walk([numbers_] * times + [[]], DEFAULT_LIMITS, Progress())

    assert growth(prepare, 500, 2_000) < 1.2


def test_long_name_is_cut_in_paths_and_whole_in_keys() -> None:
    long = "x" * 5000
    tensor = only(by_hand(pairs(**{long: pairs(w=view(), a=number(1))})))
    assert tensor.keys == (long, "w")
    assert len(tensor.path) == 512 + 2


def test_long_names_on_the_way_to_much_are_refused() -> None:
    long = "x" * (1 << 20)
    root: Value = Dict([(long, Dict([(index, Dict([(long, 1)])) for index in range(200)]))])
    with pytest.raises(ModelError, match="too long"):
        walk(root, DEFAULT_LIMITS, Progress())


def test_long_names_of_storages_are_refused() -> None:
    many: Value = [tensor_value("k" * (1 << 20))] * 200
    with pytest.raises(ModelError, match="too long"):
        walk(many, DEFAULT_LIMITS, Progress())


def test_rows_are_counted() -> None:
    with pytest.raises(ModelError, match="more than 5,000 tensors and containers"):
        walk([[[None]] for _ in range(9000)], Limits(rows=5000), Progress())


def test_bad_keys_are_faults() -> None:
    assert by_hand(dict_((list_(), NONE))).safety.faults == ("unhashable-key",)
    assert by_hand(dict_((number(1), NONE))).safety.faults == ()


def test_rows_of_calls_are_remembered_as_long_as_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.model.walk._MOST_PLACED", 1)
    found = walk([Call(Global("a", "B"), (1,), "reduce") for _ in range(3)], Limits(), Progress())
    assert list(found.leaves.values()) == ["0"]


def test_values_beyond_a_number_are_counted() -> None:
    found = walk([None, [None] * 9, [], [[], 1], *[2] * 10], Limits(listed=3), Progress())
    assert len(found.values) == 3
    assert found.unlisted == 12
    checkpoint = by_hand(list_(list_(), *[NONE] * 12), limits=Limits(listed=10))
    assert sentences(checkpoint.notes) == [
        "3 more values are not listed, as there are too many; all tensors are."
    ]


def test_time_is_limited() -> None:
    with pytest.raises(ModelError, match="takes longer than -1 s"):
        walk([None, []] * 5000, Limits(seconds=-1.0), Progress())


def test_work_can_be_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        walk([None, []] * 5000, DEFAULT_LIMITS, progress)


def test_enormous_numbers_pass() -> None:
    huge = 10**100_000
    root = Dict(
        [
            (huge, 1),
            ("a", -huge),
            ("device", Call(Global("torch", "device"), ("cuda", huge), "reduce")),
            ("tensor", tensor_value(numel=3)),
        ]
    )
    found = walk(root, DEFAULT_LIMITS, Progress())
    assert [leaf.text.split()[0] for leaf in found.values] == ["1", "332,193-bit", 'torch.device("cuda",']
    assert found.hidden_devices[0].device.startswith("cuda:332,193-bit integer")
    assert root_of(number(1)) == 1


def test_rows_of_a_module_and_of_an_optimizer() -> None:
    slots = pairs(step=view(storage("2", 1), size=numbers(), stride=numbers()), exp_avg=view(storage("3")))
    groups = list_(pairs(params=list_(number(0)), lr=number(1)))
    state = pairs(
        state=op("EMPTY_DICT") + op("MARK") + number(0) + slots + op("SETITEMS"), param_groups=groups
    )
    checkpoint = by_hand(pairs(model=pairs(w=view(), n=view(storage("1"))), optimizer=state))
    rows = by_path(checkpoint)
    assert rows["optimizer/state/0/exp_avg"].slot == "exp_avg"
    assert rows["optimizer/state/0/step"].on_cpu_by_design
    assert rows["optimizer/state/0/exp_avg"].parameter is None


def test_calls_that_are_not_listed_are_noted_where_they_would_stand() -> None:
    shared = Call(Global("torch", "device"), ("cuda:1",), "reduce")
    other = Call(Global("torch", "device"), ("cuda:2",), "reduce")
    found = walk([None, shared, [shared, other], shared, other], Limits(listed=2), Progress())
    assert found.unlisted == 4
    assert [(row.path, row.device) for row in found.hidden_devices] == [("1", "cuda:1"), ("2/1", "cuda:2")]


def test_wide_shapes_and_strange_devices_are_counted() -> None:
    plain, wide = Limits().started(), Limits().started()
    root = by_hand_root(4, "cpu")
    walk(root, plain, Progress())
    walk(by_hand_root(100, "\u4e2d" * 50), wide, Progress())
    assert wide.counted().chars >= plain.counted().chars + 200 * 20 + 300
    assert wide.counted().parts >= plain.counted().parts + 200


def by_hand_root(dimensions: int, location: str) -> Value:
    pid = PersistentId(("storage", Global("torch", "FloatStorage"), "0", location, 4))
    ones = (1,) * dimensions
    return Call(Global("torch._utils", "_rebuild_tensor_v2"), (pid, 0, ones, ones, False, None), "reduce")


def test_stored_tensors_are_listed_and_one_of_no_storage_is_a_leaf() -> None:
    ids = {"0": StorageId("0", "float32", 4, NO_DEVICE, 6, False, None)}
    root = Dict([("a.weight", StoredTensor("0", "float32", (2, 3))), ("b", StoredTensor("1", "int8", (1,)))])
    found = walk(root, DEFAULT_LIMITS, Progress(), Known(ids))
    assert [(row.path, row.device, row.role, row.storage) for row in found.tensors] == [
        ("a.weight", "none", "parameter", "0")
    ]
    assert [(row.path, row.type) for row in found.values] == [("b", "tensor")]
    assert found.views.total("0") == (24, 1)


def test_a_tensor_right_in_a_parameters_state_is_a_slot() -> None:
    groups: list[Value] = [Dict([("params", [0])])]
    optimizer = Dict([("state", Dict([(0, tensor_value())])), ("param_groups", groups)])
    (row,) = walk(optimizer, DEFAULT_LIMITS, Progress()).tensors
    assert (row.role, row.slot) == ("optimizer", None)
