"""The check of all bytes in words: how far it is, and what it found."""

from __future__ import annotations

from inspector.errors import CheckpointError
from inspector.report.words.results import as_lines, checked
from inspector.session.jobs.check import CHECK, check_of
from inspector.session.screen import CheckPage
from inspector.session.state import State
from inspector.units import escape_text

_MOST_NAMED = 4


def check_page(state: State) -> CheckPage:
    """Return what the file page shows of the check."""
    job, found = state.job(CHECK), check_of(state)
    if job is None or job.status == "cancelled":
        return CheckPage()
    if found is not None:
        lines = as_lines(checked(found, _MOST_NAMED))
        return CheckPage(tone="good" if found.is_intact else "bad", lines=tuple(lines))
    if job.error is None:
        return CheckPage(progress=job.progress)
    # What was not foreseen is a mistake of this program, and is reported as such.
    what = "" if isinstance(job.error, CheckpointError) else f"unexpected {type(job.error).__name__}: "
    return CheckPage(tone="bad", lines=(escape_text(f"{what}{job.error}"),))
