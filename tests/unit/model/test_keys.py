from __future__ import annotations

import pytest

from inspector.model.checkpoint import KeyFault
from inspector.model.walk import KeyFaults
from inspector.pickles.values import Blob, ByteArray, ByteString, Call, Dict, Global, Set, Value
from tests.sweep import table
from tests.work import count_steps


def find(*keys: Value) -> str | None:
    return KeyFaults().find([(key, None) for key in keys])


def nested(depth: int, width: int = 1) -> tuple[Value, ...]:
    key: tuple[Value, ...] = ()
    for _ in range(depth):
        key = (key,) * width
    return key


@table(
    "key",
    [
        *("a", 1, 1.5, None, True, b"x"),
        (),
        (1, "a", Blob("text", 0, 9)),
        ((1, 2), (3, (4,))),
        Set([1], frozen=True),
        (Set([1], frozen=True),),
        nested(900),
        nested(20, 2),
        tuple(range(100)),
    ],
)
def test_good_keys(key: Value) -> None:
    assert find("a", key, key) is None


@table("key", [[], Dict([]), Set([], frozen=False), ([],), ((1, (2, Dict([]))),), (1, Set([], frozen=False))])
def test_keys_without_a_hash(key: Value) -> None:
    assert find("a", key) == KeyFault.UNHASHABLE


@table(
    ("name", "is_key"),
    [("collections.OrderedDict", False), ("builtins.bytearray", False), ("torch.Size", True), ("a.B", True)],
)
def test_what_calls_make_has_a_hash_or_not(name: str, is_key: bool) -> None:
    made = Call(Global(*name.rsplit(".", 1)), (), "reduce")
    assert find(made) == find((made,)) == (None if is_key else KeyFault.UNHASHABLE)


@pytest.mark.wide
def test_deep_key_crashes_torch() -> None:
    assert find(nested(1002)) == KeyFault.DEEP
    assert find(nested(1_000_000)) == KeyFault.DEEP


def test_keys_that_are_wrapped_again_and_again() -> None:
    keys = [nested(900)]
    for _ in range(3):
        inner: tuple[Value, ...] = keys[-1]
        for _ in range(900):
            inner = (inner,)
        keys.append(inner)
    assert find(keys[0]) is None
    assert find(*keys) == KeyFault.DEEP


def test_key_that_doubles_hangs_torch() -> None:
    assert find(nested(60, 2)) == KeyFault.ENDLESS
    assert find(nested(999, 9)) == KeyFault.ENDLESS


@pytest.mark.wide
def test_large_keys_are_looked_through_once() -> None:
    wide = tuple((number,) for number in range(20_000))
    key = (wide,) * 20_000
    assert KeyFaults().find([(key, None), (wide, None)] * 9) == KeyFault.ENDLESS
    pairs = [(wide, None), (tuple(range(9)), None)]
    assert KeyFaults().find(pairs * 9) is None
    once, often = (count_steps(lambda times=times: KeyFaults().find(pairs * times)) for times in (1, 2_000))
    assert often < once + 2_000 * 60


def test_thousands_of_integers_with_the_same_hash() -> None:
    assert find(*(number * (2**61 - 1) for number in range(1, 6000))) == KeyFault.ALIKE
    assert find(*(-number * (2**61 - 1) for number in range(1, 6000))) == KeyFault.ALIKE
    assert find(*(number * (2**61 - 1) for number in range(1, 4000))) is None
    assert find(*(2**61 + number for number in range(6000))) is None
    assert find(*range(6000)) is None


def test_byte_arrays_are_no_keys() -> None:
    assert find(ByteArray(b"a")) == find((ByteArray(b"a"),)) == KeyFault.UNHASHABLE
    assert find(ByteString("a")) is None
