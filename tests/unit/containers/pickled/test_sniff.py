"""Pickles that declare no protocol are told from texts."""

from __future__ import annotations

import pickle

import pytest

from inspector.containers.pickled import begins_undeclared
from inspector.containers.source import BytesSource
from tests.sweep import table


@pytest.mark.parametrize("protocol", [0, 1])
def test_pickles_of_containers_are_told(protocol: int) -> None:
    for value in ({}, [1], {"a": {1, 2}}, object(), {"a": list(range(20_000))}):
        assert begins_undeclared(BytesSource(pickle.dumps(value, protocol), "a")), value


@table(
    "data",
    [
        b"",
        b"(see below).",
        b"}.",
        b"]\n",
        b"(lp0\nbroken",
        b"c is a letter\nand this a line\n.",
        b"(p0\n1.",
        pickle.dumps("text", 0),
        pickle.dumps({}, 2),
        b"(" * 20_000,
    ],
)
def test_texts_are_none(data: bytes) -> None:
    assert not begins_undeclared(BytesSource(data, "a"))
