"""What statistics say of a tensor."""

from __future__ import annotations

from typing import Any

from inspector.records import dataclass

Number = int | float
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The figures of one tensor, over its finite values unless it says otherwise.

    Attributes:
        numel: How many values there are.
        finite: How many of them are finite.
        zeros: How many are zero.
        nan: How many are no number.
        posinf: How many are infinite; of complex ones, infinite in a part.
        neginf: How many are minus infinity.
        first_nan: The index of the first that is no number.
        first_posinf: The index of the first that is infinite.
        first_neginf: The index of the first that is minus infinity.
        low: The least; of complex ones the least magnitude. None where there is none.
        high: The greatest, likewise.
        mean: Their mean; of complex ones None.
        complex_mean: The two parts of the mean of complex ones, else None.
        std: Their standard deviation with Bessel's correction; None for fewer than two.
        norm: The square root of the sum of their squares; None where that is larger than a float can be.
        unique: How many different ones there are, where that is known.
        edges: The edges of the bins of the linear histogram, one more than there are bins.
        counts: What is in them; a value on an edge belongs to the bin above it.
        exponent: The least power of two of the histogram of magnitudes.
        octaves: How many magnitudes lie between each power of two and the next.
        dead_rows: How many indices of the first dimension hold zeros and nothing else; None where unknown.
        is_complex: Whether they are complex, so that range and histograms are those of the magnitudes.
        is_dequantized: Whether they were computed from quantized elements.
        part: The part of the tensor that they are of, such as `._local_tensor`; empty for all of it.
        stored: The figures of the elements that are stored of a sparse tensor; None for others.
        only_stored: Whether these are they, since places that are named twice have no value of their own.
    """

    numel: int
    finite: int
    zeros: int
    nan: int
    posinf: int
    neginf: int
    first_nan: Index | None
    first_posinf: Index | None
    first_neginf: Index | None
    low: Number | None
    high: Number | None
    mean: float | None
    complex_mean: tuple[float | None, float | None] | None
    std: float | None
    norm: float | None
    unique: int | None
    edges: tuple[Number, ...]
    counts: tuple[int, ...]
    exponent: int
    octaves: tuple[int, ...]
    dead_rows: int | None
    is_complex: bool = False
    is_dequantized: bool = False
    part: str = ""
    stored: Statistics | None = None
    only_stored: bool = False

    @property
    def sparsity(self) -> float | None:
        """The share of zeros; None where there is nothing."""
        return self.zeros / self.numel if self.numel else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """How many dimensions a matrix really uses.

    Attributes:
        effective: The exponential of the entropy of its singular values, as shares of their sum.
        stable: The sum of their squares over the square of the largest.
        largest: The largest: the spectral norm.
        most: How many there are.
    """

    effective: float
    stable: float
    largest: float
    most: int


def build_statistics(found: dict[str, Any], request: dict[str, Any]) -> Statistics:
    """Return what a child process found."""
    is_complex = request["dtype"].startswith("complex")
    stored, mean = found.get("stored"), found.get("complex_mean")
    ends = ("min_abs", "max_abs") if is_complex else ("min", "max")
    return Statistics(
        **{name: found[name] for name in ("numel", "finite", "zeros", "nan", "posinf", "neginf")},
        first_nan=_index(found["first_nan"]),
        first_posinf=_index(found["first_posinf"]),
        first_neginf=_index(found["first_neginf"]),
        **{name: found[name] for name in ("mean", "std", "norm", "unique", "exponent", "dead_rows")},
        edges=tuple(found["edges"]),
        counts=tuple(found["counts"]),
        octaves=tuple(found["octaves"]),
        low=found[ends[0]],
        high=found[ends[1]],
        complex_mean=None if mean is None else (mean[0], mean[1]),
        is_complex=is_complex,
        is_dequantized=request.get("scale") is not None or request.get("axis") is not None,
        part=request.get("part", ""),
        stored=None if stored is None else build_statistics(stored, request),
        only_stored=found["of"] == "stored",
    )


def _index(found: list[int] | None) -> Index | None:
    return None if found is None else tuple(found)
