from __future__ import annotations

import _compat_pickle

import pytest

from inspector.pickles.oddities import Oddity, OddityKind
from inspector.pickles.values import (
    MODULES,
    NAMES,
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
    present_name,
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


@pytest.mark.torch
def test_tables_are_torchs() -> None:
    utils = pytest.importorskip("torch._utils")
    assert MODULES == utils.IMPORT_MAPPING
    assert {".".join(old): ".".join(new) for old, new in utils.NAME_MAPPING.items()} == NAMES


def test_tables_are_part_of_pythons() -> None:
    assert MODULES.items() <= _compat_pickle.IMPORT_MAPPING.items()
    theirs = {".".join(old): ".".join(new) for old, new in _compat_pickle.NAME_MAPPING.items()}
    assert NAMES.items() <= theirs.items()


@table(
    ("old", "new"),
    [
        ("__builtin__.set", "builtins.set"),
        ("__builtin__.xrange", "builtins.range"),
        ("__builtin__.intern", "sys.intern"),
        ("copy_reg._reconstructor", "copyreg._reconstructor"),
        ("UserDict.UserDict", "collections.UserDict"),
        ("UserDict.DictMixin", "collections.DictMixin"),
        ("torch.FloatStorage", "torch.FloatStorage"),
        ("collections.OrderedDict", "collections.OrderedDict"),
        ("__builtin__", "builtins"),
        ("", ""),
    ],
)
def test_present_names(old: str, new: str) -> None:
    assert present_name(old) == new


def test_oddity_reads_as_a_sentence_with_its_place() -> None:
    oddity = Oddity(OddityKind.APPEND_ON_OTHER, 12345, ("a set",))
    assert str(oddity) == "something is appended to a set (byte 12,345)"


def test_every_kind_has_a_sentence() -> None:
    assert all(str(Oddity(kind, 0, ("x", "y"))) for kind in OddityKind)
