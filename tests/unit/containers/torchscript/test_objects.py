from __future__ import annotations

import pytest

from inspector.containers import torchscript as objects
from inspector.containers.torchscript import Members, Objects, is_tensor
from inspector.pickles.values import Call, Dict, Global, Value
from tests.builders import pickles
from tests.builders.pickles import NONE, call, dict_, list_, new, number, op, text, tuple_
from tests.builders.scripts import weight

MEMBERS = {
    "__torch__.Net": Members(frozenset({"w"}), frozenset({"b"})),
    "__torch__.Old": Members(frozenset("w"), None),
}


def shown(value: Value, names: dict[int, str] | None = None) -> object:
    """A value as Python's own, tensors as what they are for."""
    if isinstance(value, Dict):
        return {key: shown(item, names) for key, item in value.pairs}
    if isinstance(value, list | tuple):
        return [shown(item, names) for item in value]
    return (names or {}).get(id(value), "tensor") if is_tensor(value) else value


def made(*root: bytes) -> object:
    found = Objects(MEMBERS)
    plain = found.plain(pickles.read(*root).root)
    return shown(plain, dict(found.declared))


def test_objects_are_mappings_and_tensors_are_what_their_class_says() -> None:
    root = new(
        "__torch__.Net",
        (text("w"), weight()),
        (text("b"), weight()),
        (text("x"), weight()),
        (number(1), weight()),
        (text("n"), number(3)),
        (text("old"), new("__torch__.Old", (text("w"), weight()), (text("b"), weight()))),
        (text("unknown"), new("__torch__.Other", (text("w"), weight()))),
    )
    assert made(root) == {
        "w": "parameter",
        "b": "buffer",
        "x": "other",
        1: "other",
        "n": 3,
        "old": {"w": "parameter", "b": "buffer"},
        "unknown": {"w": "parameter"},
    }


def test_typed_containers_are_what_they_hold() -> None:
    ints = call("torch.jit._pickle.build_intlist", list_(number(1), number(2)))
    typed = call(
        "torch.jit._pickle.restore_type_tag", dict_((text("k"), weight())), text("Dict[str, Tensor]")
    )
    packed = call("torch.jit._pickle.build_intlist")
    assert made(ints) == [1, 2]
    assert made(typed) == {"k": "tensor"}
    assert isinstance(pickles.read(packed).root, Call)
    assert isinstance(made(packed), Call)  # without arguments it stays what it is
    assert made(tuple_(ints, NONE)) == [[1, 2], None]


def test_a_state_that_is_no_dictionary_stands_for_the_object() -> None:
    packed = Call(Global("__torch__", "Packed"), (), "newobj")
    packed.state = (1, [2])
    assert shown(Objects({}).plain(packed)) == [1, [2]]
    packed.state = packed  # it ends all the same
    assert Objects({}).plain(packed) is packed


def test_a_module_in_two_places_is_listed_in_both_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = new("__torch__.Net", (text("w"), weight()))
    root = new(
        "__torch__.Net", (text("a"), shared + op("BINPUT", b"\x07")), (text("c"), op("BINGET", b"\x07"))
    )
    assert made(root) == {"a": {"w": "parameter"}, "c": {"w": "parameter"}}
    plain = Objects(MEMBERS).plain(pickles.read(root).root)
    assert isinstance(plain, Dict)
    assert plain.pairs[0][1] is not plain.pairs[1][1]
    monkeypatch.setattr(objects, "_MOST_AGAIN", 0)
    plain = Objects(MEMBERS).plain(pickles.read(root).root)
    assert isinstance(plain, Dict)
    assert plain.pairs[0][1] is plain.pairs[1][1]


@pytest.mark.wide
def test_shared_lists_and_loops_end() -> None:
    inner = Dict([("w", 1)])
    module = Call(Global("__torch__", "Net"), (), "newobj")
    module.state = Dict([("a", inner), ("b", inner), ("self", module)])
    plain = Objects(MEMBERS).plain(module)
    assert isinstance(plain, Dict)
    found = dict(plain.pairs)
    assert found["a"] is found["b"]
    assert found["self"] is plain
    # Doubled with each level, it would be longer than any memory.
    value: Value = Call(Global("__torch__", "Net"), (), "newobj")
    for _ in range(60):
        above = Call(Global("__torch__", "Net"), (), "newobj")
        above.state = Dict([("a", value), ("b", value)])
        value = above
    count, stack, seen = 0, [Objects(MEMBERS).plain(value)], set[int]()
    while stack:
        one = stack.pop()
        if isinstance(one, Dict) and id(one) not in seen:
            seen.add(id(one))
            count += len(one.pairs)
            stack += [item for _, item in one.pairs]
    assert count < 2 * objects._MOST_AGAIN
