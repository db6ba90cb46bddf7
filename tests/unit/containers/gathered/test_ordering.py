from __future__ import annotations

import random
from math import prod

import pytest

from inspector.containers.gathered import in_rows
from inspector.errors import DamagedError
from tests.sweep import table


def LOOK(_steps: int) -> None:  # noqa: N802 - stands for the count of a file
    """Count nothing."""


@table("itemsize", [1, 2, 4, 8, 16])
def test_columns_become_rows(itemsize: int) -> None:
    def element(number: int) -> bytes:
        return number.to_bytes(itemsize, "little")

    columns = b"".join(element(10 * row + column) for column in range(3) for row in range(4))
    rows = b"".join(element(10 * row + column) for row in range(4) for column in range(3))
    assert in_rows(columns, (4, 3), (1, 4), itemsize, LOOK) == rows
    assert in_rows(rows, (4, 3), (3, 1), itemsize, LOOK) == rows


def test_channels_last() -> None:
    stored = bytes(range(24))
    found = in_rows(stored, (1, 2, 3, 4), (24, 1, 8, 2), 1, LOOK)
    assert list(found[:4]) == [0, 2, 4, 6]
    assert list(found[12:16]) == [1, 3, 5, 7]


def test_one_element() -> None:
    assert in_rows(b"ab", (1, 1), (7, 9), 2, LOOK) == b"ab"


def test_any_order_of_any_sizes() -> None:
    draw = random.Random(7)
    for _ in range(300):
        sizes = [draw.randint(1, 4) for _ in range(draw.randint(1, 6))]
        order = draw.sample(range(len(sizes)), len(sizes))
        strides = [
            prod(sizes[one] for one in order[order.index(number) + 1 :]) for number in range(len(sizes))
        ]
        itemsize = draw.choice((1, 2, 4, 8, 16))
        stored = draw.randbytes(prod(sizes) * itemsize)
        places = [0]
        for size, stride in zip(sizes, strides, strict=True):
            places = [at + index * stride for at in places for index in range(size)]
        expected = b"".join(stored[at * itemsize : (at + 1) * itemsize] for at in places)
        assert in_rows(stored, sizes, strides, itemsize, LOOK) == expected, (sizes, strides, itemsize)


def test_many_dimensions_take_steps_for_each_of_them_and_not_for_each_element() -> None:
    counted = []
    sizes = [2] * 20
    strides = [1 << number for number in range(20)]
    in_rows(bytes(1 << 20), sizes, strides, 1, counted.append)
    assert sum(counted) < 20 * (1 << 14)


def test_elements_that_overlap_are_refused() -> None:
    with pytest.raises(DamagedError, match="overlap or lie apart"):
        in_rows(bytes(4), (2, 2), (1, 1), 1, LOOK)
