"""What statistics say of a tensor, and what is odd about the tensors of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from inspector.errors import ValuesError
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.values.request import Request, Requests, read_nbytes

if TYPE_CHECKING:
    from inspector.values.asking import ValueReader

Number = int | float
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The figures of one tensor, over its finite values unless it says otherwise.

    Attributes:
        posinf: How many are infinite; of complex ones, infinite in a part.
        low: The least; of complex ones the least magnitude. None where there is none.
        mean: Their mean; of complex ones None.
        std: Their standard deviation with Bessel's correction; None for fewer than two.
        norm: The square root of the sum of their squares; None where that is larger than a float can be.
        counts: A value on an edge belongs to the bin above it.
        exponent: The least power of two of the histogram of magnitudes.
        octaves: How many magnitudes lie between each power of two and the next.
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


# --- all tensors of a file, read one after the other, and what is odd about some of them --------------------

HUGE_WEIGHT, HUGE = 1e4, 1e12
"""Magnitudes that no parameter, and nothing else that is trained with, reaches in health."""
_BLOCK = 200
_TRAINED = frozenset({"parameter", "ema"})
_NUMBERS = ("float", "bfloat", "complex", "q")
_WITHOUT = frozenset({"rng", "scheduler"})


class Oddity(StrEnum):
    """What is odd about the values of a tensor, worst first."""

    NAN = "nan"
    INF = "inf"
    HUGE = "huge"
    ZERO = "zero"
    CONSTANT = "constant"
    DEAD_ROWS = "dead-rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """One tensor of a scan.

    Attributes:
        statistics: Its figures, without histograms; None where it could not be read.
        spark: Its histogram as a few heights from 0 to 8.
    """

    row: int
    statistics: Statistics | None
    why: str = ""
    oddities: tuple[Oddity, ...] = ()
    spark: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """What reading all tensors of a file showed."""

    tensors: tuple[Scanned, ...]
    nbytes: int

    def with_oddity(self, *oddities: Oddity) -> list[Scanned]:
        """Return the tensors that are odd in one of these ways."""
        return [one for one in self.tensors if not set(oddities).isdisjoint(one.oddities)]

    @property
    def unread(self) -> list[Scanned]:
        """The tensors that could not be read."""
        return [one for one in self.tensors if one.statistics is None]


def scan_checkpoint(checkpoint: Checkpoint, reader: ValueReader, progress: Progress) -> Scan:
    """Read all tensors of a checkpoint, those that are parts of others with them."""
    found: dict[int, Scanned] = {}
    asked, same = _requests(checkpoint, found)
    progress.start("reading values", sum(map(read_nbytes, asked.values())))
    blocks = _blocks(asked)
    requests = Requests(checkpoint)
    for answer in reader.answers({"what": "scan", **requests.file}, progress, blocks):
        for one in answer.head.get("rows", ()):
            row = one["row"]
            found[row] = _scanned(checkpoint.tensors[row], asked[row], one)
    for row, first in same.items():
        seen = found[first]
        odd = () if seen.statistics is None else oddities_of(checkpoint.tensors[row], seen.statistics)
        found[row] = Scanned(
            row=row, statistics=seen.statistics, why=seen.why, oddities=odd, spark=seen.spark
        )
    tensors = tuple(found[row] for row in sorted(found))
    return Scan(tensors=tensors, nbytes=progress.done)


def _requests(
    checkpoint: Checkpoint, refused: dict[int, Scanned]
) -> tuple[dict[int, Request], dict[int, int]]:
    requests, asked, same = Requests(checkpoint), {}, {}
    known: dict[tuple[object, ...], int] = {}
    for row, tensor in enumerate(checkpoint.tensors):
        if tensor.part_of is not None and _is_auxiliary(tensor):
            continue
        place = tensor.storage, tensor.storage_offset, tensor.device
        view = (*place, tensor.dtype, tensor.shape, tensor.stride, tensor.layout, tensor.problem)
        if tensor.storage is not None and view in known:
            same[row] = known[view]
            continue
        try:
            asked[row] = requests.of(row) | {"row": row}
            known[view] = row
        except ValuesError as error:
            refused[row] = Scanned(row=row, statistics=None, why=error.what)
    return asked, same


def _is_auxiliary(tensor: Tensor) -> bool:
    """Return whether a part only says where elements belong; the whole is read with its values."""
    return tensor.layout == "strided" and str(tensor.keys[-1]) in {
        "indices",
        "values",
        "crow_indices",
        "col_indices",
        "ccol_indices",
        "row_indices",
        "scales",
        "zero_points",
    }


def _blocks(asked: dict[int, Request]) -> Iterator[bytes]:
    requests = list(asked.values())
    for start in range(0, len(requests), _BLOCK):
        yield json.dumps(requests[start : start + _BLOCK]).encode()


def _scanned(tensor: Tensor, request: Request, answer: dict[str, Any]) -> Scanned:
    if "error" in answer:
        return Scanned(row=answer["row"], statistics=None, why=answer["error"]["what"])
    found = answer["found"]
    statistics = build_statistics({**found, "counts": []}, request)
    return Scanned(
        row=answer["row"],
        statistics=statistics,
        oddities=oddities_of(tensor, statistics),
        spark=tuple(found["counts"]),
    )


def oddities_of(tensor: Tensor, found: Statistics) -> tuple[Oddity, ...]:
    """Return what is odd about the values of a tensor.

    Optimizer state, counters and masks are zero or constant in health, so that only weights are judged by it.
    """
    odd = []
    if found.nan:
        odd.append(Oddity.NAN)
    if found.posinf or found.neginf:
        odd.append(Oddity.INF)
    if _is_huge(tensor, found):
        odd.append(Oddity.HUGE)
    if tensor.role in _TRAINED and found.finite == found.numel and found.numel > 1:
        is_constant = not found.is_complex and found.low == found.high
        if found.zeros == found.numel:
            odd.append(Oddity.ZERO)
        elif is_constant:
            odd.append(Oddity.CONSTANT)
        elif found.dead_rows:
            odd.append(Oddity.DEAD_ROWS)
    return tuple(odd)


def _is_huge(tensor: Tensor, found: Statistics) -> bool:
    if tensor.role in _WITHOUT or not tensor.dtype.startswith(_NUMBERS) or found.low is None:
        return False
    most = HUGE_WEIGHT if tensor.role in _TRAINED else HUGE
    return max(abs(found.low), abs(found.high or 0)) > most
