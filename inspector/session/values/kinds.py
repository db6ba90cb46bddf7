"""The kinds of jobs about values, and what they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspector.session.state import State
    from inspector.session.values.page import TakenPage
    from inspector.values.statistics import Scan

STATISTICS, RANK, PICTURE, CELLS = "statistics", "rank", "picture", "cells"
SCAN, SAVE, TAKE, SCALARS = "scan", "save values", "take out", "scalars"


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


def taken_page(state: State) -> TakenPage | None:
    """Return how far the files of rows that are dragged out are; None where nothing is dragged."""
    job = state.job(TAKE)
    if job is None:
        return None
    from inspector.session.values.page import TakenPage  # noqa: PLC0415 - most windows never drag

    if job.status == "running":
        return TakenPage(stage="writing", progress=job.progress)
    if job.status == "done":
        return TakenPage(stage="ready", progress=job.progress)
    from inspector.session.values.showing import job_error  # noqa: PLC0415 - as above

    return TakenPage(stage="failed", progress=job.progress, sentence=job_error(job))


def scalars_of(state: State) -> Mapping[int, str] | None:
    """Return the values of tensors of one element, by row; None before they were read."""
    job = state.job(SCALARS)
    return None if job is None else cast("Mapping[int, str] | None", job.result)
