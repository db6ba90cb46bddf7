from __future__ import annotations

from typing import Any

import pytest

from inspector.errors import ExportError
from inspector.pickles.values import ByteString, Dict
from inspector.remap.forms import Patterns
from inspector.remap.objects import Taken, metadata_of, strip_metadata, take_entries, value_at
from inspector.remap.selection import Model
from tests.builders import pickles
from tests.sweep import table
from tests.unit.remap.form_samples import mapping, module, ordered, tensor
from tests.unit.remap.samples import container_of, parameter, sent, sparse, stream, text, wrapper

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


def test_entries_come_in_their_order_with_what_they_are() -> None:
    taken = take(mapping({"b": tensor("1"), "a": tensor("0"), "n": b"K\x07"}))
    assert [name for name, _ in taken.entries] == ["b", "a", "n"]
    assert [facts and facts.shape for facts in taken.facts] == [(4,), (4,), None]
    assert (taken.left_out, taken.metadata) == ([], None)


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


def test_patterns_name_paths_or_names() -> None:
    root = mapping({"m": mapping({"a.x": tensor(), "a.y": tensor(), "b": tensor()})})
    taken = take(root, "m/b", "a.x", model=Model(("m",), "m", False, False))
    assert [name for name, _ in taken.entries] == ["a.y"]
    assert [(row.path, row.why, row.nbytes) for row in taken.left_out] == [
        ("m/a.x", "left out on request", 16),
        ("m/b", "left out on request", 16),
    ]


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
