"""The statistics of one tensor, in one pass over its pieces: histograms, moments, and what is odd.

Types of up to 16 bits have at most 65,536 different elements, so those are counted, and all else follows
from the counts, exactly. Larger ones are looked at in blocks that fit into the processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inspector.errors import ValuesError
from inspector.overriding import override
from inspector.values.arrays import Coded, Request, channels_of, view_of, whole_array
from inspector.values.decoding import NATIVE, PACKED, Array, codes_of, value_of_codes
from inspector.values.tensor_bytes import TensorBytes
from inspector.values.views import Piece, View, pieces

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Number = int | float
Found = dict[str, Any]

_BLOCK = 1 << 17
_MOST_UNIQUE = 1 << 16
_MANY = 1 << 16
_MOST_ROWS = 1 << 24
_MOST_INDICES = 1 << 22
PLACES = ("nan", "posinf", "neginf")
"""What is counted apart from finite numbers, each with its first place."""

# --- histograms, of values whose range nobody knows yet -----------------------------------------------------

_FEWEST = 10  # so many bits of the range are told apart while counting
_SHOWN, _LEAST = 128, 16
_DIGITS = 52
_LEAST_EXPONENT = -1074
_EASY = 1000
_LARGEST = np.finfo(np.float64).max.item()


class Histogram(NamedTuple):
    """Counts between edges; a value on an edge belongs to the bin above it."""

    edges: list[Number]
    counts: list[int]


class LinearBins:
    """Counts values in bins as wide as a power of two, at multiples of their width.

    As the range grows, neighboring bins become one: the counts of such bins are sums, so nothing is counted
    in a wrong one.
    """

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._exponent = 0 if whole else _LEAST_EXPONENT  # a bin is 2 ** this wide
        self._base = 0  # the number of the first bin: it begins at this times the width
        self._counts: Counts = np.zeros(0, np.int64)
        self._low: Number = 0
        self._high: Number = 0

    def add(self, values: Array, low: Number, high: Number, counts: Counts | None = None) -> None:
        """Count finite values, of which these are the ends, each once or as often as said."""
        known = bool(self._counts.size)
        self._low = min(self._low, low) if known else low
        self._high = max(self._high, high) if known else high
        exponent = max(self._exponent, self._least_exponent())
        self._base, self._counts = _coarser(self._base, self._counts, exponent - self._exponent)
        self._exponent = exponent
        first = self._index(low)
        places = self._places(values, first)
        found = np.zeros(self._index(high) - first + 1, np.int64)
        if counts is None:
            found += np.bincount(places, minlength=found.size)
        else:
            np.add.at(found, places, counts)
        self._base = self._base if known else first
        base = min(self._base, first)
        total = np.zeros(max(self._base + self._counts.size, first + found.size) - base, np.int64)
        total[self._base - base :][: self._counts.size] += self._counts
        total[first - base :][: found.size] += found
        self._base, self._counts = base, total

    def result(self, repeats: int) -> Histogram:
        """Return what was counted, in as many bins as can be told apart in a picture."""
        if not self._counts.size:
            return Histogram([], [])
        number = int(self._counts.sum())
        if self._low == self._high:
            return Histogram([self._low, self._above(self._low)], [number * repeats])
        last = self._base + self._counts.size - 1
        shift, most = 0, min(_SHOWN, max(_LEAST, 2 * math.isqrt(number)))
        while (last >> shift) - (self._base >> shift) >= most:
            shift += 1
        base, counts = _coarser(self._base, self._counts, shift)
        edges = [self._edge(place, self._exponent + shift) for place in range(base, base + counts.size + 1)]
        return Histogram(edges, (counts * repeats).tolist())

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
            return math.copysign(_LARGEST, number)

    def _index(self, value: Number) -> int:
        if self._whole:
            return int(value) >> self._exponent
        return math.floor(math.ldexp(value, -self._exponent))

    def _least_exponent(self) -> int:
        """Return how wide bins must be: not finer than the numbers themselves."""
        low, high = self._low, self._high
        if self._whole:
            return max(0, (int(high) - int(low)).bit_length() - _FEWEST)
        width = _exponent_of(high / 2 - low / 2) + 1 - _FEWEST
        return max(width, _exponent_of(max(abs(low), abs(high))) - _DIGITS)

    def _places(self, values: Array, first: int) -> npt.NDArray[np.intp]:
        if self._whole:
            whole = values >> self._exponent
            base = np.array([first & (1 << 64) - 1], np.uint64).astype(whole.dtype)
            return (whole - base).astype(np.intp)  # modulo 2 ** 64, and small
        if abs(self._exponent) < _EASY:
            scaled = np.multiply(values, math.ldexp(1.0, -self._exponent), dtype=np.float64)
        else:
            scaled = np.ldexp(values.astype(np.float64), -self._exponent)
        np.floor(scaled, out=scaled)
        scaled -= first
        return scaled.astype(np.intp)


def _coarser(base: int, counts: Counts, shift: int) -> tuple[int, Counts]:
    """Return the number of the first bin, and the counts, of bins that are 2 ** shift times as wide."""
    if not shift or not counts.size:
        return base >> shift, counts
    places = [((base + place) >> shift) - (base >> shift) for place in range(counts.size)]
    merged = np.zeros(places[-1] + 1, np.int64)
    np.add.at(merged, places, counts)
    return base >> shift, merged


def _exponent_of(value: float) -> int:
    """Return by which power of two a number is bounded; of zero the least."""
    return math.frexp(value)[1] if value else _LEAST_EXPONENT


class Octaves:
    """Counts magnitudes by the power of two below them."""

    def __init__(self) -> None:
        self._counts = np.zeros(1024 - _LEAST_EXPONENT, np.int64)

    def add_floats(self, values: Array, zeros: int = 0) -> None:
        """Count finite float32 or float64 numbers; so many of them are zeros, which have no magnitude."""
        if values.dtype == np.float32:
            codes: Array = (values.view(np.uint32) >> 23).astype(np.uint8)
            bias, size = 127, 256
        else:
            codes = (values.view(np.uint64) >> 52).astype(np.uint16) & 2047
            bias, size = 1023, 2048
        counts = np.bincount(codes, minlength=size)
        self._counts[1 - bias - _LEAST_EXPONENT :][: size - 2] += counts[1 : size - 1]
        if counts[0] > zeros:  # numbers too small to be normal
            self.add_counts(values[codes == 0].astype(np.float64))

    def add_integers(self, values: Array) -> None:
        """Count integers of 64 bits."""
        large = values.view(np.uint64)
        if values.dtype.kind == "i":
            large = np.where(values < 0, ~large + np.uint64(1), large)
        # A float has 53 digits, and must not round up to the next power of two.
        cut = np.where(large < 1 << 53, large, large & ~np.uint64(2047))
        self.add_counts(cut.astype(np.float64))

    def add_counts(self, values: Floats, counts: Counts | None = None) -> None:
        """Count numbers, each once or as often as said."""
        there = values != 0
        exponents = np.frexp(values[there])[1] - 1 - _LEAST_EXPONENT
        np.add.at(self._counts, exponents, 1 if counts is None else counts[there])

    def result(self, repeats: int) -> tuple[int, list[int]]:
        """Return the least exponent, and the counts from it on."""
        used = np.nonzero(self._counts)[0]
        if not used.size:
            return 0, []
        found = self._counts[used[0] : used[-1] + 1] * repeats
        return int(used[0]) + _LEAST_EXPONENT, found.tolist()


# --- sums: mean, deviation and norm, in float64 and safe from overflow --------------------------------------
#
# Each block has its own mean and squared deviations, and they are combined at the end as by Chan, Golub and
# LeVeque (https://doi.org/10.1080/00031305.1983.10483115).

_SAFE_EXPONENT = 300  # squares of numbers below 2 ** this, summed up, are far from the end of the range
_NEAR = 0.5
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)


class Sums(NamedTuple):
    """What comes out: None for what is not defined, or larger than a float can be."""

    mean: float | None = None
    std: float | None = None
    norm: float | None = None


class _Block(NamedTuple):
    """The sums of some numbers that were divided by 2 ** exponent first; exact for integers."""

    numel: int
    total: Number
    deviations: float
    squares: float
    exponent: int = 0


class Moments:
    """Sums of numbers that come block by block."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    def add_floats(self, values: Floats, largest: float) -> None:
        """Add finite numbers, the largest of which has this magnitude."""
        exponent = math.frexp(largest)[1]
        if abs(exponent) < _SAFE_EXPONENT:
            exponent = 0
        else:
            values = np.ldexp(values, -exponent)
        total, squares = float(values.sum()), float(values.dot(values))
        mean = total / values.size
        deviations = squares - total * mean
        if deviations < _NEAR * squares:  # far from zero: the difference of two large numbers has few digits
            apart = values - mean
            deviations = float(apart.dot(apart))
        self._blocks.append(_Block(values.size, total, deviations, squares, exponent))

    def add_integers(self, values: Array, low: int) -> None:
        """Add integers of 64 bits, the least of which is `low`."""
        above = values.view(np.uint64) - np.array([low & (1 << 64) - 1], np.uint64)  # modulo 2 ** 64
        above_sum = (int((above >> _HALF).sum()) << 32) + int((above & _LOW).sum())
        apart, floats = above.astype(np.float64) - above_sum / values.size, values.astype(np.float64)
        squares = float(floats.dot(floats))
        self._blocks.append(
            _Block(values.size, above_sum + low * values.size, float(apart.dot(apart)), squares)
        )

    def add_counts(self, values: Sequence[Number], counts: Sequence[int]) -> None:
        """Add few different numbers, each as often as it occurs."""
        pairs = list(zip(values, counts, strict=True))
        count, products = sum(counts), [value * number for value, number in pairs]
        total = sum(products) if all(isinstance(value, int) for value in values) else math.fsum(products)
        deviations = math.fsum((value - total / count) ** 2 * number for value, number in pairs)
        squares = math.fsum(float(value) ** 2 * number for value, number in pairs)
        self._blocks.append(_Block(count, total, deviations, squares))

    def add_zeros(self, count: int) -> None:
        """Add zeros."""
        self._blocks.append(_Block(count, 0, 0.0, 0.0))

    def result(self, repeats: int) -> Sums:
        """Return the sums of all numbers, each repeated."""
        exponent = max((block.exponent for block in self._blocks if block.squares), default=0)
        blocks = [_scaled(block, block.exponent - exponent) for block in self._blocks]
        count = sum(block.numel for block in blocks)
        if not count:
            return Sums()
        totals = [block.total for block in blocks]
        total = sum(totals) if all(isinstance(one, int) for one in totals) else math.fsum(totals)
        parts = []
        for numel, own, deviations, *_ in blocks:
            gap = (own * count - total * numel) / (count * numel)
            parts.append(deviations + gap * gap * numel)
        std = math.sqrt(math.fsum(parts) * repeats / (count * repeats - 1)) if count * repeats > 1 else None
        norm = math.sqrt(math.fsum(block.squares for block in blocks) * repeats)
        ends = total / count, std, norm
        return Sums(*(None if value is None else _unscaled(value, exponent) for value in ends))


def _scaled(block: _Block, shift: int) -> _Block:
    if not shift:
        return block
    deviations, squares = (math.ldexp(value, 2 * shift) for value in (block.deviations, block.squares))
    return block._replace(total=math.ldexp(block.total, shift), deviations=deviations, squares=squares)


def _unscaled(value: float, exponent: int) -> float | None:
    try:
        found = math.ldexp(value, exponent)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


# --- what is counted of a tensor: one class for each kind of number -----------------------------------------

Convert = Callable[[Array], Array]
"""Returns the numbers that codes stand for."""


class Summary:
    """What all kinds have in common."""

    def __init__(self, convert: Convert | None = None, *, whole: bool = False) -> None:
        self._convert = convert or (lambda codes: codes)
        self._whole = whole
        self.counts = dict.fromkeys(PLACES, 0)
        self.first: dict[str, int | None] = dict.fromkeys(PLACES)
        self.low: Number | None = None
        self.high: Number | None = None
        self.zeros = 0
        self.finite = 0
        self.octaves = Octaves()
        self.bins = LinearBins(whole=whole)
        self.moments = Moments()

    def add(self, piece: Piece) -> None:
        """Count the elements of a piece."""
        flat = self._convert(piece.flat)
        is_odd = False
        for start in range(0, flat.size, _BLOCK):
            is_odd |= self._add_block(np.ascontiguousarray(flat[start : start + _BLOCK]))
        if is_odd:
            self.note_places(piece, self._convert(piece.codes))

    def _add_block(self, block: Array) -> bool:
        """Count some elements; return whether any of them is no finite number."""
        raise NotImplementedError  # each kind does so in its way

    def note_places(self, piece: Piece, values: Array) -> None:
        """Note what of a piece is no finite number, and where the first of them stand."""
        if values.dtype.kind == "c":
            is_nan, real, imag = np.isnan(values), values.real, values.imag
            kinds = is_nan, (np.isinf(real) | np.isinf(imag)) & ~is_nan, np.zeros_like(is_nan)
        else:
            kinds = np.isnan(values), np.isposinf(values), np.isneginf(values)
        for name, found in zip(PLACES, kinds, strict=True):
            count = int(found.sum())
            if count:
                self.counts[name] += count
                first, place = self.first[name], int(piece.places()[found].min())
                self.first[name] = place if first is None else min(first, place)

    def add_zeros(self, count: int) -> None:
        """Count zeros that are nowhere stored."""
        self.widen(0, 0)
        self.zeros += count
        self.finite += count
        zero = np.zeros(1, np.int64 if self._whole else np.float64)
        self.bins.add(zero, 0, 0, np.array([count], np.int64))
        self.moments.add_zeros(count)

    def sums(self, repeats: int) -> Sums:
        """Return mean, deviation and norm."""
        return self.moments.result(repeats)

    def unique(self) -> int | None:
        """Return how many different numbers there are, where that is known."""
        return None

    def widen(self, low: Number, high: Number) -> None:
        """Note numbers at the ends of the range."""
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)

    def document(self, repeats: int) -> Found:
        """Return all figures, each element counted as often as it is repeated."""
        sums = self.sums(repeats)
        edges, counts = self.bins.result(repeats)
        exponent, octaves = self.octaves.result(repeats)
        return {
            "finite": self.finite * repeats,
            "zeros": self.zeros * repeats,
            **{name: count * repeats for name, count in self.counts.items()},
            **{f"first_{name}": place for name, place in self.first.items()},
            "min": self.low,
            "max": self.high,
            **sums._asdict(),
            "unique": self.unique(),
            "edges": edges,
            "counts": counts,
            "exponent": exponent,
            "octaves": octaves,
        }


class CodeSummary(Summary):
    """Elements of up to 16 bits, counted by their code."""

    def __init__(self, dtype: str, convert: Convert | None = None) -> None:
        self._bits, codes = _all_values(dtype)
        self._values = codes if convert is None else convert(codes)
        super().__init__(whole=self._values.dtype.kind in "iub")
        self._occurring = np.zeros(1 << self._bits, np.int64)
        self._odd = ~np.isfinite(self._values.astype(np.float32))

    @override
    def add(self, piece: Piece) -> None:
        counts = _counts_of(piece.flat, self._bits)
        if counts[self._odd].any():
            self.note_places(piece, self._values[_bits_of(piece.codes)])
        self._occurring += counts

    @override
    def add_zeros(self, count: int) -> None:
        self._occurring[np.nonzero(self._values == 0)[0][0]] += count

    @override
    def sums(self, repeats: int) -> Sums:
        self.bins, self.octaves, self.moments = LinearBins(whole=self._whole), Octaves(), Moments()
        numbers, counts = self._numbers()
        if counts.size:
            self.finite, self.zeros = int(counts.sum()), int(counts[numbers == 0].sum())
            low, high = numbers[0].item(), numbers[-1].item()
            self.widen(low, high)
            self.bins.add(numbers, low, high, counts)
            self.octaves.add_counts(numbers.astype(np.float64), counts)
            self.moments.add_counts(numbers.tolist(), counts.tolist())
        return super().sums(repeats)

    @override
    def unique(self) -> int | None:
        return len(self._numbers()[1]) if self._whole else None

    def _numbers(self) -> tuple[npt.NDArray[Any], Counts]:
        """Return the finite numbers that occur, in order, and how often."""
        seen = (self._occurring > 0) & ~self._odd
        values = self._values[seen].astype(np.int64 if self._whole else np.float64)
        order = np.argsort(values)
        return values[order], self._occurring[seen][order]


class FloatSummary(Summary):
    """float32 and float64."""

    @override
    def _add_block(self, block: Array) -> bool:
        low, high = block.min().item(), block.max().item()
        is_odd = not (np.isfinite(low) and np.isfinite(high))
        if is_odd:
            block = block[np.isfinite(block)]
            if not block.size:
                return True
            low, high = block.min().item(), block.max().item()
        self.widen(low, high)
        self.finite += block.size
        zeros = block.size - int(np.count_nonzero(block))
        self.zeros += zeros
        values: Floats = block.astype(np.float64)
        self.moments.add_floats(values, max(-low, high))
        self.bins.add(values, low, high)
        self.octaves.add_floats(block, zeros)
        return is_odd


class IntegerSummary(Summary):
    """Integers of 32 and 64 bits."""

    def __init__(self) -> None:
        super().__init__(whole=True)
        self._unique: Array | None = np.zeros(0, np.int64)

    @override
    def _add_block(self, block: Array) -> bool:
        if block.dtype != np.uint64:
            block = block.astype(np.int64)
        low, high = int(block.min()), int(block.max())
        self.widen(low, high)
        self.finite += block.size
        self.zeros += block.size - int(np.count_nonzero(block))
        self.moments.add_integers(block, low)
        self.bins.add(block, low, high)
        self.octaves.add_integers(block)
        self._note_unique(block, low, high)
        return False

    def _note_unique(self, block: Array, low: int, high: int) -> None:
        if self._unique is None:
            return
        if high - low < _MOST_UNIQUE:  # much faster than to sort
            apart = (block - np.array([low], block.dtype)).astype(np.intp)
            values = np.nonzero(np.bincount(apart))[0].astype(block.dtype) + np.array([low], block.dtype)
        else:
            values = np.unique(block)
        known = np.union1d(self._unique.astype(block.dtype), values)
        self._unique = known if known.size <= _MOST_UNIQUE else None

    @override
    def add_zeros(self, count: int) -> None:
        super().add_zeros(count)
        self._note_unique(np.zeros(1, np.int64), 0, 0)

    @override
    def unique(self) -> int | None:
        return None if self._unique is None else int(self._unique.size)


class ComplexSummary(Summary):
    """Complex numbers: the range and the histograms are those of their magnitudes."""

    def __init__(self, convert: Convert | None = None) -> None:
        super().__init__(convert)
        self._imag = Moments()

    @override
    def _add_block(self, block: Array) -> bool:
        finite = np.isfinite(block)
        if finite.any():
            self._add_finite(block[finite])
        return not finite.all()

    def _add_finite(self, block: Array) -> None:
        real, imag = block.real.astype(np.float64), block.imag.astype(np.float64)
        with np.errstate(over="ignore"):  # the magnitude of the largest numbers is none
            sizes = np.minimum(np.hypot(real, imag), _LARGEST)
        low, high = float(sizes.min()), float(sizes.max())
        self.widen(low, high)
        self.finite += block.size
        self.zeros += block.size - int(np.count_nonzero(sizes))
        self.moments.add_floats(real, float(np.abs(real).max()))
        self._imag.add_floats(imag, float(np.abs(imag).max()))
        self.bins.add(sizes, low, high)
        self.octaves.add_floats(sizes)

    @override
    def add_zeros(self, count: int) -> None:
        super().add_zeros(count)
        self._imag.add_zeros(count)

    @override
    def sums(self, repeats: int) -> Sums:
        (_, *own), (_, *others) = self.moments.result(repeats), self._imag.result(repeats)
        pairs = zip(own, others, strict=True)
        return Sums(None, *(None if a is None or b is None else math.hypot(a, b) for a, b in pairs))

    @override
    def document(self, repeats: int) -> Found:
        mean = [moments.result(repeats).mean for moments in (self.moments, self._imag)]
        ends = {"min": None, "max": None, "min_abs": self.low, "max_abs": self.high}
        return {**super().document(repeats), **ends, "complex_mean": mean if self.finite else None}


def summary_for(dtype: str, coded: Coded | None = None, *, neg: bool = False, numel: int = _MANY) -> Summary:
    """Return what counts elements of a type; `neg` and a quantized type change what codes mean.

    A table of codes takes longer to go through than a small tensor.
    """
    if coded is not None:
        return FloatSummary(coded.numbers) if dtype == "qint32" else CodeSummary(dtype, coded.numbers)
    if dtype.startswith("complex"):
        return ComplexSummary(partial(value_of_codes, dtype=dtype))
    if neg and not dtype.startswith(("float", "bfloat")):
        raise ValuesError(
            f"the file says that elements of {dtype} are negated lazily, which torch never does"
        )
    if numel < _MANY and not neg and dtype in {"float16", "bfloat16"}:
        return FloatSummary(partial(_as_float32, dtype))
    if dtype in {"float32", "float64"}:
        return FloatSummary(np.negative if neg else None)
    if dtype in {"int32", "int64", "uint32", "uint64", "qint32"}:
        return IntegerSummary()
    return CodeSummary(dtype, np.negative if neg else None)


def _as_float32(dtype: str, codes: Array) -> Array:
    return value_of_codes(codes, dtype).astype(np.float32)


@cache
def _all_values(dtype: str) -> tuple[int, Array]:
    """Return how many bits an element of a small type has, and the value of each code of them."""
    if dtype in PACKED:
        bits = 8 // PACKED[dtype]
        return bits, value_of_codes(np.arange(1 << bits, dtype=np.uint8), dtype)
    nbytes = codes_of(b"", dtype).dtype.itemsize
    codes = np.arange(1 << 8 * nbytes, dtype=np.uint8 if nbytes == 1 else np.uint16)
    return 8 * nbytes, value_of_codes(codes_of(codes.tobytes(), dtype), dtype)


def _counts_of(codes: Array, bits: int) -> Counts:
    """Return how often each code occurs; those of a byte are counted by pairs, which takes half as long."""
    if bits != 8 or codes.size % 2 or not codes.flags.c_contiguous:
        return np.bincount(_bits_of(codes), minlength=1 << bits)
    pairs = np.bincount(codes.view(np.uint16).astype(np.intp), minlength=1 << 16).reshape(256, 256)
    found: Counts = pairs.sum(axis=0) + pairs.sum(axis=1)
    return found


def _bits_of(codes: Array) -> npt.NDArray[np.intp]:
    kind: npt.DTypeLike = np.uint8 if codes.dtype.itemsize == 1 else np.uint16
    return codes.view(kind).astype(np.intp)


# --- what is not stored of a sparse tensor: where its elements stand, and the zeros between them ------------


class Stored(NamedTuple):
    """Where the stored elements of a sparse tensor belong.

    Attributes:
        is_once: Whether none of them stands at a place where another does; None where that is not known.
        indices: Their places by dimension, or None.
    """

    is_once: bool | None
    indices: Counts | None = None


def stored_of(request: Request, opened: TensorBytes) -> Stored:
    """Return where the stored elements of a sparse tensor belong."""
    if request["layout"] != "sparse_coo":
        return Stored(is_once=True)  # torch refuses a place that is named twice in these layouts
    indices = request["indices"]
    if prod(indices["shape"]) > _MOST_INDICES or len(indices["shape"]) != 2:
        return Stored(None)
    found = whole_array(indices, opened, _MOST_INDICES).reshape(indices["shape"]).astype(np.int64)
    sizes = np.array(request["whole"][: len(found)], np.int64)[:, None]
    if len(sizes) < len(found) or ((found < 0) | (found >= sizes)).any():
        return Stored(None)
    size = len(np.unique(found, axis=1).T) if found.size else found.shape[1]
    is_once = size == found.shape[1] and (bool(found.shape[0]) or size < 2)
    return Stored(is_once, found)


def place_of(
    stored: Stored, shape: list[int], values_shape: list[int], place: int | None
) -> list[int] | None:
    """Return the index in the whole of a stored element; None where that is not known."""
    if place is None or stored.indices is None:
        return None
    index = unravelled(place, values_shape)
    found = [*stored.indices[:, index[0]].tolist(), *index[1:]]
    return found if len(found) == len(shape) else None


def unravelled(place: int, shape: list[int]) -> list[int]:
    """Return the index of an element that is counted in the order of rows."""
    found = []
    for size in reversed(shape):
        place, index = divmod(place, size)
        found.append(index)
    return found[::-1]


# --- all pieces of a tensor through one summary -------------------------------------------------------------


class Statistics:
    """Reads a tensor to its end and keeps what was counted."""

    def __init__(self, request: Request, opened: TensorBytes) -> None:
        self._request = request
        self._opened = opened
        self._view = view_of(request)
        self._channels = channels_of(request, opened)
        self._is_one = len(self._channels) == 1
        coded = self._channels[0].coded if self._channels else None
        neg = bool(request.get("neg"))
        numel = self._view.numel // (self._view.repeats or 1)
        counted = summary_for(self._view.dtype, coded, neg=neg, numel=numel)
        self._summary = counted if self._is_one else FloatSummary()
        self._rows = _Rows(self._view)

    def steps(self) -> Iterator[int]:
        """Count piece after piece, and yield how many bytes each had."""
        read = self._opened.read_of(self._request["place"])
        for view, coded in self._channels:
            for piece in pieces(view, read):
                nbytes = piece.codes.nbytes
                if not self._is_one and coded is not None:
                    numbers = coded.numbers(piece.flat)
                    piece = piece._replace(codes=coded.numbers(piece.codes), flat=numbers)  # noqa: PLW2901 - the same elements
                self._summary.add(piece)
                self._rows.add(piece)
                yield nbytes

    def result(self) -> Found:
        """Return all figures, those of a sparse tensor with the zeros that are not stored."""
        stored = self._summary.document(self._view.repeats)
        pair = 2 if self._view.dtype.endswith("_x2") else 1
        found = {"numel": self._view.numel * pair, **stored, "of": "all", "dead_rows": self._rows.dead()}
        if "layout" in self._request:
            found = self._sparse(found)
        else:
            shape = [*self._view.shape]
            for name in PLACES:
                place = found[f"first_{name}"]
                found[f"first_{name}"] = None if place is None else unravelled(place, shape)
        mean = found.get("complex_mean")
        if mean is not None:
            found["complex_mean"] = _turned(mean, self._request)
        return found

    def _sparse(self, found: Found) -> Found:
        places = stored_of(self._request, self._opened)
        shape, values_shape = self._request["whole"], [*self._view.shape]
        first = {
            f"first_{name}": place_of(places, shape, values_shape, found[f"first_{name}"]) for name in PLACES
        }
        stored = {**found, **first, "dead_rows": None}
        missing = prod(shape) - self._view.numel
        if not places.is_once or missing < 0:
            return {**stored, "of": "stored"}
        if missing:
            self._summary.add_zeros(missing)
        whole = self._summary.document(self._view.repeats)
        return {**whole, **first, "numel": prod(shape), "of": "all", "dead_rows": None, "stored": stored}


def _turned(mean: list[float | None], request: Request) -> list[float | None]:
    """Return the mean of complex numbers that are to be conjugated, or negated, when they are used."""
    real, imag = mean
    if request.get("conj") and imag is not None:
        imag = -imag
    if request.get("neg"):
        real, imag = (None if part is None else -part for part in (real, imag))
    return [real, imag]


class _Rows:
    """Which rows, the indices of the first dimension, have an element that is not zero."""

    def __init__(self, view: View) -> None:
        self._dtype, self._is_native = view.dtype, view.dtype in NATIVE
        self._length = prod(view.shape[1:])
        is_small = len(view.shape) > 1 and self._length > 1 and 1 < view.shape[0] <= _MOST_ROWS
        self._alive = np.zeros(view.shape[0], np.bool_) if is_small else None

    def add(self, piece: Piece) -> None:
        if self._alive is None:
            return
        if piece.steps != (1,) or piece.flat.size != piece.codes.size:
            self._alive = None
            return
        flat, end = piece.flat, piece.first + piece.flat.size
        first, last = piece.first // self._length, (end - 1) // self._length
        # Bits of minus zero are not zero: only what NumPy has the type of is quick to tell.
        if self._is_native and np.count_nonzero(flat) == flat.size:
            self._alive[first : last + 1] = True
            return
        starts = np.arange(first, last + 1) * self._length - piece.first
        starts[0] = 0
        self._alive[first : last + 1] |= np.logical_or.reduceat(
            value_of_codes(flat, self._dtype) != 0, starts
        )

    def dead(self) -> int | None:
        return None if self._alive is None else int(self._alive.size - self._alive.sum())
