"""Values as short plain text, bounded whatever they are."""

from __future__ import annotations

import collections
import pickle

import numpy as np
import pytest

from inspector.model.texts import (
    MOST_CHARS,
    MOST_STEP_CHARS,
    class_of,
    cut_name,
    device_label,
    int_text,
    key_of,
    step_text,
    text_of,
    type_of,
)
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Blob, Call, Global, PersistentId, Set, Value

ODD = Call(None, (), "reduce")


def read(value: object, protocol: int = 2) -> Value:
    return read_pickle(pickle.dumps(value, protocol)).root


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "NoneType", "None"),
        (True, "bool", "True"),
        (1.5, "float", "1.5"),
        ("a\nb", "str", "a\\u000ab"),
        (b"", "bytes", "0 B"),
        (b"\1\2", "bytes", "2 B: 01 02"),
        ([1, "a", [2], []], "list", '[1, "a", […], []]'),
        ((1, (2,), ()), "tuple", "(1, (…), ())"),
        (list(range(30)), "list", f"[{', '.join(map(str, range(24)))}, …]"),
        ({1, 2}, "set", "{1, 2}"),
        (frozenset({1}), "frozenset", "{1}"),
        ({"a": 1}, "dict", "1 item"),
        ({}, "dict", "{}"),
        (collections.OrderedDict, "global", "collections.OrderedDict"),
        (1 + 2j, "complex", "(1+2j)"),
        (np.float32(0.5), "numpy.float32", "0.5"),
        (np.zeros((2, 3)), "numpy.ndarray", "float64 2 × 3"),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_plain_python(value: object, kind: str, text: str, protocol: int) -> None:
    root = read(value, protocol)
    assert type_of(root) == kind
    assert text_of(root) == text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (Blob("text", 0, 2_000_000), "str", "2.0 MB, not shown"),
        (Blob("int", 0, 70_000), "int", "70.0 KB, not shown"),
        (PersistentId("x"), "persistent id", "persistent id"),
        (ODD, "object", "object()"),
        ([ODD], "list", "[object(…)]"),
        ([Set([1], frozen=False)], "list", "[{…}]"),
        (Call(Global("numpy.core.multiarray", "scalar"), (None, b""), "reduce"), "numpy.?", "?"),
        (Call(Global("builtins", "complex"), (1, 2), "reduce"), "complex", "complex(1, 2)"),
        (Call(Global("builtins", "complex"), None, "reduce"), "complex", "complex()"),
        (Call(Global("torch", "Size"), ([1, 2],), "reduce"), "torch.Size", "(1, 2)"),
        (Call(Global("m", "f"), (1, "x"), "reduce"), "m.f", 'm.f(1, "x")'),
        (Set([1], frozen=True), "frozenset", "{1}"),
    ],
)
def test_nodes(value: Value, kind: str, text: str) -> None:
    assert type_of(value) == kind
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (ODD, None),
        (Call(PersistentId(("module", Global("m", "Net"), "file", "source")), (), "newobj"), "m.Net"),
        (Call(PersistentId("text"), (), "newobj"), None),
        (Call(Global("copyreg", "_reconstructor"), (Global("m", "A"), None, None), "reduce"), "m.A"),
        (Call(Global("copy_reg", "_reconstructor"), (), "reduce"), "copy_reg._reconstructor"),
        (Call(Global("numpy._core.numeric", "_frombuffer"), (), "reduce"), "numpy.ndarray"),
        (Call(Global("_codecs", "encode"), (), "reduce"), "bytes"),
    ],
)
def test_class(value: Call, name: str | None) -> None:
    assert class_of(value) == name


def test_enormous_integers_are_never_written_out() -> None:
    assert int_text(2**512 - 1) == str(2**512 - 1)
    assert int_text(-(10**5000)).startswith("16,610-bit integer -0x")
    assert len(int_text(10**100_000)) < 60


def test_text_is_cut() -> None:
    assert len(text_of("x" * 10_000)) == MOST_CHARS
    assert len(text_of(["x" * 10_000] * 10_000)) <= MOST_CHARS


def test_deep_and_wide_values_take_no_time() -> None:
    laughs: list[Value] = ["ha"]
    for _ in range(100):
        laughs = [laughs] * 10
    deep: Value = ()
    for _ in range(100_000):
        deep = (deep,)
    calls: Value = ()
    for _ in range(1000):
        calls = Call(Global("m", "f"), (calls,) * 24, "reduce")
    assert text_of(laughs) == f"[{', '.join(['[…]'] * 10)}]"
    assert text_of(deep) == "((…))"
    assert len(text_of(calls)) <= MOST_CHARS


@pytest.mark.parametrize(
    ("value", "key"),
    [("a", "a"), (5, 5), (-(2**59), -(2**59)), (2**61, str(2**61)), (1.5, "1.5"), ((1, 2), "(1, 2)")],
)
def test_key(value: Value, key: object) -> None:
    assert key_of(value) == key


@pytest.mark.parametrize(
    ("key", "step"),
    [
        (3, "3"),
        ("a.b", "a.b"),
        ("a/b~c", "a~1b~0c"),
        ("\u202e", "\\u202e"),
        ("名", "名"),
        ("\ud800", "\\ud800"),
    ],
)
def test_step(key: str | int, step: str) -> None:
    assert step_text(key) == step


def test_long_names_are_cut() -> None:
    assert len(step_text("x" * 10_000)) == MOST_STEP_CHARS
    assert len(cut_name("x" * 10_000)) == MOST_STEP_CHARS
    assert device_label("cuda:0") == "cuda:0"
    assert device_label("\x1b[31m") == "\\u001b[31m"
    assert len(device_label("x" * 1000)) == 100
