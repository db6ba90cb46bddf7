"""The figures of charts as CSV (RFC 4180), the same numbers that are drawn."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inspector.quoting import cell_text
from inspector.report.charts.bars import Chart
from inspector.report.charts.modules import (
    ModuleMap,
    damage_in,
    kinds_text,
    parts_of,
    path_shown,
    share_text,
    tensors_of,
)
from inspector.report.charts.treemap import Box, Cell
from inspector.units import format_nbytes

_BARS = ("chart", "bar", "part", "bytes", "share_of_bar", "capacity_bytes", "bytes_too_much")
_CELLS = ("path", "what", "tensors", "bytes", "share_of_file", "damage")


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
    return written_csv(lines)


def map_csv(page: ModuleMap, cells: Iterable[Cell]) -> str:
    """Return a line for each cell of a map, with its bytes by what it is colored by."""
    total = page.areas.nbytes(0)
    kinds = [f"{page.coloring.by}:{kind.label}" for kind in page.coloring.kinds]
    lines: list[Sequence[object]] = [(*_CELLS, *kinds)]
    for cell in cells:
        facts = (path_shown(page.areas, cell.node), cell.what, tensors_of(page, cell), cell.nbytes)
        lines.append((*facts, _share(cell.nbytes, total), damage_in(page, cell), *parts_of(page, cell)))
    return written_csv(lines)


def _share(nbytes: int, total: int) -> str:
    return f"{nbytes / total:.6f}" if total else "0"


def written_csv(lines: Iterable[Sequence[object]]) -> str:
    """Return lines as CSV, with no formula in any cell: names come from the file."""
    text = io.StringIO()
    csv.writer(text).writerows([[_cell(value) for value in line] for line in lines])
    return text.getvalue()


def _cell(value: object) -> object:
    return cell_text(value) if isinstance(value, str) else value


# The map of modules as a table: the rows right below what it shows, the largest first.

TITLES = ("Name", "Size", "Share", "Tensors", "Kinds")
_MOST_LINES = 500


class MapLine(NamedTuple):
    """A line of the table.

    Attributes:
        node: The row; that of the map itself for what belongs to none, or to too many.
        texts: A text for each of `TITLES`, the last by what the map is colored by.
        is_row: Whether it stands for one row, which can be chosen.
    """

    node: int
    texts: tuple[str, ...]
    is_row: bool = False
    can_enter: bool = False


def table_of(page: ModuleMap) -> tuple[MapLine, ...]:
    """Return the lines: they add up to what the map shows."""
    areas, root = page.areas, page.root
    rows = sorted(areas.below(root), key=lambda row: -row[1])
    lines = [_line(page, node, nbytes) for node, nbytes in rows[:_MOST_LINES]]
    rest = rows[_MOST_LINES:]
    if rest:
        name, count = f"{len(rest):,} smaller rows", sum(areas.tensors(node) for node, _ in rest)
        lines.append(_other(page, name, sum(nbytes for _, nbytes in rest), f"{count:,}"))
    own = areas.own_nbytes(root) if root else 0
    if own:
        lines.append(_other(page, areas.tree.nodes[root].name, own, "1"))
    if not root and areas.loose_nbytes:
        lines.append(_other(page, "in no tensor", areas.loose_nbytes, ""))
    return tuple(lines)


def _line(page: ModuleMap, node: int, nbytes: int) -> MapLine:
    areas, row = page.areas, page.areas.tree.nodes[node]
    cell = Cell(node, "row", nbytes, Box(0, 0, 0, 0))
    kinds = ", ".join(filter(None, (kinds_text(page, parts_of(page, cell)), damage_in(page, cell))))
    tensors = f"{areas.tensors(node):,}"
    texts = (row.name, format_nbytes(nbytes), _listing_share(page, nbytes), tensors, kinds)
    return MapLine(node, texts, is_row=True, can_enter=bool(row.children))


def _other(page: ModuleMap, name: str, nbytes: int, tensors: str) -> MapLine:
    return MapLine(page.root, (name, format_nbytes(nbytes), _listing_share(page, nbytes), tensors, ""))


def _listing_share(page: ModuleMap, nbytes: int) -> str:
    return share_text(nbytes, page.areas.nbytes(page.root))
