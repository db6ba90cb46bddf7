"""Long work of a window, by one rule: at most one piece of a kind, and what is left behind tells nobody.

Work that is replaced by another of its kind, stopped, or belongs to what is closed is cancelled, and its
answer is dropped. The windows that compare ask `Operations` themselves. The main window keeps its jobs in the
state, where each is shown with its progress and its result: a job that leaves the state is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.records import dataclass, replace

if TYPE_CHECKING:
    from inspector.session.state import State
    from inspector.session.view import TaskRunner

T = TypeVar("T")
Work = Callable[[Progress], T]
Status = Literal["running", "done", "failed", "cancelled"]


class Operations:
    """The work of one window that is under way."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self._running: dict[str, Progress] = {}

    def run(
        self,
        kind: str,
        progress: Progress,
        work: Work[T],
        on_done: Callable[[T], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Run work in place of the last of its kind; call one of two functions, unless it is left behind."""
        self.stop(kind)
        self._running[kind] = progress
        self._runner.run(
            work,
            progress,
            partial(self._tell, kind, progress, on_done),
            partial(self._tell, kind, progress, on_failed),
        )

    def stop(self, kind: str) -> None:
        """Leave work of a kind behind."""
        progress = self._running.pop(kind, None)
        if progress is not None:
            progress.cancel()

    def keep(self, wanted: Collection[Progress] = ()) -> None:
        """Leave all other work behind."""
        for kind, progress in tuple(self._running.items()):
            if progress not in wanted:
                self.stop(kind)

    def _tell(self, kind: str, progress: Progress, tell: Callable[[T], None], answer: T) -> None:
        if self._running.get(kind) is progress:
            del self._running[kind]
            tell(answer)


# --- those of the main window -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of long work in the state; a kind without a job is idle.

    Attributes:
        kind: What it does; a second job of a kind replaces the first.
        about: The file that it is about, and is dropped with; None for what concerns the window.
        progress: How far it is; also tells two jobs of a kind apart.
    """

    kind: str
    about: str | None
    progress: Progress
    status: Status = "running"
    result: object = None
    error: Exception | None = None


class Desk(Protocol):
    """Holds the state of a window."""

    state: State
    operations: Operations

    def show(self, state: State) -> None:
        """Take a new state and show it."""


def start(
    desk: Desk,
    job: Job,
    work: Work[T],
    on_done: Callable[[T], None] | None = None,
    on_failed: Callable[[Exception], None] | None = None,
    *,
    state: State | None = None,
) -> None:
    """Show a job in place of the last one of its kind, and run it.

    Args:
        on_done: Takes the result and shows a new state; the job has left the state by then. Without it, the
            job stays there with its result.
        state: The state that the job begins in, if not the current one.
    """
    desk.show((state or desk.state).with_job(job))
    run(desk, job, work, on_done, on_failed)


def run(
    desk: Desk,
    job: Job,
    work: Work[T],
    on_done: Callable[[T], None] | None = None,
    on_failed: Callable[[Exception], None] | None = None,
) -> None:
    """Run a job that is in the state already."""

    def settle(ended: Job, tell: Callable[[], None] | None) -> None:
        if tell is None:
            desk.show(desk.state.with_job(ended))
        else:
            desk.state = desk.state.without_job(ended.kind)
            tell()

    def done(result: T) -> None:
        settle(replace(job, status="done", result=result), on_done and partial(on_done, result))

    def failed(error: Exception) -> None:
        status: Status = "cancelled" if isinstance(error, CancelledError) else "failed"
        settle(replace(job, status=status, error=error), on_failed and partial(on_failed, error))

    desk.operations.run(job.kind, job.progress, work, done, failed)


def stop(desk: Desk, kind: str) -> None:
    """Stop a running job; its result is dropped."""
    job = desk.state.job(kind)
    if job is not None and job.status == "running":
        desk.show(desk.state.without_job(kind))
