"""Values as text: short, plain, without calling, hashing or recursing into anything."""

from __future__ import annotations

import re

from inspector.model.checkpoint import Key, OddKey
from inspector.model.values.text import (
    class_of,
    cut_name,
    device_label,
    int_text,
    is_same_step,
    path_key,
    step_text,
    text_of,
    twin_of,
    type_of,
)
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
from tests.sweep import table


def call(dotted: str, *args: Value) -> Call:
    module, _, name = dotted.rpartition(".")
    return Call(Global(module, name), args, "reduce")


LATIN = call("_codecs.encode", "abc\0", "latin1")

TEXTS: list[tuple[Value, str, str]] = [
    (None, "NoneType", "None"),
    (True, "bool", "True"),
    (5, "int", "5"),
    (1.5, "float", "1.5"),
    (float("nan"), "float", "nan"),
    ("a\nb", "str", "a\\u000ab"),
    ("\ud800", "str", "\\ud800"),
    (b"\1\2", "bytes", "2 B: 01 02"),
    (b"", "bytes", "0 B"),
    ([1, "x", None], "list", '[1, "x", None]'),
    ((1,), "tuple", "(1)"),
    ([], "list", "[]"),
    ([[1], (), Dict([])], "list", "[[\u2026], (), {}]"),
    (list(range(30)), "list", f"[{', '.join(map(str, range(24)))}, \u2026]"),
    (Dict([(1, 2)]), "dict", "1 item"),
    (Set([1, 2], frozen=False), "set", "{1, 2}"),
    (Set([1], frozen=True), "frozenset", "{1}"),
    ([Set([1], frozen=True)], "list", "[{\u2026}]"),
    (Global("torch", "float32"), "global", "torch.float32"),
    (PersistentId(("x",)), "persistent id", "persistent id"),
    (Blob("text", 0, 5_000_000), "str", "5.0 MB, not shown"),
    (Blob("bytes", 0, 5), "bytes", "5 B, not shown"),
    (Blob("int", 0, 5), "int", "5 B, not shown"),
    (Blob("buffer", 0, 0), "buffer", "0 B, not shown"),
    (LATIN, "bytes", "4 B: 61 62 63 00"),
    ([LATIN], "list", "[4 B: 61 62 63 00]"),
    (call("__builtin__.bytearray", "x", "latin-1"), "bytearray", "1 B: 78"),
    (call("__builtin__.complex", 1.0, -2.0), "complex", "(1-2j)"),
    (call("__builtin__.complex", 1), "complex", "complex(1)"),
    (call("__builtin__.complex", 1, "x"), "complex", 'complex(1, "x")'),
    (call("__builtin__.set", [1, 2]), "set", "{1, 2}"),
    (call("builtins.frozenset", (1,)), "frozenset", "{1}"),
    (call("torch.Size", (2, 3)), "torch.Size", "(2, 3)"),
    (call("torch.device", "cuda", 0), "torch.device", 'torch.device("cuda", 0)'),
    (call("a.B", [1], Dict([(1, 2)]), call("c.D", 1)), "a.B", "a.B([\u2026], 1 item, c.D(\u2026))"),
    (Call(Global("a", "B"), "no tuple", "reduce"), "a.B", "a.B()"),
    (Call(5, (1,), "reduce"), "object", "object(1)"),
    (call("a.b\u202e"), "a.b\\u202e", "a.b\\u202e()"),
]


@table(("value", "kind", "text"), TEXTS)
def test_types_and_texts(value: Value, kind: str, text: str) -> None:
    assert (type_of(value), text_of(value)) == (kind, text)


def test_text_is_cut_at_200_characters() -> None:
    values: list[Value] = [
        "x" * 10_000,
        "\n" * 10_000,
        b"x" * 10_000,
        ["x" * 10_000] * 100,
        Global("m" * 10_000, "n"),
        call("m" * 10_000 + ".n", "x" * 10_000),
        10**150,
        call("_codecs.encode", "x" * 10_000, "latin1"),
        Dict([(1, 2)] * 10_000),
    ]
    for value in values:
        assert len(text_of(value)) <= 200
        assert len(type_of(value)) <= 200
        assert text_of(value).isprintable()


def test_enormous_integers_are_told_by_their_size() -> None:
    assert int_text(2**512 - 1) == str(2**512 - 1)
    assert int_text(2**512) == "513-bit integer 0x80000000000000000000000000000000\u2026"
    assert int_text(-(10**100_000)).startswith("332,193-bit integer -0x")


def test_nesting_in_texts_ends_after_two_levels() -> None:
    value: Value = 1
    for _ in range(100_000):
        value = [value]
    assert text_of([value]) == "[[\u2026]]"
    assert text_of(call("a.B", value)) == "a.B([\u2026])"


def test_classes_of_calls() -> None:
    module = PersistentId(("module", Global("net", "Net"), "net.py", "source"))
    assert class_of(Call(module, (), "newobj")) == "net.Net"
    assert class_of(Call(PersistentId("x"), (), "newobj")) is None
    assert class_of(Call(PersistentId(("module", 1)), (), "newobj")) is None
    assert (
        class_of(call("copyreg._reconstructor", Global("a", "B"), Global("builtins", "object"), None))
        == "a.B"
    )
    assert class_of(call("copy_reg._reconstructor")) == "copy_reg._reconstructor"
    assert class_of(call("numpy.core.multiarray._reconstruct", Global("numpy", "ndarray"))) == "numpy.ndarray"
    assert class_of(call("numpy._core.numeric._frombuffer", b"")) == "numpy.ndarray"
    assert class_of(Call(Global("copyreg", "_reconstructor"), None, "reduce")) == "copyreg._reconstructor"
    assert class_of(call("_codecs.encode", "x", "latin1")) == "bytes"


@table(
    ("value", "key"),
    [
        ("a/b", "a/b"),
        (5, 5),
        (-5, -5),
        (2**60 - 1, 2**60 - 1),
        (2**61 - 1, str(2**61 - 1)),
        (True, "True"),
        (None, "None"),
        (1.5, "1.5"),
        ((1, "x"), '(1, "x")'),
        (b"k", "1 B: 6b"),
        ([1], "[1]"),
    ],
)
def test_keys(value: Value, key: str | int) -> None:
    assert path_key(value) == key
    is_plain = type(value) is type(key)
    assert type(path_key(value)) is (type(key) if is_plain else OddKey)


def test_key_nested_without_end_is_abbreviated() -> None:
    value: Value = ()
    for _ in range(60):
        value = (value, value)
    assert path_key(value) == "((\u2026), (\u2026))"


@table(
    ("key", "step"),
    [
        ("layer1.0.weight", "layer1.0.weight"),
        ("a/b~c", "a~1b~0c"),
        (7, "7"),
        (-7, "-7"),
        ("", ""),
        ("\u202e\ud800\n", "\\u202e\\ud800\\u000a"),
        ("\u540d\u524d", "\u540d\u524d"),
        ("\\u202e", "\\u005cu202e"),
        ("\\\u202e\\", "\\\\u202e\\"),
        ("C:\\users\\U0001f600", "C:\\users\\u005cU0001f600"),
        (OddKey("(1, 2)"), "(1, 2)"),
    ],
)
def test_steps(key: str | int, step: str) -> None:
    assert step_text(key) == step
    assert type(step_text(key)) is str


def test_the_middle_of_a_huge_key_is_left_out_with_a_digest_of_all_of_it() -> None:
    steps = [step_text(f"{'x' * 600}{middle}{'y' * 600}") for middle in ("1", "2", "1", "~", "\ud800")]
    assert len(set(steps)) == 4
    assert steps[0] == steps[2]
    head, mark, tail = steps[0][:238], steps[0][238:-238], steps[0][-238:]
    assert (head, tail) == ("x" * 238, "y" * 238)
    assert re.fullmatch("\u2026~#[0-9a-f]{32}\u2026", mark)
    assert step_text("x" * 512) == "x" * 512
    assert step_text(steps[0]) != steps[0]
    assert step_text("/" * 600)[:476] == "~1" * 238


@table(
    ("one", "other", "is_same"),
    [
        ("a", "a", True),
        ("1", 1, False),
        (OddKey("a"), "a", False),
        (twin_of("a", 1), twin_of("a", 1), True),
        (twin_of("a", 1), twin_of("a", 2), False),
        (twin_of(7, 1), 7, False),
    ],
)
def test_steps_are_the_same_by_type_and_turn(one: Key, other: Key, is_same: bool) -> None:
    assert is_same_step(one, other) is is_same


def test_labels_and_names_are_fit_to_be_shown() -> None:
    assert device_label("cuda:0") == "cuda:0"
    assert device_label("a\x1b[31m") == "a\\u001b[31m"
    assert len(device_label("x" * 10_000)) == 100
    assert cut_name("a.b\u202e") == "a.b\\u202e"
    assert len(cut_name("x" * 10_000)) == 512
    assert cut_name("x" * 10_000) != cut_name("x" * 10_001)


def test_texts_and_byte_arrays_are_called_as_python_calls_them() -> None:
    assert (type_of(ByteString("a")), type_of(ByteArray(b"a"))) == ("str", "bytearray")
    assert type(text_of(ByteString("a"))) is type(path_key(ByteString("a"))) is str
    assert type_of(Blob("bytearray", 0, 1)) == "bytearray"


def test_tensor_without_a_storage_is_called_one() -> None:
    lost = StoredTensor("0", "float32", (2,))
    assert (type_of(lost), text_of(lost), text_of([lost])) == ("tensor", "tensor", "[tensor]")
