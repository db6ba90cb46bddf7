"""The numbers in tensors: `inspector.stats` and `inspector.scan`, computed by a child process that stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspector.diagnose.findings.values import is_sound, value_findings
from inspector.library import answers
from inspector.library.sources import CheckpointLike, Opened, opened_of, shown
from inspector.library.telling import Telling, Told, told
from inspector.model.findings import Finding
from inspector.overriding import override
from inspector.records import dataclass
from inspector.report.values import (
    choose_tensors,
    scan_document,
    scan_text,
    statistics_document,
    statistics_text,
)
from inspector.values.asking import require_numpy, staying_reader
from inspector.values.request import Requests, read_nbytes
from inspector.values.statistics import Number, scan_checkpoint
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
    with staying_reader() as reader:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What reading all numbers of a file showed. It is true where it is sound.

    Attributes:
        sound: Whether all tensors could be read, and none holds NaN or infinities; best scores may.
        odd: What is odd, by the path of the tensor: `nan`, `inf`, `huge`, `zero`, `constant`, `dead-rows`.
        unread: Why a tensor could not be read, by its path.
        findings: The same in groups, worst first, each with what it means.
        tensors: How many tensors were read.
        nbytes: How many bytes that were.
    """

    sound: bool
    odd: Mapping[str, tuple[str, ...]]
    unread: Mapping[str, str]
    findings: tuple[Finding, ...]
    tensors: int
    nbytes: int
    _document: dict[str, Any]
    _text: str

    def __bool__(self) -> bool:
        """Return whether it is sound."""
        return self.sound

    to_dict = answers.to_dict
    __str__ = answers.text_of
    __repr__ = answers.repr_of
    _repr_pretty_ = answers.show_in_notebook


def scan(source: CheckpointLike, *, progress: Told = None) -> Scan:
    """Read all tensors of a file, and list what is odd about them: NaN, infinities, huge numbers, zeros.

    Args:
        source: A path, or an open checkpoint.
        progress: Called with each `Step` of the work; what it raises ends the work.

    Raises:
        ExportError: This Python has no NumPy.
        CheckpointError: The file cannot be read, or changed since it was opened.
    """
    require_numpy()
    with told(progress) as steps, staying_reader() as reader:
        opened = opened_of(source, steps)
        found = scan_checkpoint(opened.located, reader, steps)
    findings = value_findings(opened.facts, found)
    document = scan_document(opened.facts, found, findings)
    return Scan(
        sound=is_sound(found, findings),
        odd={one["path"]: tuple(one["what"]) for one in document["odd"]},
        unread={one["path"]: one["why"] for one in document["unread"]},
        findings=findings,
        tensors=document["scanned"],
        nbytes=found.nbytes,
        _document=document,
        _text=scan_text(opened.facts, found),
    )
