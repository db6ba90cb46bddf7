"""Questions about the open file that take long to answer, such as whether all its bytes are intact."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from inspector.progress import Progress
from inspector.records import dataclass

if TYPE_CHECKING:
    from inspector.remap.compare.integrity import FileCheck
    from inspector.session.state import State

CHECK = "check"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileJob:
    """A question about the open file that takes long to answer.

    Attributes:
        label: What is done, in a few words.
        work: Answers it for a path, in a worker. The answer stays in the state for as long as the file.
    """

    label: str
    work: Callable[[str, Progress], object]


def _check(path: str, progress: Progress) -> FileCheck:
    from inspector.remap.compare.integrity import check_file  # noqa: PLC0415 - seldom asked for

    return check_file(path, progress)


FILE_JOBS = {CHECK: FileJob(label="reading every byte", work=_check)}


def check_of(state: State) -> FileCheck | None:
    """Return what a check of all bytes has found, or None."""
    job = state.job(CHECK)
    return None if job is None else cast("FileCheck | None", job.result)
