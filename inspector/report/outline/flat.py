"""All tensors in one list, sorted by any column of the tree."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import NamedTuple, cast

from inspector.report.outline.node import Tree
from inspector.report.outline.nodes import Nodes
from inspector.report.outline.ranks import Key, rank_by

MOST_LISTED = 100_000
_BLOCK = 4096
"""So many rows are sorted at once: sorting holds up all other threads."""


class Order(NamedTuple):
    """How rows are sorted: by which column, -1 for the order of the file, and whether the other way round."""

    column: int = -1
    descending: bool = False


class FlatRows(NamedTuple):
    """The first rows of a flat list, and how many there are in all."""

    nodes: tuple[int, ...]
    total: int


def flat_rows(tree: Tree, matches: tuple[int, ...] | None, order: Order) -> FlatRows:
    """Return the rows that a search found, or all tensors, as one list.

    No row is made for it: there may be a million.
    """
    nodes = cast("Nodes", tree.nodes)  # what `build_tree` makes
    if matches is None:
        matches = tuple([id_ for id_, code in enumerate(nodes.places.codes) if code >= 0])
    if order.column < 0:
        return FlatRows(matches[:MOST_LISTED], len(matches))
    rank = rank_by(nodes, order.column, paths=True)
    blocks = _sorted_blocks(((rank(id_), id_) for id_ in matches), descending=order.descending)
    found = islice(merge(*blocks, reverse=order.descending), MOST_LISTED)
    listed = tuple([id_ for _, id_ in found])
    return FlatRows(listed, len(matches))


def _sorted_blocks(pairs: Iterator[tuple[Key, int]], *, descending: bool) -> list[list[tuple[Key, int]]]:
    """Sort block by block, to be merged as far as they are asked for."""
    blocks = []
    while block := list(islice(pairs, _BLOCK)):
        block.sort(reverse=descending)
        blocks.append(block)
    return blocks
