"""Bins that grow, against counting with the final edges."""

from __future__ import annotations

import math
import random

import numpy as np

from inspector.worker.values.bins import LinearBins, Octaves

MOST = np.finfo(np.float64).max.item()


def counted(values: np.ndarray, edges: list[float]) -> list[int]:
    ordered = np.sort(values)
    places = [int(np.searchsorted(ordered, ordered.dtype.type(edge))) for edge in edges[:-1]]
    return [after - before for before, after in zip(places, [*places[1:], len(ordered)], strict=True)]


def wrong_of(blocks: list[np.ndarray], *, whole: bool) -> str:
    bins = LinearBins(whole=whole)
    for block in blocks:
        bins.add(block, block.min().item(), block.max().item())
    edges, counts = bins.result(1)
    values = np.concatenate(blocks)
    if counts != counted(values, edges) or sum(counts) != len(values):
        return f"{counts} instead of {counted(values, edges)} between {edges[0]} and {edges[-1]}"
    if len(counts) > 128 or not edges[0] <= values.min() <= values.max() <= edges[-1]:
        return f"{len(counts)} bins from {edges[0]} to {edges[-1]} for {values.min()} to {values.max()}"
    return "" if len(counts) > 9 or len(np.unique(values)) < 100 else f"only {len(counts)} bins"


def test_counts_are_those_of_the_final_edges() -> None:
    chance = np.random.default_rng(1)
    normal = chance.normal(size=(6, 500))
    cases = {
        "growing": [normal[number] * 10.0**number for number in range(6)],
        "shrinking": [normal[number] * 10.0**-number for number in range(6)],
        "moving": [normal[number] + 3 * number for number in range(6)],
        "one value first": [np.zeros(9), np.zeros(4), normal[0] * 1e-9, np.full(3, 2e-9)],
        "one value after": [normal[0], np.full(5, 1e6), np.full(5, -1e9)],
        "far from zero": [1e15 + np.arange(200.0), 1e15 + np.arange(400.0)],
        "far, then zero": [1e300 + np.arange(5) * 1e285, np.zeros(3), normal[1]],
        "ends": [np.array([MOST, -MOST, 0.0]), np.array([1.0, -1.0])],
        "denormal": [np.arange(-200, 300) * 5e-324, np.arange(900) * 5e-324],
        "denormal, then large": [np.arange(5) * 5e-324, np.array([MOST])],
        "on edges": [np.arange(-64.0, 64.0), np.arange(-256.0, 256.0) / 4],
    }
    whole = {
        "growing": [chance.integers(-(10**number), 10**number, 400) for number in range(1, 18, 3)],
        "ends": [np.array([-(1 << 63), (1 << 63) - 1, 0]), np.array([5, 7])],
        "far": [(1 << 62) + chance.integers(0, 900, 400), np.array([-(1 << 62)])],
        "unsigned": [np.array([0, 3], np.uint64), np.array([(1 << 64) - 1, 1 << 63], np.uint64)],
        "few": [np.array([1, 2, 2, 9])],
    }
    wrong = {name: wrong_of(blocks, whole=False) for name, blocks in cases.items()}
    wrong |= {f"whole {name}": wrong_of(blocks, whole=True) for name, blocks in whole.items()}
    assert {name: text for name, text in wrong.items() if text} == {}


def test_one_value_has_one_bin() -> None:
    for value, whole in ((0.0, False), (-2.5, False), (MOST, False), (5e-324, False), (7, True)):
        bins = LinearBins(whole=whole)
        bins.add(np.full(4, value), value, value)
        (low, high), counts = bins.result(3)
        assert low == value
        assert high > value
        assert counts == [12]
    assert LinearBins(whole=True).result(1).edges == []


def test_weights_count_as_often_as_they_say() -> None:
    bins = LinearBins(whole=False)
    bins.add(np.array([0.0, 1.0]), 0.0, 1.0, np.array([5, 10**15]))
    bins.add(np.array([0.5]), 0.5, 0.5)
    assert sum(bins.result(2).counts) == 2 * (5 + 10**15 + 1)


def octaves_of(values: np.ndarray) -> dict[int, int]:
    found = Octaves()
    (found.add_integers if values.dtype.kind in "iu" else found.add_floats)(values)
    first, counts = found.result(1)
    return {first + number: count for number, count in enumerate(counts) if count}


def test_octaves_are_exact_at_their_ends() -> None:
    assert octaves_of(np.array([0.0, -0.0])) == {}
    assert octaves_of(np.array([1.0, -1.5, 2.0, 1.9999999999999998])) == {0: 3, 1: 1}
    assert octaves_of(np.array([1e-45, 2.0**-127, 2.0**-126, 0.0], np.float32)) == {-149: 1, -127: 1, -126: 1}
    assert octaves_of(np.array([5e-324, MOST])) == {-1074: 1, 1023: 1}
    assert octaves_of(np.array([(1 << 63) - 1, -(1 << 63), 3, 0])) == {62: 1, 63: 1, 1: 1}
    assert octaves_of(np.array([(1 << 64) - 1, (1 << 53) + 1], np.uint64)) == {63: 1, 53: 1}


def test_many_random_blocks_lose_nothing() -> None:
    chance = random.Random(2)
    bins, values = LinearBins(whole=False), []
    for _ in range(60):
        block = np.array(
            [chance.gauss(0, 1) * 10 ** chance.uniform(-12, 12) for _ in range(chance.randint(1, 20))]
        )
        bins.add(block, block.min(), block.max())
        values.append(block)
    edges, counts = bins.result(1)
    assert counts == counted(np.concatenate(values), edges)
    assert all(math.isfinite(edge) for edge in edges)
