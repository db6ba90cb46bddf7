"""What `show --json --depth` says: the rows down to a level of the tree, and what the groups there hold."""

from __future__ import annotations

from collections.abc import Collection

from inspector.model.checkpoint import Checkpoint
from inspector.report.jsonable import Listed, row_text
from inspector.report.outline.node import Tree
from inspector.report.page import tree_rows


def cut_at(checkpoint: Checkpoint, tree: Tree, depth: int, only: Collection[int] | None = None) -> Listed:
    """Return the tensors and values of the rows that a tree shows down to a level, and its groups.

    Args:
        only: The ids of the rows that were searched for; None for all.
    """
    sought = None if only is None else frozenset(only)
    tensors, values, groups = list[int](), list[int](), list[str]()
    for id_, _ in tree_rows(tree, depth, only).rows:
        node = tree.nodes[id_]
        if node.kind == "group":
            groups.append(row_text(checkpoint, node))
        elif node.index >= 0 and (sought is None or id_ in sought):
            (tensors if node.kind == "tensor" else values).append(node.index)
    return Listed(
        tuple(checkpoint.tensors[index] for index in sorted(tensors)),
        tuple(checkpoint.values[index] for index in sorted(values)),
        tuple(groups),
    )
