"""The check of all bytes in words: how far it is, and what it found."""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.errors import CheckpointError
from inspector.report.words.results import as_lines, checked
from inspector.session.jobs.check import CHECK, check_of
from inspector.session.screen import CheckPage
from inspector.session.state import State
from inspector.units import escape_text

_MOST_NAMED = 4
_NOT_COMPARED = "torch.load does not compare checksums."


def check_page(state: State) -> CheckPage:
    """Return what the file page shows of the check."""
    job, found = state.job(CHECK), check_of(state)
    if job is None or job.status == "cancelled":
        return CheckPage(hint=_hint(state))
    if found is not None:
        lines = as_lines(checked(found, _MOST_NAMED))
        return CheckPage(tone="good" if found.is_intact else "bad", lines=tuple(lines))
    if job.error is None:
        return CheckPage(progress=job.progress)
    # What was not foreseen is a mistake of this program, and is reported as such.
    what = "" if isinstance(job.error, CheckpointError) else f"unexpected {type(job.error).__name__}: "
    return CheckPage(tone="bad", lines=(escape_text(f"{what}{job.error}"),))


def _hint(state: State) -> str:
    """Return what a check is for; what torch.load leaves undone is said of files that it loads."""
    document = state.ready
    if document is None:
        return ""
    checkpoint = document.checkpoint
    reading = f"Reading {'all of its files' if checkpoint.parts else 'the whole file'} shows whether"
    if not format_of(checkpoint.format).torch_loads:
        return f"{reading} nothing is missing, and whether it matches its checksums if the format has any."
    return f"{_NOT_COMPARED} {reading} it is as it was saved."
