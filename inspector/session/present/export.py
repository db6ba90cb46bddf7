"""The export dialog's page: which stage an export is at."""

from __future__ import annotations

from inspector.progress import Progress
from inspector.records import replace
from inspector.session.export.page import ExportPage
from inspector.session.state import EXPORT, ExportState, State

_TITLES = {"write": "Writing the copy", "undo": "Undoing the change", "receipt": "Writing the receipt"}
_CHANGING = "Changing the file"
_PREPARING = "Preparing the export"


def export_page(state: State) -> ExportPage | None:
    """Return what the dialog shows; None without an export."""
    export, job = state.export, state.job(EXPORT)
    if export is None:
        return None
    draft = export.draft
    if job is not None:
        return _looking(export, job.progress) if export.step == "draft" else _running(export, job.progress)
    if export.failure is not None:
        return ExportPage(stage="failed", draft=draft, failure=export.failure, cancelled=export.cancelled)
    if export.outcome is not None:
        return ExportPage(stage="done", draft=draft, result=export.outcome.result)
    return ExportPage(
        stage="draft",
        draft=draft,
        query=export.query,
        matches=export.matches,
        destination=export.destination,
    )


def _looking(export: ExportState, progress: Progress) -> ExportPage:
    draft = export.draft
    if draft is not None and export.wish is not None:
        draft = replace(draft, wish=export.wish)
    return ExportPage(
        stage="looking",
        draft=draft,
        title=_PREPARING if draft is None else "",
        query=export.query,
        matches=export.matches,
        destination=export.destination,
        progress=progress,
    )


def _running(export: ExportState, progress: Progress) -> ExportPage:
    draft = export.draft
    changes = export.step == "write" and draft is not None and draft.in_place
    title = _CHANGING if changes else _TITLES[export.step]
    return ExportPage(
        stage="running", draft=draft, title=title, progress=progress, stopping=progress.cancelled
    )
