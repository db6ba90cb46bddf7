"""Sums over values: mean, deviation and norm, in float64 and safe from overflow.

Each block has its own mean and squared deviations, and blocks are combined as by Chan, Golub and LeVeque
(https://doi.org/10.1080/00031305.1983.10483115); sums over blocks carry what rounding took away. Numbers near
the ends of float64's range are scaled by a power of two first, which costs nothing of their digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from inspector.worker.decoding import Array
from inspector.worker.values.bins import Floats

_SAFE_EXPONENT = 300  # squares of numbers below 2 ** this, summed up, are far from the end of the range
_NEAR = 0.5
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


class Sums(NamedTuple):
    """What comes out: None for what is not defined, or larger than a float can be."""

    mean: float | None
    std: float | None
    norm: float | None


class _Sum:
    """A sum that remembers what rounding took away (Neumaier)."""

    def __init__(self) -> None:
        self._total = self._lost = 0.0

    def add(self, value: float) -> None:
        total = self._total + value
        larger, smaller = (self._total, value) if abs(self._total) >= abs(value) else (value, self._total)
        self._lost += (larger - total) + smaller
        self._total = total

    def scale(self, exponent: int) -> None:
        self._total, self._lost = math.ldexp(self._total, exponent), math.ldexp(self._lost, exponent)

    @property
    def value(self) -> float:
        return self._total + self._lost


class FloatMoments:
    """Sums of floating-point numbers."""

    def __init__(self) -> None:
        self._count = 0
        self._sum, self._squares, self._deviations = _Sum(), _Sum(), _Sum()
        self._exponent: int | None = None  # all sums are of numbers divided by 2 ** this

    def add(self, values: Floats, largest: float) -> None:
        """Add finite numbers, the largest of which has this magnitude."""
        if not values.size:
            return
        if largest:
            self._rescale(largest)
        if self._exponent:
            values = np.ldexp(values, -self._exponent)
        total, squares = float(values.sum()), float(values.dot(values))
        mean = total / values.size
        if self._count:
            gap = mean - self._sum.value / self._count
            self._deviations.add(gap * gap * (self._count * values.size / (self._count + values.size)))
        deviations = squares - total * mean
        if deviations < _NEAR * squares:  # far from zero: the difference of two large numbers has few digits
            apart = values - mean
            deviations = float(apart.dot(apart))
        self._deviations.add(deviations)
        self._squares.add(squares)
        self._sum.add(total)
        self._count += values.size

    def add_zeros(self, count: int) -> None:
        """Add zeros."""
        if self._count:
            mean = self._sum.value / self._count
            self._deviations.add(mean * mean * (self._count * count / (self._count + count)))
        self._count += count

    def result(self, repeats: int) -> Sums:
        """Return the sums of all numbers, each repeated."""
        return _sums(
            self._count * repeats,
            self._sum.value * repeats,
            self._deviations.value * repeats,
            self._squares.value * repeats,
            self._exponent or 0,
        )

    def _rescale(self, largest: float) -> None:
        exponent = math.frexp(largest)[1]
        if abs(exponent) < _SAFE_EXPONENT:
            exponent = 0
        if self._exponent is None:
            self._exponent = exponent
        elif exponent > self._exponent:
            shift, self._exponent = self._exponent - exponent, exponent
            self._sum.scale(shift)
            self._squares.scale(2 * shift)
            self._deviations.scale(2 * shift)


class IntegerMoments:
    """Sums of integers, exact where a sum of integers is asked for."""

    def __init__(self) -> None:
        self._count = self._sum = 0
        self._squares, self._deviations = _Sum(), _Sum()

    def add(self, values: Array, low: int) -> None:
        """Add integers of 64 bits, the least of which is `low`."""
        above = values.view(np.uint64) - np.array([low & (1 << 64) - 1], np.uint64)  # modulo 2 ** 64
        above_sum = (int((above >> _HALF).sum()) << 32) + int((above & _LOW).sum())
        total = above_sum + low * values.size
        apart = above.astype(np.float64) - above_sum / values.size
        if self._count:
            gap = (total * self._count - self._sum * values.size) / (self._count * values.size)
            self._deviations.add(gap * gap * (self._count * values.size / (self._count + values.size)))
        self._deviations.add(float(apart.dot(apart)))
        floats = values.astype(np.float64)
        self._squares.add(float(floats.dot(floats)))
        self._count += values.size
        self._sum += total

    def add_zeros(self, count: int) -> None:
        """Add zeros."""
        if self._count:
            mean = self._sum / self._count
            self._deviations.add(mean * mean * (self._count * count / (self._count + count)))
        self._count += count

    def result(self, repeats: int) -> Sums:
        """Return the sums of all numbers, each repeated."""
        count, deviations, squares = self._count * repeats, self._deviations.value, self._squares.value
        found = _sums(count, 0.0, deviations * repeats, squares * repeats, 0)
        return found._replace(mean=self._sum * repeats / count) if count else found


def sums_of(values: list[float], counts: list[int], repeats: int) -> Sums:
    """Return the sums of few different numbers, each with how often it occurs; exact for integers."""
    count = sum(counts)
    if not count:
        return Sums(None, None, None)
    pairs = list(zip(values, counts, strict=True))
    is_whole = all(isinstance(value, int) for value in values)
    products = [value * number for value, number in pairs]
    mean = (sum(products) if is_whole else math.fsum(products)) / count
    deviations = math.fsum((value - mean) ** 2 * number for value, number in pairs)
    squares = math.fsum(float(value) ** 2 * number for value, number in pairs)
    return _sums(count * repeats, 0.0, deviations * repeats, squares * repeats, 0)._replace(mean=mean)


def joined(one: Sums, other: Sums) -> Sums:
    """Return the deviation and norm of complex numbers from those of their two parts."""
    std = None if one.std is None or other.std is None else math.hypot(one.std, other.std)
    norm = None if one.norm is None or other.norm is None else math.hypot(one.norm, other.norm)
    return Sums(None, std, norm)


def _sums(count: int, total: float, deviations: float, squares: float, exponent: int) -> Sums:
    if not count:
        return Sums(None, None, None)
    std = math.sqrt(deviations / (count - 1)) if count > 1 else None
    ends = total / count, std, math.sqrt(squares)
    return Sums(*(None if value is None else _scaled(value, exponent) for value in ends))


def _scaled(value: float, exponent: int) -> float | None:
    try:
        found = math.ldexp(value, exponent)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
