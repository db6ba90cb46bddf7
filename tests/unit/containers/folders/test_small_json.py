from __future__ import annotations

import pytest

from inspector.containers.small_json import Members, read_json, value_of
from inspector.containers.source import BytesSource
from inspector.errors import CheckpointError, DamagedError, TooLargeError
from inspector.limits import Limits
from inspector.pickles.values import Dict


def read(data: bytes, **limits: int) -> Members:
    return read_json(BytesSource(data, "x.json"), Limits(**limits))


def test_members_keep_their_order_and_repetitions() -> None:
    found = read(b'{"a": 1, "b": {"c": [1, null]}, "a": 2}')
    assert found == [("a", 1), ("b", [("c", [1, None])]), ("a", 2)]
    assert isinstance(found.first("b"), Members)
    assert (found.first("a"), found.first("z")) == (1, None)


def test_whatever_is_no_object_is_one_sentence() -> None:
    wrong = {
        b"": "no valid JSON",
        b"[1]": "no object",
        b"{": "no valid JSON",
        b'{"a": ' + b"[" * 100_000 + b"}": "no valid JSON",
        b'{"a": ' + b"1" * 5000 + b"}": "no valid JSON",
        b'{"\xff": 1}': "no valid JSON",
        b"\xff\xfe{}": "no valid JSON",
    }
    for data, words in wrong.items():
        with pytest.raises(DamagedError, match=words):
            read(data)


def test_what_it_would_build_is_bounded() -> None:
    with pytest.raises(TooLargeError):
        read(b'{"a": [[],[],[]]}', values=5)
    with pytest.raises(TooLargeError):
        read(b'{"a": 1}', directory_nbytes=4)
    with pytest.raises(CheckpointError):
        read(b'{"a": 1' + b"," * 9, values=8)


def test_values_are_inert_and_nested_no_deeper_than_anybody_writes() -> None:
    found = read(b'{"a": [1, 2.5, true, null, "x", {"b": []}]}')
    value = value_of(found)
    assert isinstance(value, Dict)
    ((key, inner),) = value.pairs
    assert key == "a"
    assert isinstance(inner, list)
    assert inner[:5] == [1, 2.5, True, None, "x"]
    deep = read(
        b'{"a":' + b"[" * 900 + b"]" * 900 + b"}"
    )  # as deep as `json` goes, and deeper than Python does
    with pytest.raises(TooLargeError, match="nested too deeply"):
        value_of(deep)
