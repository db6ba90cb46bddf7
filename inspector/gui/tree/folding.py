"""Which rows are unfolded: of a new tree, of what a search found, and on demand."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from inspector.gui.tree.model import TreeModel

FIRST_ROWS = 32
"""About one page: how far a new tree unfolds by itself."""


def first_to_unfold(model: TreeModel) -> list[int]:
    """Return what a new tree unfolds: along the largest branch first, as far as a page goes."""
    budget = FIRST_ROWS - len(model.below(0))
    found, waiting = [0], _branches(model, 0)
    while waiting:
        _, node_id = heappop(waiting)
        children = model.below(node_id)
        if len(children) <= budget:
            budget -= len(children)
            found.append(node_id)
            for branch in _branches(model, node_id):
                heappush(waiting, branch)
    return found


def _branches(model: TreeModel, node_id: int) -> list[tuple[int, int]]:
    """Return the rows below a node that have others below them, the largest first, as (-bytes, id)."""
    nodes = ((child, model.node(child)) for child in model.below(node_id))
    return sorted((-node.nbytes, child) for child, node in nodes if node.children and node.tensors)


def rows_to_unfold(model: TreeModel, roots: Iterable[int], budget: int) -> tuple[list[int], list[int]]:
    """Return the nodes to unfold, level by level, while `budget` rows are not exceeded, and the others."""
    level = list(roots)
    found: list[int] = []
    left: list[int] = []
    while level:
        deeper: list[int] = []
        for node_id in level:
            if budget <= 0:  # the rest is not even looked at
                left.append(node_id)
                continue
            children = model.below(node_id)
            if len(children) > budget:
                left.append(node_id)
                continue
            budget -= len(children)
            found.append(node_id)
            deeper += (child for child in children if model.node(child).children)
        level = deeper
    return found, left
