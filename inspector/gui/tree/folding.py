"""Which rows are unfolded: of a new tree, of what a search found, and on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QTreeView

from inspector.gui.tasks import Turns
from inspector.gui.tree.model import TreeModel

FIRST_ROWS = 32
"""About one page: how far a new tree unfolds by itself."""
ROWS_A_TURN = 500
"""So many rows Qt lays out in a few milliseconds."""
_LOOKS = 4
_MATCH_ROWS = 400


def first_to_unfold(model: TreeModel) -> list[int]:
    """Return what a new tree unfolds: along the largest branch first, as far as a page goes.

    A row that stands alone at the top is unfolded further: with nothing but it the tree would look empty.
    """
    top = model.below(0)
    if len(top) == 1 and FIRST_ROWS <= len(model.first_below(top[0], ROWS_A_TURN + 1)) <= ROWS_A_TURN:
        return [0, top[0]]
    budget = FIRST_ROWS - len(top)
    found, waiting = [0], _branches(model, 0) if budget > 0 else []
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
    branches = filter(model.shape.has_below, model.below(node_id))
    nodes = ((child, model.node(child)) for child in branches)
    return sorted((-node.nbytes, child) for child, node in nodes if node.tensors)


def rows_to_unfold(model: TreeModel, roots: Iterable[int], budget: int) -> tuple[list[int], list[int]]:
    """Return the nodes to unfold, level by level, while `budget` rows are not exceeded, and the others.

    What is too large is looked at too, as far as it takes to see that; after some of it, the rest is left.
    """
    level = list(roots)
    found: list[int] = []
    left: list[int] = []
    looks = _LOOKS * budget
    while level:
        deeper: list[int] = []
        for node_id in level:
            if not model.shape.has_below(node_id):
                continue
            children = model.first_below(node_id, budget + 1) if 0 < budget <= looks else []
            looks -= len(children)
            if not 0 < len(children) <= budget:
                left.append(node_id)
                continue
            budget -= len(children)
            found.append(node_id)
            deeper += filter(model.shape.has_below, children)
        level = deeper
    return found, left


def matches_to_unfold(model: TreeModel) -> list[int]:
    """Return the nodes to unfold of what a search found: some pages, and always the way to the first."""
    found, _ = rows_to_unfold(model, [0], _MATCH_ROWS)
    above = -1 if model.first_match is None else model.shape.parents[model.first_match]
    while above > 0:
        found.append(above)
        above = model.shape.parents[above]
    return found


class Unfolder(QObject):
    """Unfolds rows of a view in slices, and remembers which are unfolded.

    Qt asks for each row that it lays out: thousands at once would hold up the window.
    """

    ended = Signal()

    def __init__(self, view: QTreeView, model: TreeModel) -> None:
        super().__init__(view)
        self._view = view
        self._model = model
        self._turns = Turns(self)
        self.rows: set[int] = set()
        """All rows that are unfolded, or will be."""

    @property
    def is_busy(self) -> bool:
        """Whether some rows are still to be unfolded."""
        return self._turns.is_busy

    def forget(self) -> set[int]:
        """Return which rows are unfolded, and unfold no more of them."""
        rows, self.rows = self.rows, set()
        self._turns.stop()
        self._view.setUpdatesEnabled(True)
        return rows

    def unfold(self, node_ids: Iterable[int]) -> None:
        """Unfold more rows: a slice now, and the others in the turns of the event loop that follow."""
        self.remember(node_ids)
        self._turns.begin(self._slices(sorted(self.rows)))

    def remember(self, node_ids: Iterable[int]) -> None:
        """Take rows as unfolded; the root always is."""
        self.rows.update(node_id for node_id in node_ids if node_id)

    def _slices(self, node_ids: list[int]) -> Iterator[None]:
        """Unfold from top to bottom; within a slice from the innermost out, so that it is laid out once."""
        self._view.setUpdatesEnabled(False)
        rows, begin = 0, 0
        for place, node_id in enumerate(node_ids):
            index = self._model.index_of(node_id)
            if index.isValid() and not self._view.isExpanded(index):
                rows += self._model.rowCount(index)
            if rows >= ROWS_A_TURN:
                self._expand(node_ids[begin : place + 1])
                rows, begin = 0, place + 1
                yield
        self._expand(node_ids[begin:])
        self._view.setUpdatesEnabled(True)
        self.ended.emit()

    def _expand(self, node_ids: list[int]) -> None:
        for node_id in reversed(node_ids):
            if node_id in self.rows:  # and was not folded meanwhile
                index = self._model.index_of(node_id)
                if index.isValid():
                    self._view.expand(index)
