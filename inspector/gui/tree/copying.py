"""The selected rows as a spreadsheet takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTreeView

from inspector.gui.tree.selection import Rows
from inspector.quoting import pasted_cell

ROWS_A_PART = 25
"""A row that was never in sight takes 50 µs, a slice of a long list half a millisecond."""


def tsv_parts(view: QTreeView, rows: Rows, node_ids: Sequence[int]) -> Iterator[list[str]]:
    """Yield the lines of rows, some at once: the visible columns in order, below their titles."""
    header = view.header()
    places = [header.logicalIndex(place) for place in range(header.count())]
    columns = [column for column in places if not header.isSectionHidden(column)]
    lines = ["\t".join(str(rows.headerData(column, Qt.Orientation.Horizontal)) for column in columns)]
    for begin in range(0, len(node_ids), ROWS_A_PART):
        for node_id in node_ids[begin : begin + ROWS_A_PART]:
            texts = (pasted_cell(rows.text(node_id, column)) for column in columns)
            lines.append("\t".join(texts))
        yield lines
        lines = []
    if lines:
        yield lines
