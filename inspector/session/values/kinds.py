"""The kinds of jobs about values, and what they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from inspector.session.state import State
    from inspector.values.scan import Scan

STATISTICS, RANK, PICTURE, CELLS = "statistics", "rank", "picture", "cells"
SCAN, SAVE = "scan", "save values"


def selected_row(state: State) -> int | None:
    """Return the row of the selected tensor; None where nothing or something else is selected."""
    document, node = state.ready, state.selected
    if document is None or node is None or not 0 < node < len(document.tree.nodes):
        return None
    found = document.tree.nodes[node]
    return found.index if found.kind == "tensor" else None


def scan_of(state: State) -> Scan | None:
    """Return what the scan of all tensors found, or None."""
    job = state.job(SCAN)
    return None if job is None else cast("Scan | None", job.result)
