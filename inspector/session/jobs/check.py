"""The jobs that read the open file at the user's request, such as the check of every byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from inspector.progress import Progress
from inspector.records import dataclass

if TYPE_CHECKING:
    from inspector.remap.recover import FileCheck
    from inspector.session.state import State

CHECK = "check"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileJob:
    """Long work on the open file, whose result is shown as long as the file is open."""

    label: str
    work: Callable[[str, Progress], object]


def _check(path: str, progress: Progress) -> FileCheck:
    from inspector.remap.recover import check_file  # noqa: PLC0415 - seldom needed

    return check_file(path, progress)


FILE_JOBS = {CHECK: FileJob(label="reading every byte", work=_check)}


def check_of(state: State) -> FileCheck | None:
    """Return the result of the check of every byte, or None."""
    job = state.job(CHECK)
    return None if job is None else cast("FileCheck | None", job.result)
