from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from inspector.containers import source as module
from inspector.containers.source import FileSource, NearReader

Write = Callable[..., str]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The (offset, bytes) of every read of a file."""
    seen: list[tuple[int, int]] = []

    def pread(fd: int, nbytes: int, offset: int) -> bytes:
        seen.append((offset, nbytes))
        return os.pread(fd, nbytes, offset)

    monkeypatch.setattr(module, "_pread", pread)
    return seen


def piece(near: NearReader, offset: int, nbytes: int) -> bytes:
    at = near.seek(offset, nbytes)
    return near.window[at : at + nbytes]


def test_pieces_that_stand_close_share_a_read(write: Write, reads: list[tuple[int, int]]) -> None:
    data = os.urandom(100_000)
    with FileSource(write(data)) as source:
        near = NearReader(source)
        for offset in range(0, 16_000, 100):
            assert piece(near, offset, 30) == data[offset : offset + 30]
        assert len(reads) <= 2


def test_far_pieces_are_read_alone(write: Write, reads: list[tuple[int, int]]) -> None:
    data = os.urandom(100_000)
    with FileSource(write(data)) as source:
        near = NearReader(source)
        for offset in (50_000, 90_000, 70_000, 10_000):
            assert piece(near, offset, 30) == data[offset : offset + 30]
    assert reads == [(50_000, 30), (90_000, 30), (70_000, 30), (10_000, 30)]


def test_pieces_at_the_end_are_short(write: Write) -> None:
    with FileSource(write(b"0123456789")) as source:
        near = NearReader(source)
        assert piece(near, 4, 4) == b"4567"
        assert piece(near, 8, 4) == b"89"
        assert piece(near, 20, 4) == b""
        assert piece(near, 0, 4) == b"0123"


def test_pieces_of_any_size_and_order(write: Write) -> None:
    data = os.urandom(50_000)
    with FileSource(write(data)) as source:
        near = NearReader(source)
        for step in range(2000):
            offset, nbytes = step * 7919 % 51_000, step * 31 % 300
            assert piece(near, offset, nbytes) == data[offset : offset + nbytes]
