from __future__ import annotations

import sys
import threading
import weakref

import pytest

from inspector.errors import CancelledError
from inspector.gui import tasks
from inspector.gui.tasks import ThreadRunner
from inspector.progress import Progress


@pytest.fixture
def runner(qapp):
    runner = ThreadRunner()
    yield runner
    runner.close()


def fail(*_args: object) -> None:
    pytest.fail("called")


def test_work_runs_elsewhere_and_its_result_comes_back_here(runner, qtbot):
    done = []

    def work(progress: Progress) -> str:
        progress.advance(3)
        return threading.current_thread().name

    progress = Progress("counting")
    runner.run(work, progress, lambda name: done.append((name, threading.current_thread())), fail)
    qtbot.waitUntil(lambda: bool(done))
    name, thread = done[0]
    assert name.startswith("checkpoint-work")
    assert thread is threading.main_thread()
    assert progress.done == 3


def test_any_failure_comes_back_too(runner, qtbot):
    failed = []

    def work(_progress: Progress) -> None:
        raise ZeroDivisionError("by hand")

    runner.run(work, Progress(), fail, failed.append)
    qtbot.waitUntil(lambda: bool(failed))
    assert isinstance(failed[0], ZeroDivisionError)


def test_cancelled_work_fails_as_such(runner, qtbot):
    failed, started = [], threading.Event()

    def work(progress: Progress) -> None:
        started.set()
        while True:
            progress.advance()

    progress = Progress()
    runner.run(work, progress, fail, failed.append)
    assert started.wait(60)
    progress.cancel()
    qtbot.waitUntil(lambda: bool(failed))
    assert isinstance(failed[0], CancelledError)


def test_no_work_waits_for_another(runner, qtbot):
    """An open and a check of slow disks must not keep anybody from exporting."""
    release, started, done = threading.Event(), threading.Semaphore(0), []

    def wait(_progress: Progress) -> None:
        started.release()
        release.wait(60)

    for _ in range(20):
        runner.run(wait, Progress(), lambda _: None, fail)
    for _ in range(20):
        assert started.acquire(timeout=60)
    runner.run(lambda _: "done", Progress(), done.append, fail)
    qtbot.waitUntil(lambda: done == ["done"])
    release.set()


def test_closing_stops_the_work_and_lets_nothing_come_back(qapp, qtbot):
    runner, started = ThreadRunner(), threading.Event()

    def work(progress: Progress) -> None:
        started.set()
        while True:
            progress.advance()

    runner.run(work, Progress(), fail, fail)
    assert started.wait(60)
    runner.close()
    runner.run(work, Progress(), fail, fail)
    qtbot.waitUntil(lambda: runner not in tasks._ALIVE)


def test_closing_waits_for_no_disk_that_hangs(qapp, qtbot):
    runner, started, release = ThreadRunner(), threading.Event(), threading.Event()

    def hang(_progress: Progress) -> bool:
        started.set()
        return release.wait(60)

    runner.run(hang, Progress(), fail, fail)
    assert started.wait(60)
    held = weakref.ref(runner)
    runner.close()
    assert not release.is_set()
    del runner
    assert held() is not None
    release.set()
    qtbot.waitUntil(lambda: held() is None)


def test_a_thread_gives_the_lock_back_soon(runner, qtbot):
    before, done = sys.getswitchinterval(), []
    try:
        sys.setswitchinterval(0.005)
        runner.run(lambda _: sys.getswitchinterval(), Progress(), done.append, fail)
        qtbot.waitUntil(lambda: bool(done))
    finally:
        sys.setswitchinterval(before)
    assert done == [pytest.approx(tasks.TURN_S)]
    assert tasks.TURN_S < 0.001
