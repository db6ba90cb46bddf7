from __future__ import annotations

from inspector.containers.deepspeed_joining import join_parameters


def test_nothing_is_joined_of_nothing() -> None:
    found = join_parameters(None, [], lambda _parts: None)
    assert (found.weights, found.fault) == ({}, "")
