"""The map of modules as a table: the rows right below what it shows, the largest first."""

from __future__ import annotations

from typing import NamedTuple

from inspector.report.charts.modules import ModuleMap, kinds_text, share_text
from inspector.units import format_nbytes

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
    parts = page.coloring.parts(node, areas.end(node))
    tensors = f"{areas.tensors(node):,}"
    texts = (row.name, format_nbytes(nbytes), _share(page, nbytes), tensors, kinds_text(page, parts))
    return MapLine(node, texts, is_row=True, can_enter=bool(row.children))


def _other(page: ModuleMap, name: str, nbytes: int, tensors: str) -> MapLine:
    return MapLine(page.root, (name, format_nbytes(nbytes), _share(page, nbytes), tensors, ""))


def _share(page: ModuleMap, nbytes: int) -> str:
    return share_text(nbytes, page.areas.nbytes(page.root))
