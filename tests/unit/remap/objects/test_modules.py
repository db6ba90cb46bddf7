from __future__ import annotations

import pytest

from inspector.containers.container import Container
from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.errors import ExportError
from inspector.limits import Limits
from inspector.pickles.values import ByteString, Dict, PersistentId, Value
from inspector.records import replace
from inspector.remap.objects import flat_program, read_module, read_program
from tests.builders import pickles, scripts
from tests.sweep import table
from tests.unit.remap.form_samples import module, tensor, texts

LEAF = module(
    {"weight": tensor("0"), "bias": b"N"}, {"mean": tensor("1"), "scratch": tensor("2")}, unsaved=("scratch",)
)


def names(root: bytes, **limits: int) -> list[str]:
    return [entry.name for entry in read_module(pickles.read(root).root, Limits(**limits))]


def test_names_are_those_of_state_dict() -> None:
    root = module({"scale": tensor("3")}, modules={"a": LEAF, "none": b"N", "b": module(modules={"c": LEAF})})
    assert names(root) == ["scale", "a.weight", "a.mean", "b.c.weight", "b.c.mean"]


def test_steps_are_those_of_the_rows() -> None:
    (entry,) = read_module(pickles.read(module(modules={"a": module({"w": tensor()})})).root)
    assert entry.steps == ("._modules", "a", "._parameters", "w")


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


@table("root", [b"N", pickles.name("mine.Net") + b")\x81", pickles.call("builtins.set"), texts()])
def test_what_is_no_module_has_no_entries(root) -> None:
    assert names(root) == []


def test_sets_without_arguments_are_empty() -> None:
    state = pickles.dict_(
        (pickles.text("_buffers"), pickles.dict_((pickles.text("a"), tensor()))),
        (pickles.text("_non_persistent_buffers_set"), pickles.call("builtins.set")),
    )
    assert names(pickles.name("mine.Net") + b")\x81" + state + b"b") == ["a"]


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
