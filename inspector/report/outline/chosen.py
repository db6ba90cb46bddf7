"""The sum of any rows: of several selected ones, or of what a search found."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inspector.report.outline.node import Node, Tree
from inspector.report.outline.nodes import Leaves, Nodes

_MOST_VIEWS = 100_000


class Total(NamedTuple):
    """How much rows hold; what they share, and what is below two of them, counts once.

    Attributes:
        nbytes: Their bytes.
        devices: The devices, by bytes.
        is_exact: Whether all that is shared was looked at; else the sums may be too large.
    """

    rows: int
    tensors: int
    parameters: int
    integers: int
    nbytes: int
    devices: tuple[str, ...]
    is_exact: bool


def total_of(tree: Tree, node_ids: Iterable[int]) -> Total:
    """Add up rows."""
    adder = _Adder(tree.nodes)
    ids = sorted(node_ids)  # from top to bottom
    if ids:
        adder.add(ids)
    twice, parameters_twice, is_exact = _shared(tree, adder.tops)
    devices = adder.devices
    return Total(
        rows=adder.rows,
        tensors=adder.tensors,
        parameters=adder.parameters - parameters_twice,
        integers=adder.integers,
        nbytes=adder.nbytes - twice,
        devices=tuple(sorted(devices, key=lambda device: -devices[device])),
        is_exact=is_exact,
    )


class _Adder:
    """Adds up rows from top to bottom, without what is below one that was added."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.rows = self.tensors = self.parameters = self.integers = self.nbytes = 0
        self.devices: dict[str, int] = {}
        self.tops: list[int] = []
        self._nodes, self._last = nodes, -1
        self._sums = nodes.sums if isinstance(nodes, Nodes) else None

    def add(self, ids: Sequence[int]) -> None:
        """Add rows: all at once where they are tensors, else one by one."""
        self.rows += len(ids)
        leaves = None if self._sums is None or ids[0] <= self._last else self._sums.of_leaves(ids)
        if leaves is not None:
            self._last = ids[-1]
            self.tops += ids
            self._take(len(ids), leaves)
            return
        for id_ in ids:
            if id_ > self._last:
                self.tops.append(id_)
                self._add_one(id_)

    def _add_one(self, id_: int) -> None:
        leaf = None if self._sums is None else self._sums.of_leaf(id_)
        if leaf is not None:  # rows are slow to make
            self._last = id_
            self._take(1, leaf)
            return
        node = self._nodes[id_]
        self._last = last_below(self._nodes, id_) if node.children else id_
        self._take(node.tensors, Leaves(node.parameters, node.integers, node.nbytes, node.devices))

    def _take(self, tensors: int, found: Leaves) -> None:
        self.tensors += tensors
        self.parameters += found.parameters
        self.integers += found.integers
        self.nbytes += found.nbytes
        for device, nbytes in found.devices:
            self.devices[device] = self.devices.get(device, 0) + nbytes


def last_below(nodes: Sequence[Node], id_: int) -> int:
    """Return the last row of a branch: ids are numbered from top to bottom."""
    while nodes[id_].children:
        id_ = nodes[id_].children[-1]
    return id_


def _shared(tree: Tree, tops: Sequence[int]) -> tuple[int, int, bool]:
    """Return the bytes and parameters that several of these branches share, and whether that is all."""
    nbytes = parameters = views = 0
    for run in tree.runs if len(tops) > 1 else ():
        views += len(run.tensors)
        if views > _MOST_VIEWS:
            return nbytes, parameters, False
        places = [id_ for index in run.tensors if (id_ := tree.tensor_nodes[index]) >= 0]
        holders = {top for id_ in places if (top := _top_of(tree.nodes, tops, id_)) is not None}
        nbytes += run.nbytes * max(len(holders) - 1, 0)
        counted = [id_ for id_ in places if tree.nodes[id_].parameters]
        holding = {top: id_ for id_ in counted if (top := _top_of(tree.nodes, tops, id_)) is not None}
        for id_ in list(holding.values())[1:]:
            node = tree.nodes[id_]
            parameters += round(node.parameters * run.nbytes / node.nbytes)
    return nbytes, parameters, True


def _top_of(nodes: Sequence[Node], tops: Sequence[int], id_: int) -> int | None:
    """Return which of some branches a row stands in."""
    place = bisect_right(tops, id_) - 1
    return tops[place] if place >= 0 and id_ <= last_below(nodes, tops[place]) else None
