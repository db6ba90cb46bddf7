from __future__ import annotations

from inspector.progress import Progress
from inspector.session.export.page import ExportDraft, ExportPage, ExportResult, ExportWish
from inspector.session.export.work import Outcome
from inspector.session.operations import Job
from inspector.session.present.export import export_page
from inspector.session.screen import FailurePage
from inspector.session.state import EXPORT, ExportState, State
from tests.sweep import table

PROGRESS = Progress("copying")
STOPPING = Progress("copying")
STOPPING.cancel()
COPY = ExportDraft(wish=ExportWish(), kinds=(), destination="/b.pth", summary=())
CHANGE = ExportDraft(wish=ExportWish(kind="in-place"), kinds=(), destination="", summary=())
WEIGHTS = ExportWish(kind="weights")
RESULT = ExportResult(destination="/b.pth", lines=())
OUTCOME = Outcome(result=RESULT)
FAILURE = FailurePage(title="No copy", what="no room", where="", remedy="")


@table(
    ("export", "progress", "page"),
    [
        ({}, PROGRESS, ExportPage(stage="looking", title="Preparing the export", progress=PROGRESS)),
        ({"draft": COPY, "wish": WEIGHTS}, PROGRESS, "weights"),
        ({"draft": COPY}, None, ExportPage(stage="draft", draft=COPY)),
        ({"draft": COPY, "step": "write"}, PROGRESS, "Writing the copy"),
        ({"draft": CHANGE, "step": "write"}, PROGRESS, "Changing the file"),
        ({"step": "undo"}, STOPPING, "Undoing the change"),
        ({"draft": COPY, "step": "receipt", "outcome": OUTCOME}, PROGRESS, "Writing the receipt"),
        (
            {"draft": COPY, "step": "receipt", "outcome": OUTCOME},
            None,
            ExportPage(stage="done", draft=COPY, result=RESULT),
        ),
        (
            {"draft": COPY, "step": "write", "failure": FAILURE, "cancelled": True},
            None,
            ExportPage(stage="failed", draft=COPY, failure=FAILURE, cancelled=True),
        ),
    ],
)
def test_each_step_of_an_export_has_its_page(
    export: dict[str, object], progress: Progress | None, page: ExportPage | str
) -> None:
    jobs = () if progress is None else (Job(kind=EXPORT, about="/a.pth", progress=progress),)
    shown = export_page(State(export=ExportState(**{"step": "draft", **export}), jobs=jobs))
    if isinstance(page, ExportPage):
        assert shown == page
    elif page == "weights":
        assert (shown.stage, shown.draft.wish, shown.draft.destination) == ("looking", WEIGHTS, "/b.pth")
    else:
        assert (shown.stage, shown.title, shown.stopping) == ("running", page, progress is STOPPING)


def test_nobody_exports_at_first() -> None:
    assert export_page(State()) is None
