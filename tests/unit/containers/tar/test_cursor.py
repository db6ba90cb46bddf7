from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterator

import pytest

from inspector.containers.source import FileSource
from inspector.containers.tar_archive import Cursor
from inspector.containers.tar_members import Member
from inspector.errors import ContainerError, DamagedError, PickleError
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders.pickles import list_, proto, stream, text

Begin = Callable[..., Cursor]


@pytest.fixture
def begin(write: Callable[..., str]) -> Iterator[Begin]:
    """Stand at the beginning of a member with these bytes, behind others and in front of more."""
    sources = []

    def begin(data: bytes, more: bytes = b"behind", **limits: float) -> Cursor:
        source = FileSource(write(b"before" + data + more))
        sources.append(source)
        member = Member("storages", 0, 0, 6, len(data))
        return Cursor(source, member, Limits(**limits), Progress())

    yield begin
    for source in sources:
        source.close()


def test_things_stand_one_behind_the_other(begin: Begin) -> None:
    cursor = begin(pickle.dumps(3, 2) + b"1234" + pickle.dumps("x", 2))
    assert cursor.count() == 3
    assert cursor.take(4) == b"1234"
    assert cursor.pickle().root == "x"
    assert [one.root for one in cursor.streams] == [3, "x"]
    assert cursor.pos == 6 + cursor._member.nbytes


def test_long_pickles_are_fetched_in_pieces(begin: Begin) -> None:
    long = stream(proto(), list_(*[text("x" * 100)] * 50))
    assert len(begin(long).pickle().root) == 50
    with pytest.raises(PickleError, match="longer than 1,000 bytes: storages at byte 6"):
        begin(long, pickle_nbytes=1000).pickle()


def test_nothing_is_read_behind_the_member(begin: Begin) -> None:
    data = pickle.dumps("text", 2)
    with pytest.raises(PickleError, match="breaks off"):
        begin(data[:-1], data[-1:]).pickle()
    cursor = begin(data, b"")
    cursor._member = cursor._member._replace(nbytes=len(data) + 1)
    assert cursor.pickle().root == "text"
    with pytest.raises(DamagedError, match="cut off within its storages"):
        cursor.take(1)
    with pytest.raises(ContainerError, match="the length of storages"):
        begin(b"1234").take(5)
    with pytest.raises(PickleError, match="takes what is not on its stack"):
        begin(b"R.").pickle()


@pytest.mark.parametrize("count", [-1, 10**6, True, "3", None])
def test_counts_that_cannot_be(begin: Begin, count: object) -> None:
    with pytest.raises(ContainerError, match="the number of storages in the tar file is malformed: byte 6"):
        begin(pickle.dumps(count, 2)).count()


def test_work_is_bounded(begin: Begin) -> None:
    cursor = begin(pickle.dumps(1, 2) * 3, storages=1)
    cursor.breathe()
    cursor.pickle()
    cursor.breathe()
    cursor.pickle()
    with pytest.raises(ContainerError, match="holds too much to read"):
        cursor.breathe()
    with pytest.raises(ContainerError, match="holds too much to read"):
        begin(b"", ends_s=0).breathe()


def test_geometry(begin: Begin) -> None:
    assert begin(struct.pack("<i4x5q", 2, 3, 4, 5, 6, 7)).geometry() == (7, (3, 4), (5, 6))
    assert begin(struct.pack("<i4xq", 0, 7)).geometry() == (7, (), ())
    for ndim in (-1, 65):
        with pytest.raises(ContainerError, match="the shape of a tensor"):
            begin(struct.pack("<i4x5q", ndim, 3, 4, 5, 6, 7)).geometry()
