"""Where the rows of a tree stand. To make a row takes 25 µs, and Qt asks this of each that it lays out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.report.outline.node import Node
from inspector.report.outline.nodes import Nodes


class Shape:
    """Which row is below which; ids are numbered from top to bottom."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._ends: Sequence[int]
        if isinstance(nodes, Nodes):
            self.parents: Sequence[int] = nodes.places.parents
            self.rows: Sequence[int] = nodes.places.rows
            self._ends = nodes.places.ends
        else:
            self.parents = [node.parent for node in nodes]
            self.rows = [node.row for node in nodes]
            self._ends = _ends_of(self.parents)

    def has_below(self, node_id: int) -> bool:
        return self._ends[node_id] > node_id + 1

    def last_below(self, node_id: int) -> int:
        return self._ends[node_id] - 1

    def below(self, node_id: int) -> Iterator[int]:
        child, ends = node_id + 1, self._ends
        while child < ends[node_id]:
            yield child
            child = ends[child]


def _ends_of(parents: Sequence[int]) -> list[int]:
    ends = list(range(1, len(parents) + 1))
    for node_id in range(len(parents) - 1, 0, -1):
        ends[parents[node_id]] = max(ends[parents[node_id]], ends[node_id])
    return ends
