"""What a view does around the sorting of its rows, so that thousands of unfolded ones do not hold it up.

Qt lays all unfolded rows out anew, and follows each selected one. Here the tree is sorted while it is folded;
then its branches are unfolded in slices, and the same rows are selected as ranges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelectionModel, QObject

from inspector.gui.tree.folding import Unfolder
from inspector.gui.tree.model import TreeModel
from inspector.gui.tree.selection import nodes_of, rows_of
from inspector.gui.widgets.labels import blocked

if TYPE_CHECKING:
    from inspector.gui.tree.view import TensorTreeView

_MANY_ROWS = 300


class Sorting(QObject):
    """Folds a view before its model is sorted, and unfolds it afterwards, where much is unfolded."""

    def __init__(self, view: TensorTreeView, model: TreeModel, folds: Unfolder) -> None:
        super().__init__(view)
        self._view = view
        self._model = model
        self._folds = folds
        self._before: tuple[int | None, list[int]] | None = None
        model.sort_begun.connect(self._on_begun)
        model.sort_ended.connect(self._on_ended)
        folds.ended.connect(self.end)

    @property
    def is_busy(self) -> bool:
        """Whether the rows that were selected are still to be selected again."""
        return self._before is not None

    def leave(self) -> None:
        """Select nothing again: other rows are shown."""
        self._before = None

    def end(self) -> None:
        """Select the rows again that were selected before the tree was sorted."""
        if self._before is None:
            return
        (current, picked), self._before = self._before, None
        with blocked(self._view):
            self._view.set_current(current)
            rows, flags = rows_of(self._model, picked), QItemSelectionModel.SelectionFlag
            self._view.selectionModel().select(rows, flags.ClearAndSelect)

    def _on_begun(self) -> None:
        if self._view.model() is not self._model or not self._is_much():
            return
        if self._before is None:  # else the last sorting is not done yet
            picked = nodes_of(self._model, self._view.selectionModel().selection())
            self._before = self._view.current_node(), picked
        unfolded = self._folds.forget()
        with blocked(self._view):
            self._view.selectionModel().clear()
            self._view.collapseAll()
        self._folds.remember(unfolded)

    def _is_much(self) -> bool:
        rows = 0
        for node_id in self._folds.rows:
            rows += len(self._model.first_below(node_id, _MANY_ROWS))
            if rows >= _MANY_ROWS:
                return True
        return False

    def _on_ended(self) -> None:
        if self._before is not None:
            self._folds.unfold(())
