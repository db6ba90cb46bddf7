"""The sum of any rows: of several selected ones, or of what a search found."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, compress, starmap
from operator import ge, ne
from typing import NamedTuple, cast

from inspector.report.outline.node import Tree
from inspector.report.outline.nodes import GROUP, Nodes

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
    nodes = cast("Nodes", tree.nodes)  # what `build_tree` makes
    ids, sums = sorted(node_ids), nodes.sums  # from top to bottom
    codes, ends = nodes.places.codes, nodes.places.ends
    # Only what runs in C looks at each row: a search finds half a million.
    reached = accumulate(map(ends.__getitem__, ids), max, initial=0)
    tops = list(compress(ids, map(ge, ids, reached)))
    stops = list(map(ends.__getitem__, tops))
    begun, ended = map(ne, tops, [-1, *stops]), map(ne, stops, [*tops[1:], -1])
    spans = list(
        zip(compress(tops, begun), compress(stops, ended), strict=True)
    )  # what follows one another is one
    kinds = list(map(codes.__getitem__, tops))
    groups = compress(tops, map(GROUP.__eq__, kinds))
    devices: dict[str, int] = {}
    for device, nbytes in chain.from_iterable(starmap(sums.devices, spans)):
        devices[device] = devices.get(device, 0) + nbytes
    twice, parameters_twice, is_exact = _shared(tree, nodes, tops)
    return Total(
        rows=len(ids),
        tensors=sum(map((0).__le__, kinds)) + sum(map(nodes.tensors, groups)),
        parameters=sum(starmap(sums.parameters, spans)) - parameters_twice,
        integers=sum(starmap(sums.integers, spans)),
        nbytes=sum(starmap(sums.nbytes, spans)) - twice,
        devices=tuple(sorted(devices, key=lambda device: -devices[device])),
        is_exact=is_exact,
    )


def _shared(tree: Tree, nodes: Nodes, tops: Sequence[int]) -> tuple[int, int, bool]:
    """Return the bytes and parameters that several of these branches share, and whether that is all."""
    nbytes = parameters = views = 0
    sums, ends = nodes.sums, nodes.places.ends

    def top_of(id_: int) -> int | None:
        place = bisect_right(tops, id_) - 1
        return tops[place] if place >= 0 and id_ < ends[tops[place]] else None

    for run in tree.runs if len(tops) > 1 else ():
        views += len(run.tensors)
        if views > _MOST_VIEWS:
            return nbytes, parameters, False
        places = [id_ for index in run.tensors if (id_ := tree.tensor_nodes[index]) >= 0]
        holders = {top for id_ in places if (top := top_of(id_)) is not None}
        nbytes += run.nbytes * max(len(holders) - 1, 0)
        counted = [id_ for id_ in places if sums.parameters(id_, ends[id_])]
        holding = {top: id_ for id_ in counted if (top := top_of(id_)) is not None}
        for id_ in list(holding.values())[1:]:
            share = run.nbytes / sums.nbytes(id_, ends[id_])
            parameters += round(sums.parameters(id_, ends[id_]) * share)
    return nbytes, parameters, True
