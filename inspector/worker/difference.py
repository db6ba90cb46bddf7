"""How tensors differ in numbers, from blocks of their elements.

Head: `pairs`, of each the names of both dtypes and how many bytes of elements both have; `rtol` and `atol`.
Blocks: as many elements of the first and of the second, in turn, those of one pair behind those of another.
Answer: `pairs`, of each the fields of `inspector.diff.records.Numbers`, `first` as the number of an element,
or `error`.

Elements of two dtypes are compared as float64, or complex128; whole numbers as they are, and a whole number
that no float64 is equals none. NaN equals NaN, and a complex number one whose two parts equal its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from inspector.values.decoding import PACKED, codes_of, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[Any]

_WHOLE = "iub"
_COMPLEX = "c"
_LARGEST = float(np.finfo(np.float64).max)


def answer(head: dict[str, Any], blocks: Iterator[bytes]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Compare all pairs."""
    answers, block, other, at, other_at = [], b"", b"", 0, 0
    with np.errstate(all="ignore"):
        for dtype, other_dtype, nbytes, other_nbytes in head["pairs"]:
            found, failure = Difference(dtype, other_dtype, head["rtol"], head["atol"]), ""
            left, other_left = nbytes, other_nbytes
            while left:
                if at == len(block):
                    block, other, at, other_at = next(blocks), next(blocks), 0, 0
                end, other_end = min(len(block), at + left), min(len(other), other_at + other_left)
                try:
                    found.add(block[at:end], other[other_at:other_end])
                except ValueError as error:  # of a type whose values nobody knows
                    failure = str(error)
                left, other_left = left - (end - at), other_left - (other_end - other_at)
                at, other_at = end, other_end
            answers.append({"error": failure} if failure else found.answer())
    yield {"pairs": answers}, b""


class Difference:
    """What is known of the difference so far."""

    def __init__(self, dtype: str, other: str, rtol: float, atol: float) -> None:
        self._dtypes = dtype, other
        self._rtol, self._atol = rtol, atol
        self._numel = self._differing = self._other_bits = self._not_finite = self._skipped = 0
        self._max_abs: float | None = None
        self._max_rel: float | None = None
        self._first: tuple[int, str, str] | None = None
        self._cosine = Cosine()
        self._distance = Length()

    def add(self, block: bytes, other: bytes) -> None:
        """Take as many elements of both."""
        raw, other_raw = decode(block, self._dtypes[0]), decode(other, self._dtypes[1])
        a, b = _common(raw, other_raw)
        equal = _are_equal(a, b) & _are_alike(raw, other_raw, a, b)
        if self._dtypes[0] == self._dtypes[1] and block != other:
            self._other_bits += int((equal & _other_bits(block, other, len(a), self._dtypes[0])).sum())
        if block != other or self._dtypes[0] != self._dtypes[1]:
            self._measure(a, b, equal, (raw if _is_wide(raw) else a, other_raw if _is_wide(other_raw) else b))
        self._cosine.add(a, b)
        finite = np.isfinite(a) & np.isfinite(b)
        self._skipped += int(len(a) - finite.sum())
        self._distance.add(np.where(finite, _apart(a, b), 0.0))
        self._numel += len(a)

    def answer(self) -> dict[str, Any]:
        """Return the head of the answer."""
        number, one, other = self._first or (None, "", "")
        return {
            "numel": self._numel,
            "differing": self._differing,
            "max_abs": 0.0 if self._max_abs is None and not self._not_finite else self._max_abs,
            "max_rel": 0.0 if self._max_rel is None and not self._differing else self._max_rel,
            "cosine": self._cosine.value(),
            "norm_a": self._cosine.lengths[0].value(),
            "norm_b": self._cosine.lengths[1].value(),
            "distance": self._distance.value(),
            "skipped": self._skipped,
            "first": number,
            "first_a": one,
            "first_b": other,
            "other_bits": self._other_bits,
            "not_finite": self._not_finite,
        }

    def _measure(self, a: Array, b: Array, equal: Array, shown: tuple[Array, Array]) -> None:
        finite = np.isfinite(a) & np.isfinite(b)
        apart = np.where(finite, _apart(a, b), 0.0)
        size = np.where(finite, np.abs(b.astype(np.float64) if b.dtype.kind in _WHOLE else b), 0.0)
        if finite.any():
            self._max_abs = max(self._max_abs or 0.0, min(float(apart.max()), _LARGEST))
        nonzero = size > 0
        if nonzero.any():
            largest = float((apart[nonzero] / size[nonzero]).max())
            self._max_rel = max(self._max_rel or 0.0, min(largest, _LARGEST))
        differing = ~equal
        if self._rtol or self._atol:
            differing &= ~(finite & (apart <= self._atol + self._rtol * size))
        count = int(differing.sum())
        self._differing += count
        self._not_finite += int((differing & ~finite).sum())
        if count and self._first is None:
            place = int(differing.argmax())
            self._first = self._numel + place, str(shown[0][place]), str(shown[1][place])


class Length:
    """The length of a vector whose elements come block by block and may be of any size.

    Each block is kept in units of its largest element: the square of 1e200 is no float64.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[float, float]] = []

    def add(self, vector: Array) -> tuple[Array, float]:
        """Take finite elements; return them in their unit, and that."""
        unit = float(np.abs(vector).max()) if len(vector) else 0.0
        vector = vector / (unit or 1.0)
        self._blocks.append((unit, float(np.vdot(vector, vector).real)))
        return vector, unit

    def parts(self) -> tuple[float, float]:
        """Return the unit of the largest block, and the length in it."""
        most = max((unit for unit, _ in self._blocks), default=0.0)
        squares = (square * (unit / most) ** 2 for unit, square in self._blocks if unit)
        return most, math.sqrt(math.fsum(squares))

    def value(self) -> float:
        """Return the length."""
        return min(math.prod(self.parts()), _LARGEST)


class Cosine:
    """The cosine of two vectors that come block by block."""

    def __init__(self) -> None:
        self.lengths = Length(), Length()
        self._dots: list[tuple[float, float, float]] = []

    def add(self, a: Array, b: Array) -> None:
        """Take the elements that are finite in both."""
        finite = np.isfinite(a) & np.isfinite(b)
        vectors = [_plain(vector if finite.all() else vector[finite]) for vector in (a, b)]
        (one, unit), (other, other_unit) = (
            length.add(vector) for length, vector in zip(self.lengths, vectors, strict=True)
        )
        self._dots.append((float(np.vdot(one, other).real), unit, other_unit))

    def value(self) -> float | None:
        """Return the cosine; None where one vector is 0, or there is none."""
        (most, length), (other_most, other_length) = (one.parts() for one in self.lengths)
        size = length * other_length
        if not size:
            return None
        dot = math.fsum(dot * (unit / most) * (other / other_most) for dot, unit, other in self._dots)
        return max(-1.0, min(1.0, dot / size))


def _common(a: Array, b: Array) -> tuple[Array, Array]:
    """Return both in a type that holds the elements of both."""
    if a.dtype == b.dtype and a.dtype.kind in _WHOLE:
        return (a.astype(np.uint8), b.astype(np.uint8)) if a.dtype.kind == "b" else (a, b)
    is_complex = _COMPLEX in {a.dtype.kind, b.dtype.kind}
    wide = np.complex128 if is_complex else np.float64
    return a.astype(wide), b.astype(wide)


def _are_equal(a: Array, b: Array) -> Array:
    if a.dtype.kind == _COMPLEX:
        return _are_equal(a.real, b.real) & _are_equal(a.imag, b.imag)
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def _are_alike(raw: Array, other: Array, a: Array, b: Array) -> Array | bool:
    """Return which elements that are equal as float64 are so in their own types, too."""
    if raw.dtype == other.dtype:
        return True
    if raw.dtype.kind in _WHOLE and other.dtype.kind in _WHOLE:
        same = raw.astype(np.uint64) == other.astype(np.uint64)
        return np.asarray(same & ((raw < 0) == (other < 0)))
    return _is_kept(raw, a) & _is_kept(other, b)


def _is_wide(raw: Array) -> bool:
    """Return whether elements are whole numbers of which some are no float64."""
    return raw.dtype.kind in _WHOLE and raw.dtype.itemsize == np.dtype(np.float64).itemsize


def _is_kept(raw: Array, wide: Array) -> Array | bool:
    """Return which elements are still the same number in a wider type: whole ones of 64 bits may not be."""
    if not _is_wide(raw):
        return True
    real = wide.real
    fits = real < 2.0 ** (64 if raw.dtype.kind == "u" else 63)
    return np.asarray(fits & (np.where(fits, real, 0.0).astype(raw.dtype) == raw))


def _plain(vector: Array) -> Array:
    return vector.astype(np.float64) if vector.dtype.kind in _WHOLE else vector


def _apart(a: Array, b: Array) -> Array:
    """Return how far elements are apart; of whole numbers without a detour over rounded ones."""
    if a.dtype.kind not in _WHOLE:
        return np.asarray(np.abs(a - b))
    wide = np.uint64 if a.dtype.kind == "u" else np.int64
    high, low = np.maximum(a, b).astype(wide), np.minimum(a, b).astype(wide)
    return (high.view(np.uint64) - low.view(np.uint64)).astype(np.float64)


def _other_bits(block: bytes, other: bytes, numel: int, dtype: str) -> Array:
    if dtype in PACKED:
        return np.asarray(codes_of(block, dtype) != codes_of(other, dtype))
    one, another = np.frombuffer(block, np.uint8), np.frombuffer(other, np.uint8)
    return np.asarray((one != another).reshape(numel, -1).any(axis=1))
