from __future__ import annotations

from typing import Any

import pytest

from inspector.diff import tokens as module
from inspector.diff.tokens import Tokens
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
)


def token(value: Value, data: bytes = b"") -> bytes:
    return Tokens(data, lambda: None).of(value)


def call(name: str, *args: Value, state: Value = None) -> Call:
    made = Call(Global(*name.rsplit(".", 1)), args, "reduce")
    made.state = state
    return made


def storage(key: str, numel: int = 2) -> PersistentId:
    return PersistentId(("storage", Global("torch", "FloatStorage"), key, "cpu", numel))


def dtype(code: str) -> Call:
    return call("numpy.dtype", code, False, True, state=(3, "<", None, None, None, -1, -1, 0))


def test_values_that_load_as_equal_ones_have_one_token() -> None:
    blob = Blob("text", 1, 3)
    same: list[tuple[Value, Value]] = [
        ("abc", ByteString.of(b"abc")),
        (b"\xff\x00", call("_codecs.encode", "\xff\x00", "latin1")),
        (b"ab", call("builtins.bytes", call("_codecs.encode", "ab", "latin1"))),
        (ByteArray(b"ab"), call("builtins.bytearray", b"ab")),
        (b"", call("_codecs.encode", "", "latin1")),
        (Dict([("a", 1), ("b", [2])]), Dict([("b", [2]), ("a", 1)])),
        (Set([1, 2], frozen=True), Set([2, 1], frozen=True)),
        (Set([1, 2], frozen=False), call("builtins.set", [2, 1])),
        (Set([1, 2], frozen=True), call("__builtin__.frozenset", [2, 1])),
        (storage("0"), storage("94")),
        (PersistentId(("x", 1)), PersistentId(("x", 1))),
        (float("nan"), float("nan")),
        (Global("__builtin__", "set"), Global("builtins", "set")),
        (
            call(
                "numpy.core.multiarray._reconstruct",
                Global("numpy", "ndarray"),
                (0,),
                b"b",
                state=(1, (2,), dtype("f4"), False, b"12345678"),
            ),
            call("numpy._core.numeric._frombuffer", b"12345678", dtype("f4"), (2,), "C"),
        ),
        (
            call("numpy.core.multiarray.scalar", dtype("f4"), b"1234"),
            call("numpy._core.multiarray.scalar", dtype("f4"), b"1234"),
        ),
    ]
    for one, other in same:
        assert token(one) == token(other), (one, other)
    assert token(blob, b"xabcx") == token("abc")
    assert token(Blob("bytes", 0, 2), b"ab") == token(b"ab")


def test_values_that_differ_have_others() -> None:
    values: list[Value] = [
        None, True, False, 1, 1.0, 0, 0.0, -0.0, float("inf"), 1 << 5000, "", "a", b"a", ByteArray(b"a"), "1",
        [], (), [1], (1,), [1, 2], [[1], 2], [1, [2]], Dict([]), Dict([("a", 1)]), Dict([("a", "1")]),
        [("a", 1)],
        Set([1], frozen=True), Set([1], frozen=False), Global("a", "b"), call("a.b"), call("a.b", 1),
        call("a.c"),
        call("a.b", state=1), storage("0"), storage("0", 3), PersistentId("x"), PersistentId("y"),
        StoredTensor("0", "int8", (2,)),
        StoredTensor("0", "int8", (3,)), Call(call("a.b"), (), "reduce"),
        Call(Global("a", "b"), None, "reduce"),
        call("builtins.bytes", 3),
        call("numpy._core.numeric._frombuffer", b"12345678", dtype("f4"), (2,), "F"),
        call("numpy._core.numeric._frombuffer", b"12345678", dtype("f4"), (2,), "C"),
        call("numpy._core.numeric._frombuffer", b"12345679", dtype("f4"), (2,), "C"),
    ]  # fmt: skip
    found: dict[bytes, Any] = {}
    for value in values:
        other = found.setdefault(token(value), value)
        assert other is value, (other, value)
    assert token(Blob("text", 0, 2), b"ab") != token(Blob("text", 0, 2), b"ac")
    assert token(Blob("digits", 0, 2), b"12") != token(Blob("text", 0, 2), b"12")


def test_values_in_themselves_and_values_that_double_are_looked_at_once() -> None:
    looks: list[int] = []
    many: list[Value] = []
    for _ in range(60):
        many = [many, many]
    Tokens(b"", lambda: looks.append(1)).of(many)
    assert len(looks) <= 120
    loop: list[Value] = [1]
    loop.append(loop)
    other: list[Value] = [2]
    other.append(other)
    assert token(loop) == token(loop) != token(other)


def test_a_token_is_worked_out_once_and_room_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    tokens = Tokens(b"", lambda: looks.append(1))
    value: list[Value] = [1, 2]
    assert tokens.of(value) == tokens.of(value)
    assert len(looks) == 2
    monkeypatch.setattr(module, "_KEPT", 0)
    tokens = Tokens(b"", lambda: looks.append(1))
    assert tokens.of(value) == tokens.of(value)
    assert len(looks) == 6


def test_what_is_nested_deeper_than_python_reads_is_not_entered() -> None:
    values: list[Value] = [1, 2]
    for _ in range(module._MOST_DEEP + 1):
        values = [[value] for value in values]
    tokens = Tokens(b"", lambda: None)
    assert tokens.of(values[0]) == tokens.of(values[1])
    assert tokens.is_cut
    shallow = Tokens(b"", lambda: None)
    shallow.of([[1]])
    assert not shallow.is_cut
