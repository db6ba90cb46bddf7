"""Reading all of a file to see whether its bytes are those that were saved, when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from inspector.errors import CancelledError, CheckpointError
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.session.screen import CheckPage, TaskRunner
from inspector.units import escape_text, format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.remap.compare.integrity import FileCheck

_MOST_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How far a check is, or what came of it.

    Attributes:
        progress: The running work, or None.
        result: What was found, or None.
        error: Why nothing could be found out, or empty.
    """

    progress: Progress | None = None
    result: FileCheck | None = None
    error: str = ""


class Checker:
    """Checks one file at a time; an answer about another file is dropped."""

    def __init__(self, runner: TaskRunner, show: Callable[[Check], None]) -> None:
        """Prepare.

        Args:
            runner: Runs work away from the main thread.
            show: Called with each new state of the check.
        """
        self._runner = runner
        self._show = show
        self._work: Progress | None = None

    def start(self, path: str) -> None:
        """Begin to read a file, in place of any other."""
        self.cancel()
        progress = self._work = Progress("reading every byte")
        self._show(Check(progress=progress))
        self._runner.run(
            lambda running: _check(path, running),
            progress,
            lambda result: self._settle(progress, Check(result=result)),
            lambda error: self._settle(progress, _failed(error)),
        )

    def cancel(self) -> None:
        """Stop it; nothing more is shown of it."""
        if self._work is not None:
            self._work.cancel()
            self._work = None

    def _settle(self, progress: Progress, check: Check) -> None:
        if self._work is progress:
            self._work = None
            self._show(check)


def check_page(check: Check) -> CheckPage:
    """Word a check."""
    if check.progress is not None:
        return CheckPage(progress=check.progress)
    if check.error:
        return CheckPage(tone="bad", lines=(check.error,))
    if check.result is None:
        return CheckPage()
    return CheckPage(tone="good" if check.result.is_intact else "bad", lines=tuple(_lines(check.result)))


def _lines(found: FileCheck) -> list[str]:
    lines = [f"{format_nbytes(found.nbytes)} were read; {format_count(found.checked, 'checksum')} compared."]
    if found.unchecked:
        amount = format_count(found.unchecked, "record")
        lines.append(f"The file has no checksum of {amount}: they are as long as they should be.")
    if found.is_intact:
        lines.append("Nothing is wrong.")
    lines += [f"{escape_text(row.path)}: {row.why}." for row in found.lost[:_MOST_NAMED]]
    if len(found.lost) > _MOST_NAMED:
        lines.append(f"And {len(found.lost) - _MOST_NAMED:,} more tensors.")
    lines += [f"Record {record.name}: {record.why}." for record in found.records[:_MOST_NAMED]]
    return lines


def _check(path: str, progress: Progress) -> FileCheck:
    from inspector.remap.compare.integrity import check_file  # noqa: PLC0415 - seldom asked for

    return check_file(path, progress)


def _failed(error: Exception) -> Check:
    if isinstance(error, CancelledError):
        return Check()
    if isinstance(error, CheckpointError):
        return Check(error=escape_text(str(error)))
    # Not foreseen, so a mistake of this program's: said as such, or the card would be busy for ever.
    return Check(error=escape_text(f"unexpected {type(error).__name__}: {error}"))
