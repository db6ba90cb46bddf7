"""What the window says when something could not be done."""

from __future__ import annotations

from inspector.errors import CheckpointError
from inspector.records import replace
from inspector.session.screen import FailurePage
from inspector.target.profile import Profile
from inspector.units import escape_text

CANNOT_OPEN = "This file cannot be opened"


def failure_page(error: Exception, title: str) -> FailurePage:
    """Return the page that explains an error."""
    if isinstance(error, CheckpointError):
        what, where = error.what, error.where or ""
        runs, remedy = _runs(error)
    else:
        # Not foreseen, so a mistake of this program's: said as such, never swallowed.
        what, where, runs = f"unexpected {type(error).__name__}: {error}", "", ""
        remedy = "please report this with the file's kind and size"
    return FailurePage(
        title=title, what=escape_text(what), where=escape_text(where), remedy=escape_text(remedy), runs=runs
    )


def _runs(error: CheckpointError) -> tuple[str, str]:
    """Return what loading would run all the same, and what to do."""
    if not error.programs:
        return "", error.remedy or ""
    from inspector.safety.unread import advice, judge_unread  # noqa: PLC0415 - most files can be opened

    seen = judge_unread(error)
    return "" if seen is None else seen.sentence, advice(error, seen)


def open_failure_page(error: Exception, path: str, target: Profile) -> FailurePage:
    """Return the page for a file that could not be opened, with the code that loads one of another format."""
    page = failure_page(error, CANNOT_OPEN)
    if not isinstance(error, CheckpointError):
        return page
    from inspector.diagnose.findings.unreadable import diagnose_failure  # noqa: PLC0415 - most files can be opened

    page = replace(
        page,
        title=next(
            (found.title for found in diagnose_failure(error) if found.severity != "note"), CANNOT_OPEN
        ),
    )
    from inspector.snippet.unopened import code_for_refused  # noqa: PLC0415 - as above

    return replace(page, code=code_for_refused(path, error, target))
