from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest

from inspector.errors import CancelledError
from inspector.model.tensors import dtypes as elements
from inspector.model.tensors.dtypes import Axis, axes_of, copy_strided, is_contiguous
from inspector.progress import Progress
from tests.sweep import table

Numbers = tuple[int, ...]


def straightened(data: bytes, shape: Numbers, stride: Numbers, first: int, itemsize: int) -> bytes:
    """The elements in the order of rows, one by one."""
    places = (
        first + sum(index * step for index, step in zip(place, stride, strict=True))
        for place in product(*map(range, shape))
    )
    return b"".join(data[place * itemsize : (place + 1) * itemsize] for place in places)


class Files:
    """A storage to read and a tensor to write, both in memory, that notice who leaves their bounds."""

    def __init__(self, nbytes: int, wanted: int) -> None:
        self.data = random.Random(7).randbytes(nbytes)
        self.made = bytearray(wanted)
        self.largest = 0

    def read(self, offset: int, nbytes: int) -> bytes:
        assert 0 <= offset <= offset + nbytes <= len(self.data)
        self.largest = max(self.largest, nbytes)
        return self.data[offset : offset + nbytes]

    def write(self, offset: int, data: bytes | memoryview) -> None:
        assert 0 <= offset <= offset + len(data) <= len(self.made)
        self.made[offset : offset + len(data)] = data


def check(shape: Numbers, stride: Numbers, first: int, itemsize: int) -> Files:
    last = first + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    files = Files((last + 1) * itemsize if prod(shape) else itemsize, prod(shape) * itemsize)
    progress = Progress()
    copy_strided((shape, stride, first), itemsize, files.read, files.write, progress)
    assert files.made == straightened(files.data, shape, stride, first, itemsize)
    assert progress.done == len(files.made)
    return files


@pytest.mark.wide
@table("itemsize", [1, 2, 4, 8, 16])
@table(
    ("shape", "stride", "first"),
    [
        ((), (), 3),
        ((0, 3), (3, 1), 0),
        ((1, 1), (7, 5), 2),
        ((3, 4), (4, 1), 0),
        ((4, 3), (1, 4), 0),
        ((3, 2), (4, 2), 1),
        ((5,), (0,), 2),
        ((3, 4), (0, 1), 0),
        ((3, 4), (1, 0), 0),
        ((7, 3), (1, 1), 0),
        ((2, 3, 4, 5), (60, 1, 15, 3), 0),
        ((5, 4, 3, 2), (1, 5, 20, 60), 4),
        ((3, 1500), (1, 5000), 0),
    ],
)
def test_elements_come_in_the_order_of_rows(shape, stride, first, itemsize) -> None:
    check(shape, stride, first, itemsize)


def test_any_view_in_blocks_of_any_size(monkeypatch) -> None:
    chance = random.Random(1)
    for _ in range(600):
        monkeypatch.setattr(elements, "BLOCK_NBYTES", chance.choice([8, 16, 64, 100, 1000]))
        dimensions = chance.randint(0, 4)
        shape = tuple(chance.choice([0, 1, 1, 2, 3, 5]) for _ in range(dimensions))
        stride = tuple(chance.choice([0, 1, 2, 3, 5, 15, 300]) for _ in range(dimensions))
        check(shape, stride, chance.randint(0, 4), chance.choice([1, 2, 4, 8, 16]))


def test_blocks_stay_small_where_most_of_what_is_read_is_gaps() -> None:
    assert check((20_000,), (500,), 0, 4).largest <= elements.BLOCK_NBYTES
    assert check((3, 2000), (1, 2000), 0, 4).largest <= elements.BLOCK_NBYTES


def test_transposing_reads_and_writes_runs_not_elements(monkeypatch) -> None:
    monkeypatch.setattr(elements, "BLOCK_NBYTES", 1 << 12)  # 32 rows and columns of 4 bytes
    counted = Progress()
    files = Files(4 * 256 * 256, 4 * 256 * 256)
    reads: list[int] = []

    def read(offset: int, nbytes: int) -> bytes:
        reads.append(nbytes)
        return files.read(offset, nbytes)

    copy_strided(((256, 256), (1, 256), 0), 4, read, files.write, counted)
    assert files.made == straightened(files.data, (256, 256), (1, 256), 0, 4)
    assert set(reads) == {4 * 32}


def test_it_can_be_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        copy_strided(((2, 2), (1, 2), 0), 1, lambda _, nbytes: bytes(nbytes), lambda *_: None, progress)


def test_axes_that_go_on_evenly_are_one() -> None:
    assert axes_of((2, 3, 4), (12, 4, 1)) == [Axis(24, 1, 1)]
    assert axes_of((2, 1, 4), (4, 99, 1)) == [Axis(8, 1, 1)]
    assert axes_of((3, 2), (1, 3)) == [Axis(3, 1, 2), Axis(2, 3, 1)]
    assert axes_of((), ()) == []


@table(
    ("shape", "stride", "expected"),
    [
        ((), (), True),
        ((2, 3), (3, 1), True),
        ((1, 3), (99, 1), True),
        ((3, 1), (1, 99), True),
        ((3, 2), (1, 3), False),
        ((3,), (2,), False),
        ((3,), (0,), False),
    ],
)
def test_contiguous_is_what_torch_calls_so(shape, stride, expected) -> None:
    assert is_contiguous(shape, stride) is expected
