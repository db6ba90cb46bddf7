from __future__ import annotations

import pytest

from inspector.containers.folders.small_json import Members, read_json
from inspector.containers.source import BytesSource
from inspector.errors import CheckpointError, DamagedError, TooLargeError
from inspector.limits import Limits


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
