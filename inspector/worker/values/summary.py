"""What is counted of a tensor: one class for each kind of number, chosen by the type of the elements.

Types of up to 16 bits have at most 65,536 different elements, so those are counted, and all else follows
from the counts, exactly. Larger ones are looked at in blocks that fit into the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inspector.errors import ValuesError
from inspector.overriding import override
from inspector.worker.decoding import PACKED, Array, codes_of, value_of_codes
from inspector.worker.values.bins import Floats, LinearBins, Number, Octaves
from inspector.worker.values.moments import FloatMoments, IntegerMoments, Sums, joined, sums_of
from inspector.worker.values.views import Piece

_BLOCK = 1 << 17
_MOST_UNIQUE = 1 << 16
_MANY = 1 << 16
_ZERO = np.zeros(1)
PLACES = ("nan", "posinf", "neginf")
"""What is counted apart from finite numbers, each with its first place."""

Dequantize = Callable[[Array], Array]
"""Returns the float32 numbers that codes stand for."""


class Places:
    """How many elements are no finite numbers, and where the first ones stand."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(PLACES, 0)
        self.first: dict[str, int | None] = dict.fromkeys(PLACES)

    def add(self, piece: Piece, values: Array) -> None:
        """Note those of a piece, whose values have its shape."""
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


class Summary:
    """What all kinds have in common."""

    def __init__(self) -> None:
        self.places = Places()
        self.low: Number | None = None
        self.high: Number | None = None
        self.zeros = 0
        self.finite = 0
        self.octaves = Octaves()
        self.bins = LinearBins(whole=False)

    def add(self, piece: Piece) -> None:
        """Count the elements of a piece."""
        raise NotImplementedError  # each kind does so in its way

    def add_zeros(self, count: int) -> None:
        """Count zeros that are nowhere stored."""
        raise NotImplementedError  # as above

    def sums(self, repeats: int) -> Sums:
        """Return mean, deviation and norm."""
        raise NotImplementedError  # as above

    def unique(self) -> int | None:
        """Return how many different numbers there are, where that is known."""
        return None

    def widen(self, low: Number, high: Number) -> None:
        """Note numbers at the ends of the range."""
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)

    def document(self, repeats: int) -> dict[str, Any]:
        """Return all figures, each element counted as often as it is repeated."""
        mean, std, norm = self.sums(repeats)
        edges, counts = self.bins.result(repeats)
        exponent, octaves = self.octaves.result(repeats)
        return {
            "finite": self.finite * repeats,
            "zeros": self.zeros * repeats,
            **{name: count * repeats for name, count in self.places.counts.items()},
            **{f"first_{name}": place for name, place in self.places.first.items()},
            "min": self.low,
            "max": self.high,
            "mean": mean,
            "std": std,
            "norm": norm,
            "unique": self.unique(),
            "edges": edges,
            "counts": counts,
            "exponent": exponent,
            "octaves": octaves,
        }


class CodeSummary(Summary):
    """Elements of up to 16 bits, counted by their code."""

    def __init__(self, dtype: str, dequantize: Dequantize | None = None) -> None:
        super().__init__()
        self._bits, values = _all_values(dtype)
        self._values = values if dequantize is None else dequantize(values)
        self._is_whole = self._values.dtype.kind in "iub"
        self._counts = np.zeros(1 << self._bits, np.int64)
        self._odd = None if self._is_whole else ~np.isfinite(self._values.astype(np.float32))
        self._dtype = dtype

    @override
    def add(self, piece: Piece) -> None:
        counts = _counts_of(piece.flat, self._bits)
        if self._odd is not None and counts[self._odd].any():
            values = self._values[_bits_of(piece.codes)]
            self.places.add(piece, values)
        self._counts += counts

    @override
    def add_zeros(self, count: int) -> None:
        self._counts[np.nonzero(self._values == 0)[0][0]] += count

    @override
    def sums(self, repeats: int) -> Sums:
        self.bins, self.octaves = LinearBins(whole=self._is_whole), Octaves()
        numbers, counts = self._numbers()
        if not counts.size:
            return Sums(None, None, None)
        self.finite, self.zeros = int(counts.sum()), int(counts[numbers == 0].sum())
        self.widen(numbers[0].item(), numbers[-1].item())
        assert self.low is not None  # noqa: S101 - it was set just now
        assert self.high is not None  # noqa: S101 - the same
        self.bins.add(numbers, self.low, self.high, counts)
        self.octaves.add_counts(numbers.astype(np.float64), counts)
        return sums_of(numbers.tolist(), counts.tolist(), repeats)

    @override
    def unique(self) -> int | None:
        return len(self._numbers()[1]) if self._is_whole else None

    def _numbers(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the finite numbers that occur, in order, and how often."""
        seen = self._counts > 0
        if self._odd is not None:
            seen &= ~self._odd
        values = self._values[seen].astype(np.int64 if self._is_whole else np.float64)
        order = np.argsort(values)
        return values[order], self._counts[seen][order]


class FloatSummary(Summary):
    """float32 and float64."""

    def __init__(self, convert: Callable[[Array], Array] | None = None) -> None:
        super().__init__()
        self._convert = convert
        self._moments = FloatMoments()

    @override
    def add(self, piece: Piece) -> None:
        flat = piece.flat if self._convert is None else self._convert(piece.flat)
        is_odd = False
        for start in range(0, flat.size, _BLOCK):
            is_odd |= self._add_block(np.ascontiguousarray(flat[start : start + _BLOCK]))
        if is_odd:
            self.places.add(piece, piece.codes if self._convert is None else self._convert(piece.codes))

    def _add_block(self, block: Array) -> bool:
        low, high = block.min().item(), block.max().item()
        is_odd = not (np.isfinite(low) and np.isfinite(high))
        if is_odd:
            block = block[np.isfinite(block)]
            if not block.size:
                return True
            low, high = block.min().item(), block.max().item()
        self.count(block, low, high)
        return is_odd

    def count(self, block: Array, low: float, high: float) -> None:
        """Count finite numbers between two."""
        self.widen(low, high)
        self.finite += block.size
        if low == high == 0:  # holes of a file, and much of what was pruned
            self.zeros += block.size
            self._moments.add_zeros(block.size)
            self.bins.add(_ZERO, 0.0, 0.0, np.array([block.size], np.int64))
            return
        zeros = int(np.count_nonzero(block == 0))
        self.zeros += zeros
        values: Floats = block.astype(np.float64)
        self._moments.add(values, max(-low, high))
        self.bins.add(values, low, high)
        self.octaves.add_floats(block, zeros)

    @override
    def add_zeros(self, count: int) -> None:
        self._moments.add_zeros(count)
        _add_zeros(self, count, np.float64)

    @override
    def sums(self, repeats: int) -> Sums:
        return self._moments.result(repeats)


class IntegerSummary(Summary):
    """Integers of 32 and 64 bits."""

    def __init__(self) -> None:
        super().__init__()
        self.bins = LinearBins(whole=True)
        self._moments = IntegerMoments()
        self._unique: Array | None = np.zeros(0, np.int64)

    @override
    def add(self, piece: Piece) -> None:
        for start in range(0, piece.flat.size, _BLOCK):
            block = np.ascontiguousarray(piece.flat[start : start + _BLOCK])
            if block.dtype != np.uint64:
                block = block.astype(np.int64)
            low, high = int(block.min()), int(block.max())
            self.widen(low, high)
            self.finite += block.size
            self.zeros += int(np.count_nonzero(block == 0))
            self._moments.add(block, low)
            self.bins.add(block, low, high)
            self.octaves.add_integers(block)
            self._note_unique(block, low, high)

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
        self._moments.add_zeros(count)
        _add_zeros(self, count, np.int64)
        self._note_unique(np.zeros(1, np.int64), 0, 0)

    @override
    def sums(self, repeats: int) -> Sums:
        return self._moments.result(repeats)

    @override
    def unique(self) -> int | None:
        return None if self._unique is None else int(self._unique.size)


class ComplexSummary(Summary):
    """Complex numbers: the range and the histograms are those of their magnitudes."""

    def __init__(self, convert: Callable[[Array], Array] | None = None) -> None:
        super().__init__()
        self._convert = convert
        self._real, self._imag = FloatMoments(), FloatMoments()

    @override
    def add(self, piece: Piece) -> None:
        flat = piece.flat if self._convert is None else self._convert(piece.flat)
        is_odd = False
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            finite = np.isfinite(block)
            is_odd |= not finite.all()
            self._add_block(block[finite])
        if is_odd:
            self.places.add(piece, piece.codes if self._convert is None else self._convert(piece.codes))

    def _add_block(self, block: Array) -> None:
        if not block.size:
            return
        real, imag = block.real.astype(np.float64), block.imag.astype(np.float64)
        with np.errstate(over="ignore"):  # the magnitude of the largest numbers is none
            sizes = np.minimum(np.hypot(real, imag), np.finfo(np.float64).max)
        low, high = float(sizes.min()), float(sizes.max())
        self.widen(low, high)
        self.finite += block.size
        self.zeros += block.size - int(np.count_nonzero(sizes))
        self._real.add(real, float(np.abs(real).max()))
        self._imag.add(imag, float(np.abs(imag).max()))
        self.bins.add(sizes, low, high)
        self.octaves.add_floats(sizes)

    @override
    def add_zeros(self, count: int) -> None:
        self._real.add_zeros(count)
        self._imag.add_zeros(count)
        _add_zeros(self, count, np.float64)

    @override
    def sums(self, repeats: int) -> Sums:
        return joined(self._real.result(repeats), self._imag.result(repeats))

    @override
    def document(self, repeats: int) -> dict[str, Any]:
        mean = [self._real.result(repeats).mean, self._imag.result(repeats).mean]
        found = super().document(repeats)
        ends = {"min": None, "max": None, "min_abs": self.low, "max_abs": self.high}
        return {**found, **ends, "mean": None, "complex_mean": mean if self.finite else None}


def _add_zeros(summary: Summary, count: int, dtype: npt.DTypeLike) -> None:
    """Count zeros wherever all kinds count them alike."""
    summary.widen(0, 0)
    summary.zeros += count
    summary.finite += count
    summary.bins.add(np.zeros(1, dtype), 0, 0, np.array([count], np.int64))


class Coded(NamedTuple):
    """How quantized elements become numbers; None where they are what they are."""

    scale: float
    zero_point: float
    is_channel: bool = False

    def numbers(self, codes: Array) -> Array:
        """Return the numbers as torch computes them: in float32, but the scale of a channel is a double."""
        if self.is_channel:
            found: Array = codes.astype(np.float32) - np.float32(self.zero_point)
            return (found.astype(np.float64) * self.scale).astype(np.float32)
        apart = codes.astype(np.float64) - self.zero_point  # exact: codes have 32 bits at most
        return apart.astype(np.float32) * np.float32(self.scale)


def summary_for(dtype: str, coded: Coded | None = None, *, neg: bool = False, numel: int = _MANY) -> Summary:
    """Return what counts elements of a type; `neg` and a quantized type change what codes mean.

    A table of codes takes longer to go through than a small tensor.
    """
    if coded is not None:
        return FloatSummary(coded.numbers) if dtype == "qint32" else CodeSummary(dtype, coded.numbers)
    if dtype.startswith("complex"):
        convert = None if dtype != "complex32" else lambda codes: value_of_codes(codes, dtype)
        return ComplexSummary(convert)
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


def _counts_of(codes: Array, bits: int) -> npt.NDArray[np.int64]:
    """Return how often each code occurs; those of a byte are counted by pairs, which takes half as long."""
    if bits != 8 or codes.size % 2 or not codes.flags.c_contiguous:
        return np.bincount(_bits_of(codes), minlength=1 << bits)
    pairs = np.bincount(codes.view(np.uint16).astype(np.intp), minlength=1 << 16).reshape(256, 256)
    found: npt.NDArray[np.int64] = pairs.sum(axis=0) + pairs.sum(axis=1)
    return found


def _bits_of(codes: Array) -> npt.NDArray[np.intp]:
    kind: npt.DTypeLike = np.uint8 if codes.dtype.itemsize == 1 else np.uint16
    bits = codes.view(kind) if codes.dtype != kind else codes
    return bits.astype(np.intp)
