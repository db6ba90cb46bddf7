"""The rows of the tree, ready to be shown: modules by dotted name, slots under their parameter's name.

Built once, off the GUI thread, for a window that then only indexes into it: ids are numbers in the order of
display, so that a sorted list of ids is a list in display order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import cast

from inspector.model.build import collector_paused
from inspector.model.checkpoint import Checkpoint
from inspector.report.arrange import MOST_NAME, Arrangement, Group, Leaf, arrange
from inspector.report.damage import damage_marks
from inspector.report.outline.node import Node, NodeKind, Tree, shared_runs
from inspector.report.outline.nodes import GROUP, OTHERS, Named, Nodes, Places, Sums
from inspector.units import cut_text

__all__ = ["OTHERS", "Node", "NodeKind", "Tree", "build_tree"]
"""The rows themselves are made of what stands in `outline`."""

BUCKET_ROWS = 1000
"""A parent of more than twice as many children shows them in slices of this size: Qt lays out all of them."""


def build_tree(checkpoint: Checkpoint, colors: dict[str, int]) -> Tree:
    """Arrange a checkpoint's tensors and values as rows."""
    with collector_paused():
        arrangement = arrange(checkpoint)
        numbered = _Numbering(checkpoint, arrangement)
        runs = tuple(shared_runs(checkpoint))
        places = numbered.places
        sums = Sums(checkpoint, places, numbered.tensor_nodes, runs)
        nodes = Nodes(checkpoint, places, numbered.named, arrangement.name_of, sums)
    return Tree(
        nodes=nodes,
        tensor_nodes=numbered.tensor_nodes,
        value_nodes=numbered.value_nodes,
        colors=colors,
        runs=runs,
        marks=damage_marks(checkpoint, numbered.tensor_nodes),
    )


class _Numbering:
    """Walks over an arrangement depth first, in the order of display, and gives each row an id."""

    def __init__(self, checkpoint: Checkpoint, arrangement: Arrangement) -> None:
        self._arrangement = arrangement
        self.places = Places(array("i", [GROUP]), array("i", [-1]), array("i", [0]), array("i"))
        self.named: dict[int, Named] = {0: ("", "", False)}
        self.tensor_nodes = array("i", [-1]) * len(checkpoint.tensors)
        self.value_nodes = array("i", [-1]) * len(checkpoint.values)
        self._ends: dict[int, int] = {}
        stack = [(0, iter(enumerate(self._in_buckets(arrangement.root.below))))]
        while stack:
            id_, rows = stack[-1]
            below = self._number(id_, rows)
            if below:
                stack.append((len(self.places.codes) - 1, iter(enumerate(below))))
            else:
                self._ends[id_] = len(self.places.codes)
                stack.pop()
        self.places.ends.extend(range(1, len(self.places.codes) + 1))
        for id_, end in self._ends.items():
            self.places.ends[id_] = end

    def _number(self, parent: int, rows: Iterator[tuple[int, Group | Leaf]]) -> Sequence[Group | Leaf]:
        """Number rows up to the first that has rows below it, and return those."""
        codes, parents, places, _ = self.places
        parts, tensor_nodes = self._arrangement.parts, self.tensor_nodes
        for row, item in rows:
            id_ = len(codes)
            parents.append(parent)
            places.append(row)
            if isinstance(item, Group):
                codes.append(GROUP)
                below = self._group(id_, item)
                if below:
                    return below
                continue
            codes.append(item)
            if item < 0:
                self.value_nodes[~item] = id_
                continue
            tensor_nodes[item] = id_
            if item in parts:
                return self._in_buckets(parts[item])
        return ()

    def _group(self, id_: int, group: Group) -> Sequence[Group | Leaf]:
        """Name a group; return the rows below it if they are not only leaves, which get their ids here."""
        name = group.name
        if group.is_above and len(group.below) == 1:
            group, name = _end_of_chain(group)
        self.named[id_] = name, group.path, group.is_bucket
        below = group.below
        if len(below) > 2 * BUCKET_ROWS and not group.is_bucket:
            return self._in_buckets(below)
        if group.is_above or self._arrangement.parts:
            return below
        codes, parents, rows, _ = self.places
        tensor_nodes, value_nodes = self.tensor_nodes, self.value_nodes
        for row, leaf in enumerate(cast("list[Leaf]", below)):
            if leaf < 0:
                value_nodes[~leaf] = len(codes)
            else:
                tensor_nodes[leaf] = len(codes)
            codes.append(leaf)
            parents.append(id_)
            rows.append(row)
        self._ends[id_] = len(codes)
        return ()

    def _in_buckets(self, below: Sequence[Group | Leaf]) -> Sequence[Group | Leaf]:
        """Slice a very long list of rows."""
        if len(below) <= 2 * BUCKET_ROWS:
            return below
        buckets = []
        for start in range(0, len(below), BUCKET_ROWS):
            rows = list(below[start : start + BUCKET_ROWS])
            first = rows[0].name if isinstance(rows[0], Group) else self._arrangement.name_of(rows[0])
            name = f"{start:,} \u2026 {start + len(rows) - 1:,}"
            if first != str(start):  # as that of each item of a list is
                name += f"   ({cut_text(first, 40)} \u2026)"
            is_above = any(isinstance(row, Group) for row in rows)
            buckets.append(Group(name, "", rows, is_bucket=True, is_above=is_above))
        return buckets


def _end_of_chain(group: Group) -> tuple[Group, str]:
    """Follow groups that have nothing but one other group below; return the last, and the names of all."""
    name, end = group.name, group
    while (below := _only_group(end)) is not None:
        name, end = cut_text(f"{name}{end.path[-1:]}{below.name}", MOST_NAME), below
    return end, name


def _only_group(group: Group) -> Group | None:
    """Return the only row below a group if that is a group too."""
    if len(group.below) != 1 or group.is_bucket:
        return None
    (below,) = group.below
    return below if isinstance(below, Group) else None
