"""Many selected rows at once, without a look at each.

Qt compares each range of a selection with each other when rows are selected, and looks through all of them
for each selected row: seconds for a few thousand branches. Here ranges of whole rows are made and read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby

from PySide6.QtCore import QItemSelection, QItemSelectionRange

from inspector.gui.tree.list_model import ListModel
from inspector.gui.tree.model import Column, TreeModel

Rows = TreeModel | ListModel


def branches_in_sight(model: TreeModel, unfolded: Collection[int]) -> list[int]:
    """Return the unfolded rows of which all rows above are unfolded too, and the root."""
    found, parents = {0: True}, model.shape.parents
    for node_id in sorted(unfolded):  # a parent's id is smaller than its children's
        found[node_id] = found.get(parents[node_id], False)
    return [node_id for node_id, is_in_sight in found.items() if is_in_sight]


def rows_below(model: Rows, branches: Iterable[int]) -> QItemSelection:
    rows = QItemSelection()
    for node_id in branches:
        below = model.below(node_id)
        if below:
            rows.append(_range(model, below[0], below[-1]))
    return rows


def rows_of(model: TreeModel, node_ids: Iterable[int]) -> QItemSelection:
    """Return these rows, those that stand below each other as one range."""
    wanted: dict[int, set[int]] = {}
    for node_id in node_ids:
        wanted.setdefault(model.shape.parents[node_id], set()).add(node_id)
    rows = QItemSelection()
    for parent, chosen in wanted.items():
        for is_chosen, run in groupby(model.below(parent), chosen.__contains__):
            found = list(run)
            if is_chosen:
                rows.append(_range(model, found[0], found[-1]))
    return rows


def nodes_of(model: Rows, selection: QItemSelection) -> list[int]:
    """Return the nodes of selected rows, each once; those of one parent from top to bottom."""
    found: dict[int, None] = {}
    for part in sorted(selection.toList(), key=QItemSelectionRange.top):
        below = model.below(model.node_id(part.parent()))
        found.update(dict.fromkeys(below[part.top() : part.bottom() + 1]))
    return list(found)


def _range(model: Rows, first: int, last: int) -> QItemSelectionRange:
    return QItemSelectionRange(model.index_of(first), model.index_of(last, len(Column) - 1))
