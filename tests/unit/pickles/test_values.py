from __future__ import annotations

import pytest

from inspector.pickles.values import (
    Blob,
    ByteArray,
    ByteString,
    Call,
    Dict,
    Global,
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
