from __future__ import annotations

from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.session.operations import Job, Operations, start, stop
from inspector.session.state import State
from tests.sweep import table
from tests.unit.session.documents import AtOnce


class Desk:
    def __init__(self) -> None:
        self.runner = AtOnce()
        self.operations = Operations(self.runner)
        self.state = State()
        self.shown: list[tuple[str, ...]] = []

    def show(self, state: State) -> None:
        self.operations.keep({job.progress for job in state.jobs})
        self.state = state
        self.shown.append(tuple(f"{job.kind} {job.status}" for job in state.jobs))


def job(kind: str = "count", about: str | None = "/a.pth") -> Job:
    return Job(kind=kind, about=about, progress=Progress())


def fail(error: Exception):
    def work(_progress: Progress) -> None:
        raise error

    return work


@table(
    ("work", "status"),
    [(lambda _: 3, "done"), (fail(CancelledError()), "cancelled"), (fail(ZeroDivisionError()), "failed")],
)
def test_a_job_that_nobody_takes_the_answer_of_keeps_it(work, status: str) -> None:
    desk = Desk()
    start(desk, job(), work)
    assert desk.shown == [("count running",), (f"count {status}",)]
    (ended,) = desk.state.jobs
    assert (ended.result, ended.error is None) == ((3, True) if status == "done" else (None, False))
    stop(desk, "count")
    assert desk.state.jobs == (ended,)  # it does not run any more


def test_an_answer_is_taken_once_the_job_does_not_stand_any_more() -> None:
    desk, told = Desk(), []

    def take(answer: object) -> None:
        told.append((desk.state.jobs, answer))

    error = ZeroDivisionError()
    start(desk, job(), lambda _: 3, take, take)
    start(desk, job(), fail(error), take, take)
    assert told == [((), 3), ((), error)]


def test_of_a_kind_the_last_job_counts_and_others_stay() -> None:
    desk = Desk()
    desk.runner.waits = True
    first, second, other = job(), job(), job("other")
    for each in (first, other, second):
        start(desk, each, lambda _: 1)
    assert desk.shown[-1] == ("other running", "count running")
    assert [each.progress.cancelled for each in (first, other, second)] == [True, False, False]
    desk.runner.go_on()
    assert desk.shown[-1] == ("other running", "count running")
    stop(desk, "count")
    assert second.progress.cancelled
    stop(desk, "count")


def test_what_is_about_a_file_goes_with_it() -> None:
    desk = Desk()
    desk.runner.waits = True
    about_file, about_window = job(), job("probe", None)
    for each in (about_file, about_window):
        start(desk, each, lambda _: 1)
    desk.show(desk.state.without_file())
    assert [each.progress.cancelled for each in (about_file, about_window)] == [True, False]
    desk.runner.go_on()
    desk.runner.go_on()
    assert desk.shown[-1] == ("probe done",)
