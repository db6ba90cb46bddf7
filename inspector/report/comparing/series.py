"""A series of checkpoints as a table, and as JSON."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from inspector.diff.series import Point, Series, SeriesRow, Unit
from inspector.report.jsonable import finite
from inspector.report.page import Columns, Page, page_of, plain_text
from inspector.report.page import Line as TextLine
from inspector.units import escape_text, format_count, unescaped_path

_DIGITS = ".4g"
_UNKNOWN = "\u2013"
_MARK = "*"
_WHOLE = "all of it"
_COUNTERS = "Counters and scores"


class Line(NamedTuple):
    """A module or a tensor over all files."""

    name: str
    points: tuple[Point | None, ...]


def modules_of(series: Series) -> tuple[Line, ...]:
    """Return all of it, then each module, as if its tensors were one vector; None where one is missing.

    Counters of steps and scores are left out: beside them nothing else could be seen to change.
    """
    groups: dict[str, list[tuple[Point | None, ...]]] = defaultdict(list)
    rows = [row for row in series.rows if not row.is_counter]
    for row in rows:
        cut = max(row.path.rfind("."), row.path.rfind("/"))
        groups[row.path[:cut] if cut > 0 else row.path].append(row.points)
    whole = Line(_WHOLE, _joined([row.points for row in rows], len(series.paths)))
    return (whole, *(Line(name, _joined(points, len(series.paths))) for name, points in groups.items()))


def counters_of(series: Series) -> tuple[Line, ...]:
    """Return what counts steps or is a score; those that go alike, as in an optimizer, as one line."""
    groups: dict[str, list[SeriesRow]] = defaultdict(list)
    for row in series.rows:
        if row.is_counter:
            groups[repr(row.points)].append(row)
    return tuple(Line(_counter_name(rows), rows[0].points) for rows in groups.values())


def _counter_name(rows: list[SeriesRow]) -> str:
    more = len(rows) - 1
    return f"{rows[0].path} and {more:,} more" if more else rows[0].path


def _joined(rows: list[tuple[Point | None, ...]], count: int) -> tuple[Point | None, ...]:
    return tuple(_sum([points[place] for points in rows]) for place in range(count))


def _sum(points: list[Point | None]) -> Point | None:
    known = [point for point in points if point is not None]
    if not known or len(known) < len(points):
        return None
    return Point(
        _length(point.norm for point in known) or 0.0,
        _length(point.step for point in known),
        _length(point.drift for point in known),
        sum(point.skipped for point in known),
        sum(point.step_skipped for point in known),
    )


def _length(parts: Iterable[float | None]) -> float | None:
    lengths = list(parts)
    known = [one for one in lengths if one is not None]
    return math.hypot(*known) if len(known) == len(lengths) else None


def format_series(series: Series) -> str:
    """Return the tables that `diff --series` prints as plain text, see `series_page`."""
    return plain_text(series_page(series))


def series_page(series: Series) -> Page:
    """Return the files, and for each figure a table: a row for each module, a column for each file."""
    head = [TextLine(format_count(len(series.paths), "checkpoint"), "heading")]
    header, problems = number_texts(series), dict(series.problems)
    for place, (number, path) in enumerate(zip(header, series.paths, strict=True)):
        head.append(TextLine(escape_text(path), "file", f"  {number}  "))
        if place in problems:
            head.append(TextLine(f"not read: {escape_text(problems[place])}", "bad", "     "))
    if series.unit:
        head.append(TextLine(f"Numbered by {NUMBERED[series.unit]}.", "aside"))
    modules = modules_of(series)
    tables = [
        [
            Columns(
                title,
                header,
                tuple(
                    (unescaped_path(line.name), tuple(_figure(point, field) for point in line.points))
                    for line in modules
                ),
            )
        ]
        for title, field in (
            ("Norm", "norm"),
            ("Distance from the one before", "step"),
            ("Distance from the first", "drift"),
        )
    ]
    counters = counters_of(series)
    if counters:
        counted = (
            (unescaped_path(line.name), tuple(_figure(one, "norm") for one in line.points))
            for line in counters
        )
        tables.append([Columns(_COUNTERS, header, tuple(counted))])
    skips = any(point is not None and point.skipped for line in modules for point in line.points)
    left_out = f"{_MARK} without the elements that are NaN or infinite in a file"
    return page_of(head, *tables, [TextLine(left_out, "aside")] * skips)


NUMBERED: dict[Unit, str] = {
    "epoch": "epoch",
    "global_step": "step",
    "step": "step",
    "iteration": "iteration",
    "iter": "iteration",
    "num_steps": "step",
    "name": "the number in the name",
    "": "checkpoint",
}
"""What the numbers of a series are."""


def number_texts(series: Series) -> tuple[str, ...]:
    """Return the number of each file; a file without one is a dash."""
    numbers = series.numbers or tuple(map(float, range(1, len(series.paths) + 1)))
    return tuple(_UNKNOWN if number is None else f"{number:.10g}" for number in numbers)


def _figure(point: Point | None, field: str) -> str:
    number = None if point is None else getattr(point, field)
    if point is None or number is None:
        return _UNKNOWN
    return f"{number:{_DIGITS}}{_MARK if point.leaves_out(field) else ''}"


def series_document(series: Series) -> dict[str, Any]:
    """Return the document of `diff --series --json`."""
    return {
        "schema": 1,
        "series": list(series.paths),
        "numbers": list(series.numbers),
        "numbered_by": series.unit or None,
        "unread": [{"path": series.paths[place], "message": why} for place, why in series.problems],
        "tensors": [
            {"path": row.path, "numel": row.numel, "counter": row.is_counter} | _columns(row.points)
            for row in series.rows
        ],
        "modules": [{"path": line.name} | _columns(line.points) for line in modules_of(series)[1:]],
        "total": _columns(modules_of(series)[0].points),
    }


def _columns(points: tuple[Point | None, ...]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = finite(
        {
            "norm": [None if point is None else point.norm for point in points],
            "to_previous": [None if point is None else point.step for point in points],
            "to_first": [None if point is None else point.drift for point in points],
            "skipped": [None if point is None else point.skipped for point in points],
            "skipped_to_previous": [None if point is None else point.step_skipped for point in points],
        }
    )
    return columns
