"""The sum of any rows: of several selected ones, or of what a search found."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from inspector.report.outline.node import Node, Tree
from inspector.report.outline.nodes import Nodes
from inspector.tuples import NamedTuple

_MOST_VIEWS = 100_000


class Total(NamedTuple):
    """How much rows hold; what they share, and what is below two of them, counts once.

    Attributes:
        rows: How many rows.
        tensors: How many tensors.
        parameters: How many parameters.
        integers: How many weights made of integers.
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
    tops: list[int] = []
    rows, last = 0, -1
    devices: dict[str, int] = {}
    tensors = parameters = integers = nbytes = 0
    sums = tree.nodes.sums if isinstance(tree.nodes, Nodes) else None
    for id_ in sorted(node_ids):  # from top to bottom
        rows += 1
        if id_ <= last:  # below the one before
            continue
        leaf = None if sums is None else sums.of_leaf(id_)
        if sums is not None and leaf is not None:  # a search may find a million, and rows are slow to make
            last = id_
            tops.append(id_)
            tensors += 1
            parameters += sums.parameters(id_, id_ + 1)
            integers += sums.integers(id_, id_ + 1)
            nbytes += leaf.nbytes
            devices[leaf.device] = devices.get(leaf.device, 0) + leaf.nbytes
            continue
        node = tree.nodes[id_]
        last = last_below(tree.nodes, id_) if node.children else id_
        tops.append(id_)
        tensors += node.tensors
        parameters += node.parameters
        integers += node.integers
        nbytes += node.nbytes
        for device, on_device in node.devices:
            devices[device] = devices.get(device, 0) + on_device
    twice, parameters_twice, is_exact = _shared(tree, tops)
    return Total(
        rows=rows,
        tensors=tensors,
        parameters=parameters - parameters_twice,
        integers=integers,
        nbytes=nbytes - twice,
        devices=tuple(sorted(devices, key=lambda device: -devices[device])),
        is_exact=is_exact,
    )


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
