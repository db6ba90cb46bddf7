from __future__ import annotations

import random
from itertools import pairwise, product
from math import prod

import pytest

from inspector.containers.container import Chunk, Gathered
from inspector.containers.gathered import tile
from inspector.errors import DamagedError, ModelError
from inspector.limits import Limits
from tests.sweep import table


def count_nothing(_parts: int) -> None:
    """Count nothing."""


def gathered(
    shape: tuple[int, ...], *boxes: tuple[tuple[int, ...], tuple[int, ...]], itemsize: int = 2
) -> Gathered:
    chunks = tuple(Chunk(start, sizes, 0, number, 0) for number, (start, sizes) in enumerate(boxes))
    return Gathered("t", "int16", itemsize, shape, chunks)


def pasted(one: Gathered, start: int, end: int) -> list[int]:
    """The bytes of the whole, by number, as the runs name them."""
    found = []
    for chunk, at, nbytes in tile(one, count_nothing).runs(start, end):
        assert nbytes > 0
        for byte in range(at, at + nbytes):
            number, rest = divmod(byte, one.itemsize)
            place = []
            for size in reversed(chunk.sizes):
                number, step = divmod(number, size)
                place.append(step)
            whole = 0
            for size, step, first in zip(one.shape, reversed(place), chunk.starts, strict=True):
                whole = whole * size + first + step
            found.append(whole * one.itemsize + rest)
    return found


def cut(shape: tuple[int, ...], rng: random.Random) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Cut a box at random into boxes."""
    boxes = [((0,) * len(shape), shape)]
    for _ in range(rng.randrange(6)):
        start, sizes = boxes.pop(rng.randrange(len(boxes)))
        axis = rng.randrange(len(shape))
        at = rng.randrange(sizes[axis] + 1)
        for first, size in ((0, at), (at, sizes[axis] - at)):
            moved = tuple(one + first * (number == axis) for number, one in enumerate(start))
            boxes.append((moved, tuple(size if number == axis else one for number, one in enumerate(sizes))))
    rng.shuffle(boxes)
    return boxes


def test_chunks_of_any_cut_are_the_whole() -> None:
    rng = random.Random(4)
    for _ in range(150):
        shape = tuple(rng.randrange(1, 6) for _ in range(rng.randrange(1, 5)))
        one = gathered(shape, *cut(shape, rng))
        nbytes = prod(shape) * 2
        assert tile(one, count_nothing).fault == "", one
        assert pasted(one, 0, nbytes) == list(range(nbytes)), one
        start, end = sorted(rng.sample(range(nbytes + 1), 2))
        assert pasted(one, start, end) == list(range(start, end)), (one, start, end)


def test_what_is_one_run_is_told_as_one() -> None:
    rows = gathered((6, 4), ((0, 0), (2, 4)), ((2, 0), (4, 4)))
    assert [run[1:] for run in tile(rows, count_nothing).runs(0, 48)] == [(0, 16), (0, 32)]
    whole = gathered((6, 4), ((0, 0), (6, 4)))
    assert [run[1:] for run in tile(whole, count_nothing).runs(4, 48)] == [(4, 44)]
    assert list(tile(whole, count_nothing).runs(4, 4)) == []
    assert [run[1:] for run in tile(gathered((), ((), ())), count_nothing).runs(0, 2)] == [(0, 2)]


def test_nothing_is_asked_of_what_has_no_elements() -> None:
    for one in (gathered((0, 3)), gathered((0, 3), ((5, 9), (0, 1)))):
        assert tile(one, count_nothing).fault == ""
    assert tile(gathered((2,), ((0,), (2,)), ((2,), (0,))), count_nothing).fault == ""


def test_a_chunk_that_is_listed_twice_is_one() -> None:
    both = gathered((2,), ((0,), (2,)))
    again = both._replace(chunks=both.chunks * 3)
    assert tile(again, count_nothing).fault == ""
    halves = gathered((2,), ((0,), (1,)), ((1,), (1,)))
    assert tile(halves._replace(chunks=halves.chunks * 2), count_nothing).fault == ""


@table(
    ("shape", "boxes", "why"),
    [
        ((4,), [], "none of its chunks"),
        ((4,), [((0,), (5,))], "outside"),
        ((4,), [((3,), (2,))], "outside"),
        ((4,), [((-1,), (4,))], "outside"),
        ((4,), [((0, 0), (4, 1))], "other dimensions"),
        ((4,), [((0,), (4, 1))], "other dimensions"),
        ((4,), [((0,), (4,)), ((0,), (4,))], "several times"),
        ((4,), [((0,), (2,))], "in no chunk"),
        ((4,), [((2,), (2,))], "in no chunk"),
        ((4,), [((0,), (1,)), ((2,), (2,))], "in no chunk"),
        ((4,), [((0,), (3,)), ((2,), (2,))], "overlap"),
        ((4,), [((0,), (4,)), ((1,), (1,))], "overlap"),
        ((4, 4), [((0, 0), (2, 2)), ((0, 2), (2, 2)), ((2, 0), (2, 4))], ""),
        ((4, 4), [((0, 0), (2, 2)), ((2, 0), (2, 4))], "in no chunk"),
        ((4, 4), [((0, 0), (4, 2)), ((1, 2), (3, 2))], "in no chunk"),
        ((4, 4), [((0, 0), (3, 2)), ((0, 2), (3, 2))], "in no chunk"),
        ((4, 4), [((1, 0), (3, 2)), ((1, 2), (3, 2))], "in no chunk"),
        ((3, 4), [((0, 0), (1, 2)), ((0, 2), (1, 2)), ((2, 0), (1, 4))], "in no chunk"),
        ((1,) * 65, [((0,) * 65, (1,) * 65)], "65 dimensions"),
    ],
)
def test_what_is_no_whole_is_said(
    shape: tuple[int, ...], boxes: list[tuple[tuple[int, ...], tuple[int, ...]]], why: str
) -> None:
    tiling = tile(gathered(shape, *boxes), count_nothing)
    assert why in tiling.fault
    assert bool(tiling.fault) == bool(why)
    if why:
        with pytest.raises(DamagedError, match="a tensor is not whole"):
            list(tiling.runs(0, 2))


def test_a_grid_costs_what_its_chunks_do() -> None:
    edges = list(pairwise(range(0, 101, 2)))
    boxes = [((a, b), (2, 2)) for (a, _), (b, _) in product(edges, edges)]
    counted = []
    assert tile(gathered((100, 100), *boxes), counted.append).fault == ""
    assert sum(counted) < 5 * len(boxes)


def test_chunks_that_cross_each_other_too_often_are_refused() -> None:
    many = 700
    rows = [((number, 0), (1, 1)) for number in range(many)]
    columns = [((0, 1 + number), (many, 1)) for number in range(many)]
    assert "too irregular" in tile(gathered((many, many + 1), *rows, *columns), count_nothing).fault


def test_the_work_is_counted() -> None:
    work = Limits(parts=10).started().counted()
    with pytest.raises(ModelError):
        tile(gathered((9,), *(((number,), (1,)) for number in range(9))), work.look)
