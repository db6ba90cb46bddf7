"""All tensors in one list, sorted by any column of the tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache, partial
from heapq import merge
from itertools import islice
from typing import NamedTuple, cast

from inspector.report.colors import device_name
from inspector.report.outline.node import Node, Tree
from inspector.report.outline.nodes import GROUP, Nodes
from inspector.units import format_shape

# What rows are compared by where they are sorted by a column: a text for each, without making the row.
#
# Texts are compared by one call in C, of which even half a million are over soon.

Key = str
_LEAVES = frozenset({"tensor", "value"})
_NUMBER = re.compile(r"[0-9]+")
_MOST_DIGITS = 0xD7FF
"""The last character before those that are no characters: it stands for as many digits, and for more."""


class Column(IntEnum):
    """The columns of the tree in their default order."""

    NAME = 0
    DEVICE = 1
    SHAPE = 2
    TYPE = 3
    SIZE = 4
    VALUE = 5


def rank_by(nodes: Sequence[Node], column: int, *, paths: bool = False) -> Callable[[int], Key]:
    """Return what rows are compared by, by their ids; with `paths`, by these instead of their names."""
    by_path = paths and column == Column.NAME
    if isinstance(nodes, Nodes):
        return partial(_Ranks.path if by_path else _READERS[column], _Ranks(nodes))
    of_node = _of_path if by_path else _OF_NODES[column]
    return lambda id_: of_node(nodes[id_])


def natural_key(text: str) -> Key:
    """Return a key that sorts `layer.2` before `layer.10`."""
    return _NUMBER.sub(_in_order, text.casefold())


def number_key(number: int) -> Key:
    """Return a key that sorts a number before larger ones, and before all texts."""
    return _digits_key(f"{max(number, 0):d}")


def _in_order(found: re.Match[str]) -> str:
    return _digits_key(found[0])


def _digits_key(digits: str) -> str:
    digits = digits.lstrip("0")
    return f"\0{chr(min(len(digits), _MOST_DIGITS))}{digits}"  # more digits are a larger number


_of_few = lru_cache(maxsize=4096)(natural_key)
"""Dtypes, devices and shapes: there are few of them."""


class _Ranks:
    """Reads what a row is compared by from the places of rows and their sums; few rows are made for it."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._codes, self._ends = nodes.places.codes, nodes.places.ends

    def path(self, id_: int) -> Key:
        return natural_key(self._nodes.path(id_))

    def name(self, id_: int) -> Key:
        return natural_key(self._nodes.name(id_))

    def device(self, id_: int) -> Key:
        tensor = self._nodes.tensor(id_)
        return _of_device(self._nodes[id_]) if tensor is None else _of_few(device_name(tensor.device))

    def shape(self, id_: int) -> Key:
        if self._codes[id_] == GROUP:
            return number_key(self._nodes.sums.parameters(id_, self._ends[id_]))
        tensor = self._nodes.tensor(id_)
        return "" if tensor is None else _of_few(format_shape(tensor.shape))

    def type(self, id_: int) -> Key:
        tensor = self._nodes.tensor(id_)
        return _of_type(self._nodes[id_]) if tensor is None else _of_few(tensor.dtype)

    def size(self, id_: int) -> Key:
        is_value = self._codes[id_] < 0 and self._codes[id_] != GROUP
        return number_key(0 if is_value else self._nodes.sums.nbytes(id_, self._ends[id_]))

    def value(self, id_: int) -> Key:
        return "" if self._codes[id_] >= 0 else natural_key(self._nodes[id_].text)


_READERS: dict[int, Callable[[_Ranks, int], Key]] = {
    Column.NAME: _Ranks.name,
    Column.DEVICE: _Ranks.device,
    Column.SHAPE: _Ranks.shape,
    Column.TYPE: _Ranks.type,
    Column.SIZE: _Ranks.size,
    Column.VALUE: _Ranks.value,
}


# --- rows that are made -------------------------------------------------------------------------------------


def _of_path(node: Node) -> Key:
    return natural_key(node.path)


def _of_device(node: Node) -> Key:
    return _of_few(node.device_text)


def _of_shape(node: Node) -> Key:
    return _of_few(node.shape_text) if node.kind in _LEAVES else number_key(node.parameters)


def _of_type(node: Node) -> Key:
    return _of_few(node.type_text) if node.kind in _LEAVES else number_key(node.tensors)


_OF_NODES: dict[int, Callable[[Node], Key]] = {
    Column.NAME: lambda node: natural_key(node.name),
    Column.DEVICE: _of_device,
    Column.SHAPE: _of_shape,
    Column.TYPE: _of_type,
    Column.SIZE: lambda node: number_key(node.nbytes),
    Column.VALUE: lambda node: natural_key(node.text),
}


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
