"""All tensors in one list, sorted by any column of the tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import IntEnum
from heapq import merge
from itertools import islice

from inspector.report.outline.node import Node, Tree
from inspector.tuples import NamedTuple

MOST_LISTED = 100_000
_BLOCK = 4096
"""So many rows are sorted at once: sorting holds up all other threads."""
Key = list[tuple[int, int, str]]


class Column(IntEnum):
    """The columns of the tree in their default order."""

    NAME = 0
    DEVICE = 1
    SHAPE = 2
    TYPE = 3
    SIZE = 4
    VALUE = 5


class Order(NamedTuple):
    """How rows are sorted: by which column, -1 for the order of the file, and whether the other way round."""

    column: int = -1
    descending: bool = False


class FlatRows(NamedTuple):
    """The first rows of a flat list, and how many there are in all."""

    nodes: tuple[int, ...]
    total: int


def flat_rows(tree: Tree, matches: tuple[int, ...] | None, order: Order) -> FlatRows:
    """Return the rows that a search found, or all tensors, as one list."""
    nodes = tree.nodes
    if matches is None:
        matches = tuple([id_ for id_, node in enumerate(nodes) if node.kind == "tensor"])
    if order.column < 0:
        return FlatRows(matches[:MOST_LISTED], len(matches))
    rank = rank_by(order.column, paths=True)
    blocks = _sorted_blocks(((rank(nodes[id_]), id_) for id_ in matches), descending=order.descending)
    found = islice(merge(*blocks, reverse=order.descending), MOST_LISTED)
    listed = tuple([id_ for _, id_ in found])
    for block in blocks:
        block.clear()  # to let go of a million keys at once would hold up other threads too
    return FlatRows(listed, len(matches))


def rank_by(column: int, *, paths: bool = False) -> Callable[[Node], Key]:
    """Return what rows are compared by; by their paths instead of their names in a flat list."""
    if column == Column.NAME:
        return (lambda node: natural_key(node.path)) if paths else (lambda node: natural_key(node.name))
    return _RANKS[column]


def natural_key(text: str) -> Key:
    """Return a key that sorts `layer.2` before `layer.10`."""
    parts = re.split(r"(\d+)", text.casefold())
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


def _sorted_blocks(pairs: Iterator[tuple[Key, int]], *, descending: bool) -> list[list[tuple[Key, int]]]:
    """Sort block by block, to be merged as far as they are asked for."""
    blocks = []
    while block := list(islice(pairs, _BLOCK)):
        block.sort(reverse=descending)
        blocks.append(block)
    return blocks


def _by_shape(node: Node) -> Key:
    return natural_key(node.shape_text) if node.kind in ("tensor", "value") else [(0, node.parameters, "")]


def _by_type(node: Node) -> Key:
    return natural_key(node.type_text) if node.kind in ("tensor", "value") else [(0, node.tensors, "")]


_RANKS: dict[int, Callable[[Node], Key]] = {
    Column.DEVICE: lambda node: natural_key(node.device_text),
    Column.SHAPE: _by_shape,
    Column.TYPE: _by_type,
    Column.SIZE: lambda node: [(0, node.nbytes, "")],
    Column.VALUE: lambda node: natural_key(node.text),
}
