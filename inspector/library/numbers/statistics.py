"""`inspector.stats`: the numbers in tensors, as statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.library import answers
from inspector.library.opened import Opened
from inspector.library.sources import CheckpointLike, opened_of, shown
from inspector.library.telling import Telling, Told, told
from inspector.overriding import override
from inspector.records import dataclass
from inspector.report.values import choose_tensors, statistics_document, statistics_text
from inspector.values.asking import ValueReader, require_numpy
from inspector.values.request import Requests, read_nbytes
from inspector.values.statistics import Number
from inspector.values.statistics import Statistics as TensorStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many numbers lie where.

    Attributes:
        edges: The edges of the bins, one more than there are bins.
        counts: What is in them; a number on an edge belongs to the bin above it.
    """

    edges: tuple[Number, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The statistics of one tensor, over its finite values, in double precision.

    Attributes:
        path: The tensor.
        dtype: Its element type.
        shape: Its sizes.
        numel: How many values there are.
        min: The least; None where there is none, and of complex ones.
        max: The greatest; None likewise.
        mean: Their mean; None likewise.
        std: Their standard deviation with Bessel's correction, as torch's; None for fewer than two.
        norm: The square root of the sum of their squares; None where that is no float.
        zeros: How many are zero.
        nan: How many are NaN.
        posinf: How many are infinite.
        neginf: How many are minus infinity.
        first_nan: The index of the first NaN; None without one.
        histogram: How many lie where.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    numel: int
    min: Number | None
    max: Number | None
    mean: float | None
    std: float | None
    norm: float | None
    zeros: int
    nan: int
    posinf: int
    neginf: int
    first_nan: tuple[int, ...] | None
    histogram: Histogram
    _document: dict[str, Any]
    _text: str

    to_dict = answers.to_dict
    __str__ = answers.text_of
    _repr_pretty_ = answers.show_in_notebook

    @override
    def __repr__(self) -> str:
        figures = (f"{name}={getattr(self, name)!r}" for name in ("min", "max", "mean", "std", "nan"))
        return f"<Statistics of {shown(self.path)}: {', '.join(figures)}>"


def stats(source: CheckpointLike, *paths: str, progress: Told = None) -> tuple[Statistics, ...]:
    """Compute the statistics of tensors, read from just their bytes.

    Args:
        source: A path, or an open checkpoint.
        paths: The tensors, each by its path, a group above it, or a pattern (`*` within a step, `**` across).
        progress: Called with each `Step` of the work; what it raises ends the work.

    Returns:
        One for each tensor, in the order of the file.

    Raises:
        PlanError: A path means no tensor.
        ValuesError: A tensor has no numbers, or nobody knows what they mean.
        ExportError: This Python has no NumPy.
        CheckpointError: The file cannot be read, or changed since it was opened.
    """
    with told(progress) as steps:
        opened = opened_of(source, steps)
        return read_statistics(opened, choose_tensors(opened.facts, paths), steps)


def read_statistics(opened: Opened, rows: Sequence[int], progress: Telling) -> tuple[Statistics, ...]:
    """Return the statistics of tensors by their numbers; errors as above."""
    require_numpy()
    requests = Requests(opened.located)
    sizes = [read_nbytes(requests.of(row)) for row in rows]
    progress.start_all("reading values", sum(sizes))
    found, done = [], 0
    with ValueReader() as reader:
        for row, nbytes in zip(rows, sizes, strict=True):
            found.append(_statistics(opened, row, reader.statistics(requests, row, progress)))
            done += nbytes
            progress.done = done  # what is short is not told of meanwhile
            progress.advance()
    return tuple(found)


def _statistics(opened: Opened, row: int, found: TensorStatistics) -> Statistics:
    document = statistics_document(opened.facts, row, found)
    return Statistics(
        path=document["tensor"],
        dtype=document["dtype"],
        shape=tuple(document["shape"]),
        **{name: document[name] for name in ("numel", "min", "max", "mean", "std", "norm")},
        **{name: document[name] for name in ("zeros", "nan", "posinf", "neginf")},
        first_nan=found.first_nan,
        histogram=Histogram(edges=found.edges, counts=found.counts),
        _document=document,
        _text=statistics_text(opened.facts.tensors[row], found),
    )
