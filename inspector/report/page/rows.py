"""The rows of the tree as a block."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple, cast

from inspector.report.outline.node import Node, Tree
from inspector.report.outline.nodes import Nodes
from inspector.report.outline.sums import Places
from inspector.report.page.cells import cut_end, cut_middle, width_of
from inspector.units import format_nbytes

HEADER = ("Name", "Device", "Shape or value", "Type", "Size")
NOTHING_FOUND = "Nothing matches the filter."
_MOST_WIDE = (48, 24, 40, 32, 12)
_MOST_LEVELS = 12
Cells = tuple[str, str, str, str, str]


class TreeRows(NamedTuple):
    """Rows of a tree.

    Attributes:
        rows: The id and the level of each row, in the order of display.
    """

    tree: Tree
    rows: list[tuple[int, int]]
    sought: bool = False

    def plain(self) -> Iterator[str]:
        """Align the columns; one is as wide as its widest text, up to a limit, and longer texts are cut."""
        if not self.rows:
            if self.sought:
                yield NOTHING_FOUND
            return
        rows = (_cells(self.tree.nodes[id_], level) for id_, level in self.rows)
        cut = [HEADER, *(tuple(map(cut_end, row, _MOST_WIDE)) for row in rows)]
        widths = [max(map(width_of, column)) for column in zip(*cut, strict=True)]
        for *cells, size in cut:
            padded = [
                cell + " " * (width - width_of(cell)) for cell, width in zip(cells, widths[:-1], strict=True)
            ]
            yield "  ".join([*padded, size.rjust(widths[-1])]).rstrip()


def tree_rows(tree: Tree, depth: int | None = None, only: Collection[int] | None = None) -> TreeRows:
    """Return the rows of a tree down to a level, or the rows with these ids together with their ancestors."""
    return TreeRows(tree, list(_rows(tree, depth, only)), only is not None)


def _rows(tree: Tree, depth: int | None, only: Collection[int] | None) -> Iterator[tuple[int, int]]:
    """Yield rows from top to bottom without making any: ids are numbered so, and know where a branch ends."""
    shown = None if only is None else _with_ancestors(tree, only)
    places = _places(tree)
    ends: list[int] = []
    id_ = 1
    while id_ < len(tree.nodes):
        while ends and ends[-1] <= id_:
            ends.pop()
        if (shown is not None and id_ not in shown) or (depth is not None and len(ends) >= depth):
            id_ = places.ends[id_]
            continue
        yield id_, len(ends)
        ends.append(places.ends[id_])
        id_ += 1


def _with_ancestors(tree: Tree, only: Collection[int]) -> set[int]:
    shown: set[int] = set()
    parents = _places(tree).parents
    for found in only:
        id_ = found
        while id_ >= 0 and id_ not in shown:
            shown.add(id_)
            id_ = parents[id_]
    return shown


def _places(tree: Tree) -> Places:
    return cast("Nodes", tree.nodes).places  # a tree of a checkpoint has no other


def _cells(node: Node, level: int) -> Cells:
    indent = "  " * min(level, _MOST_LEVELS)
    return (indent + cut_middle(node.name, _MOST_WIDE[0] - len(indent)), *facts_of(node))


def facts_of(node: Node) -> tuple[str, str, str, str]:
    """Return what stands behind the name of a row."""
    if node.kind == "value":
        return "", node.text, node.type_text, ""
    if not node.tensors:
        return "", "", "", ""
    if node.kind == "tensor":
        return node.device_text, node.shape_text, node.type_text, format_nbytes(node.nbytes)
    below = ", ".join(filter(None, (node.type_text, node.shape_text)))
    return node.device_text, below, "", format_nbytes(node.nbytes)
