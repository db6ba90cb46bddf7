from __future__ import annotations

from typing import Any

import pytest

from inspector.containers.container import Container
from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.errors import ExportError, PlanError
from inspector.limits import Limits
from inspector.pickles.values import ByteString, Dict, PersistentId, Value
from inspector.records import replace
from inspector.remap.forms import Patterns
from inspector.remap.objects import (
    Gone,
    Model,
    Taken,
    flat_program,
    leave_out,
    metadata_of,
    read_module,
    read_program,
    strip_metadata,
    take_entries,
    value_at,
)
from inspector.remap.pickle_writer import Writing, write_pickle
from tests.builders import pickles, scripts
from tests.sweep import table
from tests.unit.remap.form_samples import mapping, module, ordered, tensor, texts
from tests.unit.remap.samples import container_of, parameter, sent, sparse, stream, text, wrapper

LEAF = module(
    {"weight": tensor("0"), "bias": b"N"}, {"mean": tensor("1"), "scratch": tensor("2")}, unsaved=("scratch",)
)


def names(root: bytes, **limits: int) -> list[str]:
    return [entry.name for entry in read_module(pickles.read(root).root, Limits(**limits))]


def test_names_are_those_of_state_dict() -> None:
    root = module({"scale": tensor("3")}, modules={"a": LEAF, "none": b"N", "b": module(modules={"c": LEAF})})
    assert names(root) == ["scale", "a.weight", "a.mean", "b.c.weight", "b.c.mean"]


def test_shared_modules_are_listed_under_both_names() -> None:
    shared = LEAF + b"q\x07"
    assert names(module(modules={"a": shared, "b": b"h\x07"})) == ["a.weight", "a.mean", "b.weight", "b.mean"]


@table(
    "unsaved",
    [
        texts("scratch"),
        pickles.call("builtins.set", pickles.list_(pickles.text("scratch"), b"K\x01")),
        b"\x8f(" + pickles.text("scratch") + b"\x90",  # a set of protocol 4
    ],
)
def test_sets_are_read_in_every_spelling(unsaved) -> None:
    state = {"_buffers": pickles.dict_((pickles.text("scratch"), tensor()), (pickles.text("kept"), tensor()))}
    pairs = [(pickles.text(key), value) for key, value in state.items()]
    pairs.append((pickles.text("_non_persistent_buffers_set"), unsaved))
    assert names(pickles.name("mine.Net") + b")\x81" + pickles.dict_(*pairs) + b"b") == ["kept"]


def test_modules_within_themselves_end() -> None:
    made = pickles.name("mine.Net") + b")\x81q\x00"
    state = pickles.dict_((pickles.text("_modules"), pickles.dict_((pickles.text("me"), b"h\x00"))))
    with pytest.raises(ExportError, match="contain each other without end"):
        names(made + state + b"b")


def test_modules_doubled_at_every_level_end() -> None:
    root = module({"w": tensor()}) + b"q\x00"
    for slot in range(1, 9):
        inner = root if slot == 1 else b"h" + bytes([slot - 1])
        root = (root + b"0" if slot > 1 else b"") + module(
            modules={"a": inner, "b": b"h" + bytes([slot - 1])}
        )
        root += b"q" + bytes([slot])
    assert len(names(root)) == 256
    with pytest.raises(ExportError, match="without end"):
        names(root, rows=100)


def old(raw: bytes) -> bytes:
    return pickles.op("SHORT_BINSTRING", bytes([len(raw)]) + raw)


def old_module(parameter: bytes, child: bytes, inner: bytes) -> bytes:
    """A module of Python 2 in another, by names that are bytes."""

    def made(parameters: bytes, modules: bytes) -> bytes:
        state = pickles.dict_((old(b"_parameters"), parameters), (old(b"_modules"), modules))
        return pickles.name("mine.Net") + b")\x81" + state + b"b"

    within = made(pickles.dict_((inner, tensor("1"))), b"}")
    return made(pickles.dict_((parameter, tensor("0"))), pickles.dict_((child, within)))


def test_names_of_python_2_are_joined_as_bytes() -> None:
    root = old_module(old(b"caf\xe9"), old(b"sub"), old(b"caf\xe9"))
    found = [entry.name for entry in read_module(pickles.read(root).root)]
    assert [name.raw for name in found if isinstance(name, ByteString)] == [b"caf\xe9", b"sub.caf\xe9"]
    root = old_module(old(b"w"), old(b"\xff"), pickles.text("w"))
    found = [entry.name for entry in read_module(pickles.read(root).root)]
    assert [type(name) for name in found] == [str, ByteString]
    assert names(old_module(old(b"w"), old(b"a"), old(b"w"))) == ["w", "a.w"]


def program(data: bytes) -> Container:
    return read_container(BytesSource(data, "net.pt"))


def test_program_lists_its_own_weights_first() -> None:
    child = pickles.new("__torch__.Net", (pickles.text("weight"), scripts.weight("1")))
    root = pickles.new(
        "__torch__.Net",
        (pickles.text("a"), child),
        (pickles.text("mean"), scripts.weight("0")),
        (pickles.text("weight"), scripts.weight("0")),
        (pickles.text("listed"), pickles.list_(scripts.weight("2"))),
        (b"K\x01", scripts.weight("2")),
    )
    container = program(scripts.script(root))
    assert [entry.name for entry in read_program(container)] == ["weight", "mean", "a.weight"]
    assert [entry.steps for entry in read_program(container)][2] == ("a", "weight")
    assert [key for key, _ in flat_program(container).pairs] == [
        "weight",
        "mean",
        "a.weight",
        "listed.0",
        "1",
    ]


def test_program_that_holds_itself_or_is_deep_ends() -> None:
    inner = Dict([])
    inner.pairs.append(("self", inner))
    container = replace(program(scripts.script()), root=inner)
    assert (read_program(container), flat_program(container).pairs) == ([], [])
    value: Value = PersistentId(("x",))
    for _ in range(9000):
        value = Dict([("a", value)])
    deep = replace(container, root=value)
    assert (read_program(deep), flat_program(deep).pairs) == ([], [])
    assert read_program(replace(deep, declared=None)) == []


ROOT = Model((), "", False, False)
HOOKS = pickles.call("collections.OrderedDict")


def take(root: bytes, *patterns: str, model: Model = ROOT) -> Taken:
    return take_entries(container_of(stream(root)), model, Patterns(patterns))


def functions(taken: Taken) -> dict[str, Any]:
    """What each entry is made by."""
    return {name: value.func.name if hasattr(value, "func") else value for name, value in taken.entries}


def from_type(inner: bytes, args: bytes, cls: str = "mine.Sub") -> bytes:
    return pickles.call("torch._tensor._rebuild_from_type_v2", inner, pickles.name(cls), args, b"}")


def rebuild_args() -> bytes:
    return pickles.tuple_(
        pickles.storage(numel=4), b"K\x00", pickles.tuple_(b"K\x04"), pickles.tuple_(b"K\x01"), b"\x89", HOOKS
    )


@table(
    ("value", "function"),
    [
        (tensor(), "_rebuild_tensor_v2"),
        (tensor() + b"}b", "_rebuild_tensor_v2"),
        (parameter(tensor()), "_rebuild_parameter"),
        (parameter(tensor() + mapping({"tag": b"K\x01"}) + b"b"), "_rebuild_parameter"),
        (
            pickles.call("torch._utils._rebuild_parameter_with_state", tensor(), b"\x88", HOOKS, b"}"),
            "_rebuild_parameter",
        ),
        (from_type(pickles.name("torch._utils._rebuild_tensor_v2"), rebuild_args()), "_rebuild_tensor_v2"),
        (sent(tensor(), text("xla:0")), "_rebuild_tensor_v2"),
        (sparse(tensor("0"), tensor("1")), "_rebuild_sparse_tensor"),
    ],
)
def test_tensors_are_taken_out_of_what_only_a_class_can_load(value, function) -> None:
    taken = take(mapping({"w": value}))
    assert functions(taken) == {"w": function}
    (entry,) = (value for _, value in taken.entries)
    assert entry.state is None
    assert taken.facts[0] is not None


def test_bare_storages_and_plain_data_stay() -> None:
    plain = mapping(
        {"shape": pickles.call("torch.Size", pickles.list_(b"K\x01")), "d": pickles.name("torch.float32")}
    )
    taken = take(
        mapping(
            {
                "s": pickles.storage(),
                "p": plain,
                "b": pickles.call("_codecs.encode", text("x"), text("latin1")),
            }
        )
    )
    assert [name for name, _ in taken.entries] == ["s", "p", "b"]


def test_tensors_of_torch_0_have_their_data_in_the_state() -> None:
    state = pickles.tuple_(pickles.storage(numel=4), b"K\x00", b"K\x04\x85", b"K\x01\x85")
    taken = take(mapping({"w": pickles.call("torch.FloatTensor") + state + b"b"}))
    assert functions(taken) == {"w": "FloatTensor"}
    assert taken.entries[0][1].state is not None


def test_loops_of_plain_data_are_walked_once() -> None:
    loop = b"]q\x05(" + b"h\x05" + b"}" + b"e"
    assert [name for name, _ in take(mapping({"l": loop})).entries] == ["l"]


ARRAY = pickles.call(
    "numpy.core.multiarray._reconstruct", pickles.name("numpy.ndarray"), b"K\x00\x85", text("b")
)
ARRAY += (
    pickles.tuple_(
        b"K\x01",
        b"K\x02\x85",
        pickles.call("numpy.dtype", text("f4"), b"\x89", b"\x88"),
        b"\x89",
        text("1234"),
    )
    + b"b"
)


@table(
    ("value", "why"),
    [
        (wrapper(pickles.call("torch.device", text("cpu"))), "its class stores the data in its own way"),
        (
            sent(ARRAY, text("xla:0"), "_rebuild_device_tensor_from_numpy"),
            "its class stores the data in its own way",
        ),
        (pickles.call("mine.Thing"), "needs the class mine.Thing to be loaded"),
        (pickles.list_(b"}", pickles.call("mine.Thing")), "needs the class mine.Thing to be loaded"),
        (pickles.name("mine.function"), "needs the class mine.function to be loaded"),
        (
            from_type(pickles.name("mine.rebuild"), pickles.tuple_(tensor())),
            "its class stores the data in its own way",
        ),
    ],
)
def test_what_only_a_class_can_load_is_left_out(value, why) -> None:
    taken = take(mapping({"a": tensor(), "w": value}))
    assert [name for name, _ in taken.entries] == ["a"]
    ((path, said, *_),) = taken.left_out
    assert path == "w"
    assert said.startswith(why)


def test_module_gives_tensors_that_ask_for_no_gradients() -> None:
    root = mapping({"net": module({"w": parameter(tensor())}, {"m": tensor("1")})})
    taken = take(root, model=Model(("net",), "net", True, False))
    assert functions(taken) == {"w": "_rebuild_tensor_v2", "m": "_rebuild_tensor_v2"}
    assert [row.why for row in taken.left_out] == ["the module's class and its other attributes"]


def test_names_that_are_no_texts_are_left_out() -> None:
    taken = take(pickles.dict_((b"K\x01", tensor()), (text("a"), tensor())))
    assert [name for name, _ in taken.entries] == ["a"]
    assert [(row.path, row.why) for row in taken.left_out] == [("1", "its key is not a str")]


def test_of_a_name_given_twice_the_last_counts() -> None:
    taken = take(pickles.dict_((text("a"), tensor("0")), (text("b"), tensor("1")), (text("a"), tensor("2"))))
    assert [
        (name, facts.storage.key) for (name, _), facts in zip(taken.entries, taken.facts, strict=True)
    ] == [("a", "2"), ("b", "1")]


def test_weights_in_a_list_have_no_names() -> None:
    with pytest.raises(ExportError, match="they have no names"):
        take(pickles.list_(tensor()))


def test_ways_that_lead_nowhere() -> None:
    root = pickles.read(mapping({"a": pickles.list_(b"}", mapping({"b": b"K\x05"}))})).root
    assert value_at(root, ("a", 1, "b")) == 5
    with pytest.raises(ExportError, match="not where its rows say: 1"):
        value_at(root, ("a", "1"))


# --- what torch keeps beside the names ----------------------------------------------------------------------


def metadata(*names: str) -> bytes:
    return ordered({name: mapping({"version": b"K\x01"}) for name in names})


def keys(value: Any) -> list[Any]:
    return [key for key, _ in value.pairs]


def test_versions_of_modules_follow_their_names() -> None:
    root = ordered({"module.a": tensor()}, metadata("", "module", "module.net", "modules"))
    found = take(root).metadata
    assert keys(found) == ["", "module", "module.net", "modules"]
    assert strip_metadata(found, "") is found
    assert keys(strip_metadata(found, "module.")) == ["", "net"]
    assert metadata_of(pickles.read(ordered({"a": tensor()})).root) is None
    assert metadata_of(None) is None


def test_names_of_python_2_stay_bytes_without_their_prefix() -> None:
    made = strip_metadata(Dict([(ByteString.of(b"net.caf\xe9"), 1), ("net.a", 2)]), "net.")
    first, second = keys(made)
    assert first.raw == b"caf\xe9"
    assert (second, type(second)) == ("a", str)


def test_names_of_python_2_are_taken_as_they_are() -> None:
    found = take(pickles.dict_((pickles.op("SHORT_BINSTRING", b"\x04caf\xe9"), tensor())))
    assert found.entries[0][0].raw == b"caf\xe9"


ONE, TWO = pickles.number(1), pickles.number(2)
OBJECT = pickles.call("mine.Thing", pickles.list_(mapping({"a": ONE})))


def left(root: bytes, *patterns: str) -> tuple[Any, list[str]]:
    """What is left of a value, and the paths that are gone."""
    value = pickles.read(root).root
    paths = [path for path, _ in leave_out(value, Patterns(patterns))]
    return pickles.root(write_pickle(value, Writing())[2:-1]), paths


def same(root: bytes) -> Any:
    """A value after it was written once, which spells some things in another way."""
    return pickles.root(write_pickle(pickles.read(root).root, Writing())[2:-1])


@table(
    ("root", "patterns", "expected", "paths"),
    [
        (mapping({"a": ONE, "b": TWO}), ("a",), mapping({"b": TWO}), ["a"]),
        (mapping({"a": mapping({"x": ONE}), "b": TWO}), ("a/*",), mapping({"a": b"}", "b": TWO}), ["a/x"]),
        (mapping({"a": mapping({"x": ONE}), "b": TWO}), ("a",), mapping({"b": TWO}), ["a"]),
        (ordered({"a": ONE, "b": TWO}), ("b",), ordered({"a": ONE}), ["b"]),
        (mapping({"l": pickles.list_(b"}", ONE)}), ("l/0",), mapping({"l": pickles.list_(ONE)}), ["l/0"]),
        (
            pickles.call("collections.OrderedDict", pickles.list_(pickles.list_(pickles.text("a"), ONE)))
            + b"("
            + pickles.text("b")
            + TWO
            + b"u",
            ("a",),
            ordered({"b": TWO}),
            ["a"],
        ),
        (
            pickles.name("mine.Thing") + b")\x81" + mapping({"x": ONE, "y": TWO}) + b"b",
            (".x",),
            pickles.name("mine.Thing") + b")\x81" + mapping({"y": TWO}) + b"b",
            [".x"],
        ),
        (
            pickles.name("mine.Thing") + b")\x81" + b"N" + mapping({"s": ONE}) + b"\x86b",
            (".s",),
            pickles.name("mine.Thing") + b")\x81" + b"N}\x86b",
            [".s"],
        ),
        (
            pickles.call("mine.Map") + b"(" + pickles.text("k") + ONE + pickles.text("l") + TWO + b"u",
            ("k",),
            pickles.call("mine.Map") + b"(" + pickles.text("l") + TWO + b"u",
            ["k"],
        ),
    ],
)  # fmt: skip
def test_entries_are_left_out(root, patterns, expected, paths) -> None:
    assert left(root, *patterns) == (same(expected), paths)


def test_what_is_nested_too_deeply_has_no_path() -> None:
    def deep() -> Any:
        return pickles.read(mapping({"a": mapping({"a": mapping({"x": ONE})})})).root

    assert leave_out(deep(), Patterns(("**/x",)), Limits(depth=2)) == [Gone("a/a/x")]
    assert leave_out(deep(), Patterns(("**/x",)), Limits(depth=1)) == []
    deepest = pickles.read(b"]" * 50_000 + b"a" * 49_999).root
    assert leave_out(deepest, Patterns(("nowhere",))) == []


SHARED = mapping(
    {"a": mapping({"x": ONE, "y": TWO}) + b"q\x05", "b": b"h\x05", "c": pickles.tuple_(b"h\x05")}
)


@table(
    ("pattern", "gone"),
    [
        ("a/x", [Gone("a/x"), Gone("b/x", "a/x"), Gone("c/0/x", "a/x")]),
        ("b/x", [Gone("a/x", "b/x"), Gone("b/x"), Gone("c/0/x", "b/x")]),
        ("c/0/x", [Gone("a/x", "c/0/x"), Gone("b/x", "c/0/x"), Gone("c/0/x")]),
        ("?/x", [Gone("a/x"), Gone("b/x"), Gone("c/0/x", "a/x")]),
        ("a", [Gone("a")]),
    ],
)
def test_what_is_taken_out_of_a_shared_object_is_named_wherever_it_stood(pattern, gone) -> None:
    value = pickles.read(SHARED).root
    assert leave_out(value, Patterns((pattern,))) == gone
    (_, one), (_, other), *_ = value.pairs[-3:] if pattern != "a" else [(0, value.pairs[0][1])] * 3
    assert one is other
    assert [key for key, _ in one.pairs] == (["x", "y"] if pattern == "a" else ["y"])


def test_objects_that_are_shared_without_end_are_refused() -> None:
    """Each dictionary holds the one below it twice: there are a million million paths."""
    inner = Dict([("x", 1)])
    for _ in range(40):
        inner = Dict([("l", inner), ("r", inner)])
    with pytest.raises(PlanError, match="shared so often"):
        leave_out(inner, Patterns(("nowhere",)))


def test_loops_are_walked_once() -> None:
    root = b"}q\x00" + pickles.text("me") + b"h\x00s" + pickles.text("x") + ONE + b"s"
    assert left(root, "x")[1] == ["x"]


@table(
    ("root", "path"),
    [
        (mapping({"t": pickles.tuple_(b"}", ONE)}), "t/0"),
        (OBJECT, "0"),
        (pickles.call("builtins.dict", mapping({"a": ONE})), "a"),
        (pickles.name("mine.Thing") + b")\x81" + pickles.list_(mapping({"a": ONE})) + b"b", ".state"),
        (pickles.call("builtins.set", pickles.list_(b")", mapping({"a": ONE}))), "1"),
    ],
)
def test_what_others_would_take_the_place_of_cannot_be_left_out(root, path) -> None:
    with pytest.raises(PlanError, match="cannot be left out"):
        left(root, path)


def test_what_is_shown_by_its_meaning_has_no_entries() -> None:
    root = pickles.call("torch.Size", pickles.tuple_(ONE)) + mapping({"a": ONE}) + b"b"
    assert left(root, "a")[1] == []
