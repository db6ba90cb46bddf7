"""Histograms in one pass over values whose range nobody knows yet, with exact counts.

The linear one has bins as wide as a power of two, at multiples of their width. When a value falls outside
of them all, pairs of bins become one: the counts of such bins are sums, so nothing is counted in a wrong one.
The logarithmic one has a bin for each power of two that magnitudes lie in.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inspector.worker.decoding import Array

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Number = int | float

_BINS = 4096  # while counting
_FEWEST = 1024
_SHOWN, _LEAST = 128, 16
_DIGITS = 52
_LEAST_EXPONENT = -1074
_EASY = 1000


class Histogram(NamedTuple):
    """Counts between edges; a value on an edge belongs to the bin above it."""

    edges: list[Number]
    counts: list[int]


class LinearBins:
    """Counts values in bins of one width."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._exponent: int | None = None  # a bin is 2 ** this wide
        self._base = 0  # the number of the first bin: it begins at this times the width
        self._counts = np.zeros(_BINS, np.int64)
        self._single: tuple[Number, int] | None = None  # all there was so far: one value, so often

    def add(self, values: Array, low: Number, high: Number, counts: Counts | None = None) -> None:
        """Count finite values that are not below `low` nor above `high`, each once or as often as said."""
        number = values.size if counts is None else int(counts.sum())
        if low == high and self._exponent is None and (self._single is None or self._single[0] == low):
            before = 0 if self._single is None else self._single[1]
            self._single = low, before + number
            return
        single, self._single = self._single, None
        if single is not None:
            low, high = min(low, single[0]), max(high, single[0])
        self._fit(low, high)
        if single is not None:
            self._counts[self._index(single[0]) - self._base] += single[1]
        places = self._places(values)
        if counts is None:
            self._counts += np.bincount(places, minlength=_BINS)
        else:
            np.add.at(self._counts, places, counts)

    def result(self, repeats: int) -> Histogram:
        """Return what was counted, in as many bins as can be told apart in a picture."""
        if self._single is not None:
            value, count = self._single
            return Histogram([value, self._above(value)], [count * repeats])
        if self._exponent is None:
            return Histogram([], [])
        used = np.nonzero(self._counts)[0]
        first, last = self._base + int(used[0]), self._base + int(used[-1])
        shift, most = 0, min(_SHOWN, max(_LEAST, 2 * math.isqrt(int(self._counts.sum()))))
        while (last >> shift) - (first >> shift) >= most:
            shift += 1
        counts = [0] * ((last >> shift) - (first >> shift) + 1)
        for place in used.tolist():
            counts[((self._base + place) >> shift) - (first >> shift)] += int(self._counts[place]) * repeats
        numbers = range(first >> shift, (last >> shift) + 2)
        edges = [self._edge(number, self._exponent + shift) for number in numbers]
        return Histogram(edges, counts)

    def _above(self, value: Number) -> Number:
        if self._whole or value == 0:
            return value + 1
        return value + math.ldexp(1.0, max(math.frexp(value)[1] - 10, _LEAST_EXPONENT))

    def _edge(self, number: int, exponent: int) -> Number:
        if self._whole:
            return number << exponent
        try:
            return math.ldexp(number, exponent)
        except OverflowError:  # the last edge may lie beyond the largest number
            return math.copysign(np.finfo(np.float64).max.item(), number)

    # --- which bins there are -----------------------------------------------------------------------------

    def _index(self, value: Number) -> int:
        exponent = self._exponent or 0
        return int(value) >> exponent if self._whole else math.floor(math.ldexp(value, -exponent))

    def _fit(self, low: Number, high: Number) -> None:
        """Widen the bins until they cover this range."""
        if self._exponent is None:
            self._exponent = self._first_exponent(low, high)
            self._base = self._index(low) - self._slack(low, high)
        elif not self._whole:  # bins must not be finer than the numbers themselves
            self._widen(max(0, _exponent_of(max(abs(low), abs(high))) - _DIGITS - self._exponent))
        used = np.nonzero(self._counts)[0]
        bounds = [self._base + int(used[0]), self._base + int(used[-1])] if used.size else []
        shift = 0
        while True:
            first = min([self._index(low) >> shift, *(bound >> shift for bound in bounds[:1])])
            last = max([self._index(high) >> shift, *(bound >> shift for bound in bounds[1:])])
            if last - first < _BINS:
                break
            shift += 1
        self._widen(shift)
        if first < self._base or last >= self._base + _BINS:
            self._move(first - (_BINS - 1 - (last - first)) // 2)

    def _first_exponent(self, low: Number, high: Number) -> int:
        if self._whole:
            return max(0, (int(high) - int(low)).bit_length() - 10)
        width = _exponent_of(high / 2 - low / 2) + 2 - _FEWEST.bit_length()
        return max(width, _exponent_of(max(abs(low), abs(high))) - _DIGITS, _LEAST_EXPONENT)

    def _slack(self, low: Number, high: Number) -> int:
        return (_BINS - 1 - (self._index(high) - self._index(low))) // 2

    def _widen(self, shift: int) -> None:
        """Make bins 2 ** shift times as wide."""
        if not shift:
            return
        shift_ = min(shift, 63)
        merged = np.zeros(_BINS, np.int64)
        rest = self._base - ((self._base >> shift_) << shift_)
        places = np.array([(rest + place) >> shift_ for place in range(_BINS)])
        np.add.at(merged, places, self._counts)
        self._counts, self._base = merged, self._base >> shift_
        self._exponent = (self._exponent or 0) + shift_
        self._widen(shift - shift_)

    def _move(self, base: int) -> None:
        used = np.nonzero(self._counts)[0]
        moved = np.zeros(_BINS, np.int64)
        if used.size:
            moved[used + (self._base - base)] = self._counts[used]
        self._counts, self._base = moved, base

    def _places(self, values: Array) -> npt.NDArray[np.intp]:
        exponent = self._exponent or 0
        if self._whole:
            whole = values >> exponent
            base = np.array([self._base & (1 << 64) - 1], np.uint64).astype(whole.dtype)
            return (whole - base).astype(np.intp)  # modulo 2 ** 64, and small
        if abs(exponent) < _EASY:
            scaled = np.multiply(values, math.ldexp(1.0, -exponent), dtype=np.float64)
        else:
            scaled = np.ldexp(values.astype(np.float64), -exponent)
        np.floor(scaled, out=scaled)
        scaled -= self._base
        return scaled.astype(np.intp)


def _exponent_of(value: float) -> int:
    """Return by which power of two a number is bounded; of zero the least."""
    return math.frexp(value)[1] if value else _LEAST_EXPONENT


class Octaves:
    """Counts magnitudes by the power of two below them."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add_floats(self, values: Array, zeros: int = 0) -> None:
        """Count finite float32 or float64 numbers; so many of them are zeros, which have no magnitude."""
        if values.dtype == np.float32:
            codes: Array = (values.view(np.uint32) >> 23).astype(np.uint8)
            bias, size = 127, 256
        else:
            codes = (values.view(np.uint64) >> 52).astype(np.uint16) & 2047
            bias, size = 1023, 2048
        counts = np.bincount(codes, minlength=size)
        for code in np.nonzero(counts[1:])[0].tolist():
            self._counts[code + 1 - bias] += int(counts[code + 1])
        if counts[0] > zeros:  # numbers too small to be normal
            self.add_counts(values[(codes == 0) & (values != 0)].astype(np.float64))

    def add_integers(self, values: Array) -> None:
        """Count integers of 64 bits."""
        large = values.view(np.uint64)
        if values.dtype.kind == "i":
            large = np.where(values < 0, ~large + np.uint64(1), large)
        # A float has 53 digits, and must not round up to the next power of two.
        cut = np.where(large < 1 << 53, large, large & ~np.uint64(2047))
        self.add_counts(cut.astype(np.float64))

    def add_counts(self, values: Floats, counts: npt.NDArray[np.int64] | None = None) -> None:
        """Count numbers, each once or as often as said."""
        exponents = np.frexp(values)[1] - 1
        for exponent in np.unique(exponents[values != 0]).tolist():
            found = (exponents == exponent) & (values != 0)
            self._counts[exponent] += int(found.sum() if counts is None else counts[found].sum())

    def result(self, repeats: int) -> tuple[int, list[int]]:
        """Return the least exponent, and the counts from it on."""
        if not self._counts:
            return 0, []
        first, last = min(self._counts), max(self._counts)
        return first, [self._counts[exponent] * repeats for exponent in range(first, last + 1)]
