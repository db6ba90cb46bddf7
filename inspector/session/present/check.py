"""The check of all bytes in words: how far it is, and what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.errors import CheckpointError
from inspector.session.jobs.check import CHECK, check_of
from inspector.session.screen import CheckPage
from inspector.session.state import State
from inspector.units import escape_text, format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.remap.compare.integrity import FileCheck

_MOST_NAMED = 4


def check_page(state: State) -> CheckPage:
    """Return what the file page shows of the check."""
    job, found = state.job(CHECK), check_of(state)
    if job is None or job.status == "cancelled":
        return CheckPage()
    if found is not None:
        return CheckPage(tone="good" if found.is_intact else "bad", lines=tuple(_lines(found)))
    if job.error is None:
        return CheckPage(progress=job.progress)
    # What was not foreseen is a mistake of this program, and is reported as such.
    what = "" if isinstance(job.error, CheckpointError) else f"unexpected {type(job.error).__name__}: "
    return CheckPage(tone="bad", lines=(escape_text(f"{what}{job.error}"),))


def _lines(found: FileCheck) -> list[str]:
    lines = [f"{format_nbytes(found.nbytes)} read, {format_count(found.checked, 'checksum')} compared."]
    if found.unchecked:
        amount = format_count(found.unchecked, "record")
        lines.append(f"{amount} without a checksum: only the length was compared.")
    if found.is_intact:
        lines.append("No damage found.")
    lines += [f"{escape_text(row.path)}: {row.why}." for row in found.lost[:_MOST_NAMED]]
    if len(found.lost) > _MOST_NAMED:
        lines.append(f"And {len(found.lost) - _MOST_NAMED:,} more tensors.")
    lines += [f"Record {record.name}: {record.why}." for record in found.records[:_MOST_NAMED]]
    return lines
