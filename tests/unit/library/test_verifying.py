from __future__ import annotations

import pytest

import inspector
from inspector.resources import demo_path
from tests.schemas import complaint


@pytest.fixture
def out(tmp_path):
    path = tmp_path / "out.pth"
    inspector.remap(demo_path(), path, map="cuda:*=cpu", verify="none")
    return path


def test_a_copy_is_what_it_was_to_become(out, demo: inspector.Checkpoint) -> None:
    for arguments in ({}, {"map": "cuda:*=cpu"}, {"target": "cpu"}):
        found = inspector.verify(out, demo, **arguments)
        assert found, arguments
        assert (found.same, found.differences, found.tensors) == (True, (), 283)
        assert found.compared_nbytes > 0
        assert complaint("verify", found.to_dict()) == ""
    assert str(inspector.verify(out, demo, map="cuda:*=cpu")).startswith("Devices as planned.")


def test_a_copy_that_is_not(out, demo: inspector.Checkpoint) -> None:
    planned = inspector.verify(out, demo, map="cuda:1=cuda:0")
    assert not planned
    assert planned.differences
    data = bytearray(out.read_bytes())
    start = inspector.open(out).storages[0].file_offset
    assert start is not None
    data[start] ^= 1
    out.write_bytes(data)
    damaged = inspector.verify(out, demo)
    assert not damaged
    assert damaged.differences
    assert str(damaged)
