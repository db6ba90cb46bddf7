"""Sums against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from inspector.worker.values.moments import FloatMoments, IntegerMoments, Sums, joined, sums_of


def exact(values: list[float] | list[int]) -> Sums:
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    squares = sum(number * number for number in numbers)
    deviations = sum((number - mean) ** 2 for number in numbers)
    return Sums(float(mean), root(deviations / (len(numbers) - 1)), root(squares))


def root(value: Fraction) -> float | None:
    """The square root, though the fraction be larger or smaller than any float."""
    shift = (value.numerator.bit_length() - value.denominator.bit_length()) // 2 if value else 0
    scaled = math.sqrt(value / Fraction(4) ** shift)
    try:
        return math.ldexp(scaled, shift)
    except OverflowError:
        return None


def test_sums_of_floats_hold_at_both_ends_of_their_range() -> None:
    chance = np.random.default_rng(3)
    cases = {
        "plain": [chance.normal(size=50), chance.normal(size=70) + 5],
        "far": [1e6 + chance.normal(size=50), 1e6 + chance.normal(size=50)],
        "large": [chance.normal(size=50) * 1e300, chance.normal(size=50)],
        "large later": [chance.normal(size=50), chance.normal(size=50) * 1e305],
        "tiny": [chance.normal(size=50) * 1e-310, chance.normal(size=9) * 1e-315],
        "tiny, then plain": [chance.normal(size=50) * 1e-200, chance.normal(size=9)],
        "zeros first": [np.zeros(5), chance.normal(size=9) * 1e-300],
        "beyond": [np.array([1.7e308, -1.7e308])],
    }
    wrong = []
    for name, blocks in cases.items():
        moments = FloatMoments()
        for block in blocks:
            moments.add(block, float(np.abs(block).max()))
        expected = exact(np.concatenate(blocks).tolist())
        for field, one, other in zip(Sums._fields, moments.result(1), expected, strict=True):
            close = one == other if None in {one, other} else one == pytest.approx(other, rel=1e-10)
            wrong += [] if close else [f"{name}: {field} is {one}, not {other}"]
    assert not wrong


def test_sums_of_integers_are_exact() -> None:
    blocks = [np.array([-(1 << 63), (1 << 63) - 1]), np.array([(1 << 62) + 1, 3]), np.array([7])]
    moments = IntegerMoments()
    for block in blocks:
        moments.add(block, int(block.min()))
    assert moments.result(1) == pytest.approx(exact(np.concatenate(blocks).tolist()), rel=1e-14)
    far = IntegerMoments()
    for start in (0, 10):
        far.add(np.arange(start, start + 10) + 10**18, 10**18 + start)
    assert far.result(1).std == pytest.approx(exact(list(range(20))).std, rel=1e-14)
    unsigned = IntegerMoments()
    unsigned.add(np.array([(1 << 64) - 1, (1 << 64) - 3], np.uint64), (1 << 64) - 3)
    assert unsigned.result(1).mean == float((1 << 64) - 2)


def test_repeated_and_missing_numbers_count() -> None:
    for moments, block in ((FloatMoments(), np.array([1.0, 4.0])), (IntegerMoments(), np.array([1, 4]))):
        assert moments.result(1) == Sums(None, None, None)
        if isinstance(moments, FloatMoments):
            moments.add(np.zeros(0), 0)
            moments.add(block, 4.0)
        else:
            moments.add(block, 1)
        assert moments.result(3) == pytest.approx(exact([1, 4] * 3))
        moments.add_zeros(4)
        assert moments.result(1) == pytest.approx(exact([1, 4, 0, 0, 0, 0]))
    for empty in (FloatMoments(), IntegerMoments()):
        empty.add_zeros(2)
        assert empty.result(1) == Sums(0, 0, 0)


def test_few_numbers_are_summed_by_how_often_they_occur() -> None:
    assert sums_of([1.5, -2.0], [2, 3], 1) == pytest.approx(exact([1.5, 1.5, -2.0, -2.0, -2.0]))
    assert sums_of([1 << 62, 3], [3, 1], 1).mean == (3 * (1 << 62) + 3) / 4
    assert sums_of([], [], 1) == Sums(None, None, None)
    assert sums_of([2.0], [1], 1) == Sums(2.0, None, 2.0)


def test_complex_numbers_join_their_parts() -> None:
    assert joined(Sums(1, 3, 6), Sums(2, 4, 8)) == Sums(None, 5, 10)
    assert joined(Sums(1, None, None), Sums(2, 4, 8)) == Sums(None, None, None)
