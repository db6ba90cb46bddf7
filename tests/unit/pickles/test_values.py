from __future__ import annotations

import pytest

from inspector.errors import PickleError
from inspector.pickles.runs import _Numbers
from inspector.pickles.state import Room
from inspector.pickles.values import (
    MADE,
    Blob,
    ByteArray,
    ByteString,
    Call,
    Dict,
    Global,
    Packed,
    PersistentId,
    Set,
    StoredTensor,
    Value,
    noun_for,
)
from tests.sweep import table


@table(
    ("value", "words"),
    [
        (Global("torch", "device"), "the name torch.device"),
        (Call(None, (), "reduce"), "an object"),
        (PersistentId(("storage",)), "a persistent id"),
        (Dict([]), "a dict"),
        (Set([], frozen=True), "a set"),
        (StoredTensor("0", "float32", (2,)), "a tensor"),
        (Blob("bytes", 0, 9), "a large value"),
        ([], "a list"),
        ((), "a tuple"),
        ("secret", "a str"),
        (ByteString("secret"), "a byte string of Python 2"),
        (b"secret", "a bytes object"),
        (ByteArray(b"secret"), "a bytearray"),
        (7, "an int"),
        (True, "a bool"),
        (1.5, "a float"),
        (None, "None"),
    ],
)
def test_kind_tells_nothing_of_the_contents(value: Value, words: str) -> None:
    assert noun_for(value) == words


def test_kind_of_a_long_name_is_cut() -> None:
    assert noun_for(Global("m" * 70, "n" * 70)) == f"the name {'m' * 70}.{'n' * 28}\u2026"
    assert noun_for(Global("m" * 50, "n" * 49)) == f"the name {'m' * 50}.{'n' * 49}"


def test_kind_of_a_name_is_printable() -> None:
    assert noun_for(Global("\x1b[31m", "\u202e")) == "the name \\u001b[31m.\\u202e"


def test_nodes_are_compared_by_identity_and_take_no_further_attributes() -> None:
    for make in (
        lambda: Global("a", "b"),
        lambda: Call(None, (), "reduce"),
        lambda: PersistentId(1),
        lambda: Dict([]),
        lambda: Set([], frozen=False),
        lambda: Blob("int", 0, 1),
    ):
        one, other = make(), make()
        assert one != other
        assert len({one, other}) == 2
        with pytest.raises(AttributeError):
            one.surprise = 1


@table("raw", [b"", b"plain", b"caf\xe9", "\u043a".encode(), bytes(range(256)), b"\xed\xa0\x80"])
def test_a_byte_string_gives_its_bytes_back_whatever_they_are(raw: bytes) -> None:
    found = ByteString.of(raw)
    assert found.raw == raw
    assert found.removeprefix("").raw == raw


def test_a_byte_string_without_its_prefix_is_one_still() -> None:
    left = ByteString.of(b"net.caf\xe9").removeprefix("net.")
    assert type(left) is ByteString
    assert left.raw == b"caf\xe9"


def test_a_room_is_full_when_twice_what_is_made_does_not_fit() -> None:
    room = Room(100)
    room.used = 80
    room.take(10)
    assert (room.made, room.weight) == (10, 20)
    with pytest.raises(PickleError, match="more than 100 values") as caught:
        room.take(1)
    assert caught.value.remedy


def test_arguments_are_objects_of_their_own_and_are_counted() -> None:
    maker, node, sizes = Global("collections", "OrderedDict"), PersistentId(()), (2, 3)
    place, steps = _Numbers(7, sizes, 0, 1, 4), _Numbers(0, sizes, 0, 1, 3)
    room = Room(1000)
    packed = Packed([node], [place], [steps], [(True, maker)], room)
    first, second = (Call.of_run(Global("torch", "x"), packed, 0) for _ in range(2))
    assert first.told == (node, 7, sizes, sizes, True, None)
    assert room.made == 0
    assert isinstance(first.args, tuple)
    assert isinstance(second.args, tuple)
    assert room.made == 2 * (MADE + 2)
    assert first.args[:5] == second.args[:5] == (node, 7, sizes, sizes, True)
    objects = [*first.args[2:4], first.args[5], *second.args[2:4], second.args[5]]
    assert len({id(one) for one in (*objects, sizes)}) == 7
    assert isinstance(first.args[5], Call)
    assert (first.args[5].func, first.args[5].args) == (maker, ())
    assert first.args is first.told
