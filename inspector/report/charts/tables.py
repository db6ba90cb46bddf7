"""The figures of charts as CSV (RFC 4180), the same numbers that are drawn."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from inspector.quoting import cell_text
from inspector.report.charts.bars import Chart
from inspector.report.charts.modules import ModuleMap, parts_of, path_shown, tensors_of
from inspector.report.charts.treemap import Cell

_BARS = ("chart", "bar", "part", "bytes", "share_of_bar", "capacity_bytes", "bytes_too_much")
_CELLS = ("path", "what", "tensors", "bytes", "share_of_file")


def charts_csv(charts: Iterable[Chart]) -> str:
    """Return a line for each segment of some charts."""
    lines: list[Sequence[object]] = [_BARS]
    for chart in charts:
        for bar in chart.bars:
            capacity = "" if bar.capacity_nbytes is None else bar.capacity_nbytes
            excess = "" if bar.capacity_nbytes is None else bar.excess_nbytes
            for part in bar.segments:
                share = _share(part.nbytes, bar.nbytes)
                lines.append((chart.title, bar.label, part.label, part.nbytes, share, capacity, excess))
    return _written(lines)


def map_csv(page: ModuleMap, cells: Iterable[Cell]) -> str:
    """Return a line for each cell of a map, with its bytes by what it is colored by."""
    total = page.areas.nbytes(0)
    kinds = [f"{page.coloring.by}:{kind.label}" for kind in page.coloring.kinds]
    lines: list[Sequence[object]] = [(*_CELLS, *kinds)]
    for cell in cells:
        facts = (path_shown(page.areas, cell.node), cell.what, tensors_of(page, cell), cell.nbytes)
        lines.append((*facts, _share(cell.nbytes, total), *parts_of(page, cell)))
    return _written(lines)


def _share(nbytes: int, total: int) -> str:
    return f"{nbytes / total:.6f}" if total else "0"


def _written(lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([[_cell(value) for value in line] for line in lines])
    return text.getvalue()


def _cell(value: object) -> object:
    """Return a cell that is no formula: names come from the file."""
    return cell_text(value) if isinstance(value, str) else value
