"""Several checkpoints in their order, such as the epochs of a training: how far each tensor went."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from math import prod
from typing import Literal, NamedTuple, cast

from inspector.child import Worker
from inspector.containers.walking import Found, checkpoints_in
from inspector.diff.compare import Chosen
from inspector.diff.content import Differences, has_elements
from inspector.diff.facts import marks_of
from inspector.diff.pairing import Pairing
from inspector.diff.records import Numbers
from inspector.diff.side import Side, open_side
from inspector.errors import (
    CancelledError,
    CheckpointError,
    ContainerError,
    ExportError,
    MissingFileError,
    PlanError,
)
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.tensors.dtypes import is_whole
from inspector.progress import Progress

SUFFIXES = (".pth", ".pt", ".ckpt", ".safetensors", ".bin", ".tar")
MOST_FILES = 1_000
_OF_MODEL = frozenset({"parameter", "buffer", "ema"})
_NUMBER = re.compile(r"[0-9]{1,15}")
_NUMBERED = ("epoch", "global_step", "step", "iteration", "iter", "num_steps")
"""What trainers call the number of a checkpoint, among its first values."""
_MOST_NESTED = 2
Unit = Literal["epoch", "global_step", "step", "iteration", "iter", "num_steps", "name", ""]
_END = re.compile(r"[./]")
_COUNTERS = frozenset(
    {
        "step",
        "steps",
        "global_step",
        "iteration",
        "iterations",
        "epoch",
        "n_averaged",
        "num_updates",
        "num_batches_tracked",
    }
)
"""What optimizers, norm layers, averages and trainers call a tensor of one element that counts."""


class _Desk(NamedTuple):
    """Who is told of the work, and the child that does it for all files."""

    progress: Progress
    worker: Worker


class Point(NamedTuple):
    """One tensor in one of the files.

    Attributes:
        step: Its distance from what it is in the file before; None in the first.
        drift: Its distance from what it is in the first file; None there.
        skipped: How many elements norm and drift leave out, since they are NaN or infinite here or there.
    """

    norm: float
    step: float | None
    drift: float | None
    skipped: int = 0
    step_skipped: int = 0

    def leaves_out(self, figure: str) -> bool:
        """Return whether a figure leaves elements out."""
        return bool(self.step_skipped if figure == "step" else self.skipped)


class SeriesRow(NamedTuple):
    """One tensor over all files.

    Attributes:
        points: What it is in each file; None where it is missing, of another shape, or cannot be read.
        is_counter: Whether it counts steps, or is a single number beside a model, such as `best_acc1`: it
            moves by itself, and by far more than any weight.
    """

    path: str
    numel: int
    points: tuple[Point | None, ...]
    is_counter: bool = False


class Series(NamedTuple):
    """All tensors of the first file that can be read over all files.

    Attributes:
        numbers: The number of each file: an epoch, a step; None for one that cannot be read.
        unit: What they are: what the files call them, `name` where only their names have one, or nothing
            where they are but counted.
        problems: Which files cannot be read, and why.
    """

    paths: tuple[str, ...]
    rows: tuple[SeriesRow, ...]
    numbers: tuple[float | None, ...] = ()
    unit: Unit = ""
    problems: tuple[tuple[int, str], ...] = ()


def series_paths(given: Sequence[str]) -> tuple[str, ...]:
    """Return the files of a series: those given, or the files and folders of checkpoints in a folder."""
    paths = list(given)
    if len(paths) == 1 and os.path.isdir(paths[0]):  # noqa: PTH112 - paths stay as they were given
        paths = _inside(paths[0], below=False)
        paths = paths if len(paths) > 1 else _inside(given[0], below=True)
    elif len(paths) == 1 and not os.path.lexists(paths[0]):
        raise MissingFileError("no such file or folder", where=paths[0])
    if len(paths) < 2:
        raise PlanError(
            "a series takes two checkpoints or more",
            where=", ".join(given),
            remedy="name a folder of epochs, or files",
        )
    if len(paths) > MOST_FILES:
        raise PlanError(f"a series takes {MOST_FILES:,} checkpoints at most", where=given[0])
    return tuple(paths)


def _inside(folder: str, *, below: bool) -> list[str]:
    found = list(checkpoints_in(folder, below=below))
    refused = next((row for row in found if row.problem and row.path == folder), None)
    if refused is not None:
        raise ContainerError(refused.problem, where=folder)
    return [row.path for row in found if row.path != folder and _is_one(row)]


def _is_one(row: Found) -> bool:
    return row.is_folder or row.path.endswith(SUFFIXES)  # no pickles of metrics


def compare_series(
    paths: Sequence[str], progress: Progress, choose: Callable[[Checkpoint], Chosen] | None = None
) -> Series:
    """Compare each checkpoint with the one before it, and with the first, leaving out what cannot be read."""
    errors: dict[int, CheckpointError] = {}
    counts: list[dict[str, float] | None] = [None] * len(paths)
    with ExitStack() as stack:
        desk = _Desk(progress, stack.enter_context(Worker()))
        start, first = _first_readable(paths, stack, errors, progress)
        rows, counts[start] = first.checkpoint.tensors, _counts_of(first.checkpoint)
        among = range(len(rows)) if choose is None else sorted(choose(first.checkpoint).tensors)
        wanted = [number for number in among if _counts(rows[number])]
        if choose is not None and not wanted:
            raise PlanError(
                "the first checkpoint has no such row with numbers", remedy="look at what show --filter finds"
            )
        columns: list[dict[int, Point]] = [{} for _ in paths]
        columns[start], before = _first_points(first, wanted, desk), start
        for place in range(start + 1, len(paths)):
            last = None if before == start else paths[before]
            try:
                columns[place], counts[place] = _column(first, last, paths[place], wanted, desk)
            except (CancelledError, ExportError):
                raise
            except CheckpointError as error:
                errors[place] = error
            else:
                before = place
    if len(errors) > len(paths) - 2:
        raise next(iter(errors.values()))
    points = ((number, tuple(column.get(number) for column in columns)) for number in wanted)
    has_model = any(row.role in _OF_MODEL for row in rows)
    unit, numbers = _numbering(paths, counts)
    return Series(
        tuple(paths),
        tuple(_row(rows[number], found, has_model=has_model) for number, found in points),
        numbers,
        unit,
        tuple((place, error.what) for place, error in sorted(errors.items())),
    )


def _first_readable(
    paths: Sequence[str], stack: ExitStack, errors: dict[int, CheckpointError], progress: Progress
) -> tuple[int, Side]:
    for place, path in enumerate(paths):
        try:
            return place, stack.enter_context(open_side(path, progress))
        except CancelledError:
            raise
        except CheckpointError as error:
            errors[place] = error
    raise errors[0]


def _column(
    first: Side, before: str | None, path: str, wanted: list[int], desk: _Desk
) -> tuple[dict[int, Point], dict[str, float]]:
    """Compare a file with the first, and with the one before it unless that is the first."""
    with open_side(path, desk.progress) as current:
        drifts = steps = _numbers(first, current, wanted, desk)
        if before is not None:
            with open_side(before, desk.progress) as last:
                steps = _along(first, last, current, wanted, desk)
        found = {number: _point(drift, steps.get(number)) for number, drift in drifts.items()}
        return found, _counts_of(current.checkpoint)


def _counts_of(checkpoint: Checkpoint) -> dict[str, float]:
    """Return what a file says of its own number."""
    found: dict[str, float] = {}
    for row in checkpoint.values:
        name = row.keys[-1] if row.keys else ""
        if name in _NUMBERED and len(row.keys) <= _MOST_NESTED and row.type in {"int", "float"}:
            with suppress(ValueError):
                found.setdefault(str(name), float(row.text))
    return found


def _numbering(
    paths: Sequence[str], counts: list[dict[str, float] | None]
) -> tuple[Unit, tuple[float | None, ...]]:
    """Return the numbers that files have, if they go up: their own, those in their names, or 1, 2, 3."""
    for name in _NUMBERED:
        numbers = [None if one is None else one.get(name) for one in counts]
        if _go_up([number for number, one in zip(numbers, counts, strict=True) if one is not None]):
            return cast("Unit", name), tuple(numbers)
    parts = [_NUMBER.findall(os.path.basename(path)) for path in paths]  # noqa: PTH119 - a text
    for place in range(min(map(len, parts))):
        numbers = [float(one[place]) for one in parts]
        if _go_up(numbers):
            return "name", tuple(numbers)
    return "", tuple(map(float, range(1, len(paths) + 1)))


def _go_up(numbers: Sequence[float | None]) -> bool:
    known = [number for number in numbers if number is not None and math.isfinite(number)]
    return len(known) == len(numbers) and all(one < other for one, other in pairwise(known))


def counts_steps(row: Tensor) -> bool:
    """Return whether a tensor is a single number that is named like a count of steps."""
    return prod(row.shape) == 1 and _END.split(row.path)[-1] in _COUNTERS


def _row(row: Tensor, points: tuple[Point | None, ...], *, has_model: bool) -> SeriesRow:
    numel = prod(row.shape)
    is_counter = counts_steps(row) and all(point.norm.is_integer() for point in points if point is not None)
    is_beside = numel == 1 and has_model and row.role == "other"
    return SeriesRow(row.path, numel, points, is_counter or is_beside)


def _point(drift: Numbers, step: Numbers | None) -> Point:
    if step is None:
        return Point(drift.norm_b, None, drift.distance, drift.skipped)
    return Point(drift.norm_b, step.distance, drift.distance, drift.skipped, step.skipped)


def _counts(row: Tensor) -> bool:
    return has_elements(row) and row.part_of is None and row.nbytes > 0 and not is_whole(row.dtype)


def _first_points(first: Side, wanted: list[int], desk: _Desk) -> dict[int, Point]:
    found = _compared(first, first, {number: (number, number) for number in wanted}, desk)
    return {number: Point(numbers.norm_b, None, None, numbers.skipped) for number, numbers in found.items()}


def _numbers(first: Side, current: Side, wanted: list[int], desk: _Desk) -> dict[int, Numbers]:
    partners = _partners(first, current, desk.progress)
    pairs = {number: (number, partners[number]) for number in wanted if number in partners}
    return _compared(first, current, pairs, desk)


def _along(first: Side, last: Side, current: Side, wanted: list[int], desk: _Desk) -> dict[int, Numbers]:
    """Compare what two later files have of the first one's tensors, by the first one's rows."""
    before, after = (_partners(first, side, desk.progress) for side in (last, current))
    both = (number for number in wanted if number in before and number in after)
    return _compared(last, current, {number: (before[number], after[number]) for number in both}, desk)


def _partners(one: Side, other: Side, progress: Progress) -> dict[int, int]:
    pairing = Pairing(one, other, progress)
    pairing.run()
    return {pair.a: pair.b for pair in reversed(pairing.pairs)}


def _compared(one: Side, other: Side, pairs: dict[int, tuple[int, int]], desk: _Desk) -> dict[int, Numbers]:
    rows, others = one.checkpoint.tensors, other.checkpoint.tensors
    desk.progress.start("comparing numbers", sum(rows[pair[0]].nbytes for pair in pairs.values()))
    asked = (
        (number, rows[a], others[b], (marks_of(one.tensors[a]), marks_of(other.tensors[b])))
        for number, (a, b) in pairs.items()
        if rows[a].shape == others[b].shape and has_elements(others[b])
    )
    with Differences(one, other, worker=desk.worker) as differences:
        found = dict(differences.compare_all(asked, desk.progress))
    return {number: numbers for number, numbers in found.items() if isinstance(numbers, Numbers)}
