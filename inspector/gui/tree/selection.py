"""Many selected rows at once, without a look at each.

Qt compares each range of a selection with each other when rows are selected, and looks through all of them
for each selected row: seconds for a few thousand branches. Here ranges of whole rows are made and read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from PySide6.QtCore import QItemSelection, QItemSelectionRange

from inspector.gui.tree.model import Column, TreeModel


def branches_in_sight(model: TreeModel, unfolded: Collection[int]) -> list[int]:
    """Return the unfolded rows of which all rows above are unfolded too, and the root."""
    found = {0: True}
    for node_id in sorted(unfolded):  # a parent's id is smaller than its children's
        found[node_id] = found.get(model.node(node_id).parent, False)
    return [node_id for node_id, is_in_sight in found.items() if is_in_sight]


def rows_below(model: TreeModel, branches: Iterable[int]) -> QItemSelection:
    """Return the rows right below some rows, with all of their columns."""
    rows, last = QItemSelection(), len(Column) - 1
    for node_id in branches:
        below = model.below(node_id)
        if below:
            rows.append(QItemSelectionRange(model.index_of(below[0]), model.index_of(below[-1], last)))
    return rows


def nodes_of(model: TreeModel, selection: QItemSelection) -> list[int]:
    """Return the nodes of selected rows, each once."""
    found: dict[int, None] = {}
    for part in selection.toList():
        below = model.below(model.node_id(part.parent()))
        found.update(dict.fromkeys(below[part.top() : part.bottom() + 1]))
    return list(found)
