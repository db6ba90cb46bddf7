"""Runs the jobs of a window, and drops the results that come too late, by one rule.

The state holds the jobs, at most one of a kind. A job that leaves the state, because its file is closed or
another of its kind begins, is cancelled, and its result is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.jobs.job import Job, Status
from inspector.session.state import State
from inspector.session.view import TaskRunner

T = TypeVar("T")


class Desk(Protocol):
    """Holds the state of a window."""

    state: State
    runner: TaskRunner

    def show(self, state: State) -> None:
        """Take a new state and show it."""


def start(
    desk: Desk,
    job: Job,
    work: Callable[[Progress], T],
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
    work: Callable[[Progress], T],
    on_done: Callable[[T], None] | None = None,
    on_failed: Callable[[Exception], None] | None = None,
) -> None:
    """Run a job that is in the state already."""
    desk.runner.run(
        work, job.progress, partial(_on_done, desk, job, on_done), partial(_on_failed, desk, job, on_failed)
    )


def stop(desk: Desk, kind: str) -> None:
    """Stop a running job; its result is dropped."""
    job = desk.state.job(kind)
    if job is not None and job.status == "running":
        desk.show(desk.state.without_job(kind))


def cancel_left(old: State, new: State) -> None:
    """Cancel the jobs of one state that are not in the next."""
    for job in old.jobs:
        if not new.has(job):
            job.progress.cancel()


def _on_done(desk: Desk, job: Job, tell: Callable[[T], None] | None, result: T) -> None:
    _settle(desk, replace(job, status="done", result=result), tell and partial(tell, result))


def _on_failed(desk: Desk, job: Job, tell: Callable[[Exception], None] | None, error: Exception) -> None:
    status: Status = "cancelled" if isinstance(error, CancelledError) else "failed"
    _settle(desk, replace(job, status=status, error=error), tell and partial(tell, error))


def _settle(desk: Desk, ended: Job, tell: Callable[[], None] | None) -> None:
    if not desk.state.has(ended):
        return
    if tell is None:
        desk.show(desk.state.with_job(ended))
    else:
        desk.state = desk.state.without_job(ended.kind)
        tell()
