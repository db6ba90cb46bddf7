from __future__ import annotations

import pytest

from inspector.session.jobs.check import CHECK, FILE_JOBS, FileJob, check_of


def test_a_check_reads_the_open_file_and_its_answer_stays(real, copy) -> None:
    assert check_of(real._state) is None
    real.start_job(CHECK)
    real.select(1)
    found = check_of(real._state)
    assert found is not None
    assert (found.path, found.is_intact) == (str(copy), True)


def test_a_question_that_is_added_is_asked_followed_stopped_and_dropped_with_its_file(
    session, runner, monkeypatch
) -> None:
    """A later job is a row of the table: nothing else knows its name."""
    count = FileJob(label="counting", work=lambda path, progress: (progress.start("halfway", 2), path)[1])
    monkeypatch.setitem(FILE_JOBS, "count", count)
    session.open("/a.pth")
    session.start_job("count")
    (job,) = session._state.jobs
    assert (job.kind, job.status, job.result) == ("count", "done", "/a.pth")
    runner.waits = True
    session.start_job("count")
    (job,) = session._state.jobs
    assert (job.status, job.result, job.progress.label) == ("running", None, "counting")
    session.stop_job("count")
    assert (session._state.jobs, job.progress.cancelled) == ((), True)
    runner.go_on()
    assert session._state.jobs == ()
    session.start_job("count")
    (job,) = session._state.jobs
    session.close()
    assert (session._state.jobs, job.progress.cancelled) == ((), True)
    runner.go_on()
    assert session._state.jobs == ()


@pytest.mark.wide
def test_cancelling_an_export_leaves_a_check_running_and_the_other_way_round(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.start_job(CHECK)
    real.export(str(copy.with_name("out.pth")))
    real.cancel_export()
    assert not real.screen.check.progress.cancelled
    runner.go_on()
    assert real.screen.check.lines[-1] == "No damage found."
    assert real.screen.export.stage == "running"
    runner.go_on()
    assert real.screen.export.cancelled
    real.resume_export()
    real.export(str(copy.with_name("out.pth")))
    real.start_job(CHECK)
    real.stop_job(CHECK)
    assert (real.screen.check.progress, real.screen.export.progress.cancelled) == (None, False)
    runner.go_on()
    assert real.screen.export.stage == "done"


def test_an_answer_about_another_file_is_dropped(real, runner, copy) -> None:
    runner.waits = True
    real.start_job(CHECK)
    real.open(str(copy))
    runner.go_on()
    runner.go_on()
    assert (real.screen.phase, real.screen.check.lines) == ("ready", ())
