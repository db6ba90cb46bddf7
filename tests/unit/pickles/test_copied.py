"""What Python copies and the machine shares: a change after the copy makes the stream odd."""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict, defaultdict, deque

import pytest

from inspector.pickles.machine import Machine
from inspector.pickles.oddities import OddityKind
from tests.work import count_steps

LIST, DICT, SET, KEEP = b"]", b"}", b"\x8f", b"\x94"
POP, DUP = b"0", b"2"


def kinds(data: bytes) -> set[OddityKind]:
    return {oddity.kind for oddity in Machine(data, name="stream").run().oddities}


def name(dotted: str) -> bytes:
    module, _, attribute = dotted.rpartition(".")
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


ORDERED = name("collections.OrderedDict")
OBJECT = name("types.SimpleNamespace") + b")\x81"
PAIR = b"]" + KEEP + b"(K\x01K\x02e"
MANY = b"".join(b"](K\x01K\x02e" for _ in range(40))


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(OBJECT + DICT + KEEP + b"b0h\x00K\x01K\x02s", id="state"),
        pytest.param(DICT + DUP + OBJECT + b"\x94h\x00b", id="not changed"),
        pytest.param(DICT + KEEP + OBJECT + b"h\x00b0K\x01K\x02s", id="state below"),
        pytest.param(OBJECT + DICT + KEEP + b"}\x94\x86b0h\x01K\x01K\x02s", id="slots"),
        pytest.param(ORDERED + b"](" + PAIR + b"e\x85R0h\x00K\x01a", id="pair"),
        pytest.param(ORDERED + LIST + KEEP + b"\x85R0h\x00" + PAIR + b"a", id="pairs"),
        pytest.param(ORDERED + b"](" + MANY + PAIR + b"e\x85R0h\x00K\x01a", id="one of many"),
        pytest.param(ORDERED + b"((" + MANY + PAIR + b"tt\x94R0h\x00K\x01a", id="in a tuple"),
        pytest.param(name("builtins.frozenset") + SET + KEEP + b"\x85R0h\x00(K\x01\x90", id="set"),
        pytest.param(name("builtins.dict") + DICT + KEEP + b"\x85R0h\x00(K\x01K\x02u", id="dict"),
        pytest.param(name("builtins.dict") + b")}\x94\x92" + b"0h\x00K\x01K\x02s", id="named arguments"),
        pytest.param(b"(" + name("builtins.set") + b"]\x94o0h\x00K\x01a", id="old class"),
        pytest.param(b"(]\x94ibuiltins\nset\n0h\x00K\x01a", id="instance"),
    ],
)
def test_a_change_after_a_copy_is_odd(stream: bytes, request: pytest.FixtureRequest) -> None:
    changed = "not changed" not in request.node.name
    assert (OddityKind.CHANGED_LATER in kinds(b"\x80\x04" + stream + b".")) == changed


def test_honest_values_are_not_odd() -> None:
    items: list[object] = [1]
    items.append(items)
    held: dict[str, object] = {"list": items, "pairs": OrderedDict([(1, [2]), (3, [4])]), "none": None}
    held["self"] = held
    value = [held, Counter("abc"), defaultdict(list, {1: [2]}), deque([1, 2], 3), {1, 2}, frozenset({3})]
    for protocol in range(6):
        assert kinds(pickle.dumps(value, protocol)) == set()


def test_arguments_of_many_calls_are_looked_through_once() -> None:
    items = b"(" + b"K\x01" * 2_000 + b"t" + KEEP
    calls = name("m.f") + KEEP + b"h\x00\x85R0" + b"h\x01h\x00\x85R0" * 3_000
    machine = Machine(b"\x80\x04" + items + calls + b"N.", name="stream")
    assert count_steps(machine.run) < 400_000
