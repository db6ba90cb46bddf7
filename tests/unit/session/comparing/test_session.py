from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from inspector.errors import CancelledError, WorkerError
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.comparing import session as module
from inspector.session.comparing.session import CompareSession, CompareView
from tests.builders.states import T, save_zip
from tests.unit.diff.test_compare import V, W
from tests.unit.diff.test_content import array
from tests.unit.session.comparing.test_compose import rows_in
from tests.unit.session.documents import AtOnce


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def view() -> MagicMock:
    return MagicMock(spec=CompareView)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    a = save_zip(tmp_path / "a.pt", {"w": T(W), "v": T(V), "lr": 1})
    return [a, save_zip(tmp_path / "b.pt", {"w": T(V), "v": T(V), "lr": 2})]


@pytest.fixture
def session(view, runner, paths) -> Iterator[CompareSession]:
    found = CompareSession(view, runner, *paths)
    yield found
    found.dispose()


def listed(session: CompareSession) -> list[int]:
    return rows_in(session.screen)


def test_files_are_compared_and_compared_again(session, view, runner, paths) -> None:
    assert session.screen.phase == "opening"
    runner.waits = True
    session.compare()
    assert session.screen.progress is not None
    session.compare()
    runner.go_on()  # the first was cancelled, and its end is nobody's
    assert session.screen.phase == "opening"
    runner.go_on()
    assert session.screen.phase == "ready"
    assert listed(session) == [0, 2]
    view.show_screen.assert_called_with(session.screen)
    runner.waits = False
    session.swap()
    assert session.paths == (paths[1], paths[0])
    assert session.screen.rows[2].a_text == "2"


def test_a_file_that_cannot_be_read_is_told(session, paths) -> None:
    Path(paths[1]).unlink()
    session.compare()
    assert session.screen.phase == "failed"
    assert paths[1] in f"{session.screen.failure.what} {session.screen.failure.where}"
    for nothing in (session.measure, session.copy_text, session.stop_measuring):
        nothing()
    session.choose_kind("values", chosen=True)
    session.select(0)
    assert session.screen.phase == "failed"


def test_a_failure_that_comes_too_late_is_dropped(session, runner, paths) -> None:
    runner.waits = True
    session.compare()
    session.compare()
    Path(paths[1]).unlink()
    runner.go_on()
    assert session.screen.phase == "opening"


def test_the_list_is_narrowed(session) -> None:
    session.compare()
    session.choose_kind("value", chosen=True)
    assert listed(session) == [2]
    session.select(2)
    session.choose_kind("values", chosen=True)
    assert listed(session) == [0, 2]
    assert session.screen.selection.row == 2
    session.choose_kind("value", chosen=False)
    assert session.screen.selection is None
    session.choose_kind("values", chosen=False)
    session.show_equal(shown=True)
    assert listed(session) == [0, 1, 2]
    session.compare()
    assert listed(session) == [0, 1, 2]
    session.show_equal(shown=False)
    assert listed(session) == [0, 2]


def test_a_search_narrows_the_list_and_stays(session, view) -> None:
    session.compare()
    session.search("lr")
    assert (listed(session), session.screen.query) == ([2], "lr")
    session.compare()
    assert listed(session) == [2]
    view.reset_mock()
    session.search("lr")
    assert not view.show_screen.called
    session.search("")
    assert listed(session) == [0, 2]


def test_very_many_rows_are_arranged_beside_the_window(session, runner, monkeypatch) -> None:
    session.compare()
    monkeypatch.setattr(module, "_MANY", 1)
    runner.waits = True
    session.show_equal(shown=True)
    session.choose_kind("value", chosen=True)
    runner.go_on()  # the first choice is no longer the last
    assert listed(session) == [0, 2]
    runner.go_on()
    assert listed(session) == [2]


def test_all_numbers_are_compared_by_themselves(session, runner) -> None:
    runner.waits = True
    session.compare()
    runner.go_on()
    assert session.screen.measuring is not None
    session.measure()  # it runs already
    assert len(runner.waiting) == 1
    session.select(0)  # nor does that stop it
    runner.go_on()
    assert session.screen.measuring is None
    assert session.screen.selection.numbers.startswith("4 of 4 elements differ")
    assert session.screen.measured.startswith("All tensors: relative difference 0.5")
    session.measure()  # all is known
    assert not runner.waiting


def test_large_files_are_read_for_their_numbers_when_somebody_asks(session, monkeypatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE_NBYTES", 7)
    session.compare()
    assert (session.screen.measured, session.screen.can_measure) == ("", "Compare numbers (32 B)")
    session.measure()
    assert session.screen.measured
    assert session.screen.can_measure == ""


def test_rows_are_sorted_by_what_differs_most(session) -> None:
    session.compare()
    session.show_equal(shown=True)
    session.sort("relative", descending=True)
    assert listed(session) == [0, 1, 2]
    session.sort("relative", descending=False)
    assert listed(session) == [1, 0, 2]  # what has no figure comes last, either way
    assert session.screen.order == ("relative", False)
    session.compare()
    assert session.screen.order == ("relative", False)


def test_numbers_of_arrays_are_compared(view, runner, tmp_path) -> None:
    paths = [
        save_zip(tmp_path / f"{n}.pt", {"x": array(x)}) for n, x in (("c", [1.0, 2.0]), ("d", [1.0, 4.0]))
    ]
    session = CompareSession(view, runner, *paths)
    session.compare()
    session.select(0)
    assert session.screen.selection.numbers.startswith("1 of 2 elements differ, by at most 2")
    facts = {fact.label: (fact.a, fact.differs) for fact in session.screen.selection.facts}
    assert facts == {"Path": ("x", False), "Value": ("float64 2", False), "Values": ("differs", True)}
    session.dispose()


def test_what_is_stopped_shows_what_is_known_and_can_go_on(session, runner, monkeypatch) -> None:
    session.compare()
    real, known = module.Measuring.measure, dict(session._measuring.found)
    session._measuring.found.clear()
    session._on_not_measured(CancelledError())
    runner.waits = True

    def measure(measuring, pairs, progress) -> None:
        first = next(pair for pair in pairs if pair.a == 0)
        measuring.found[first] = known[first]
        progress.cancel()
        progress.advance()

    session._state = replace(session._state, found={}, figures=())
    with monkeypatch.context() as patch:
        patch.setattr(module.Measuring, "measure", measure)
        session.measure()
        runner.go_on()
    session._state = replace(session._state, measuring=Progress())
    session.stop_measuring()
    assert session.screen.measuring is None
    while runner.waiting:
        runner.go_on()
    assert session.screen.measured.endswith("(1 pair left)")
    assert session.screen.can_measure
    assert real is module.Measuring.measure
    session.measure()
    while runner.waiting:
        runner.go_on()
    assert session.screen.can_measure == ""


def test_why_numbers_could_not_be_compared_is_said(session, paths, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise WorkerError("the child process ended before it had answered")

    with monkeypatch.context() as patch:
        patch.setattr(module.Measuring, "measure", fail)
        session.compare()
    assert "ended before" in session.screen.measured
    session.measure()
    assert session.screen.measured.startswith("All tensors")
    assert session.screen.alerts == ()


def test_figures_of_a_file_that_changed_are_forgotten(session, paths, monkeypatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE_NBYTES", -1)
    session.compare()
    save_zip(Path(paths[1]), {"other": T(V)})
    session.measure()
    assert "has changed since it was compared" in session.screen.measured
    assert "may be out of date" in session.screen.alerts[0]
    assert (session.screen.found, session.screen.figures) == ({}, ())
    session.compare()
    assert session.screen.alerts == ()


def test_the_text_is_that_of_the_command_line(session, view, monkeypatch) -> None:
    session.compare()
    session.copy_text()
    (text,) = view.take_text.call_args.args
    assert "~ w   values differ" in text
    monkeypatch.setattr(module, "format_diff", lambda _: 1 / 0)
    session.copy_text()
    assert view.take_text.call_count == 1


def test_a_comparison_that_comes_too_late_is_dropped(session, runner, monkeypatch) -> None:
    runner.waits = True
    with monkeypatch.context() as patch:
        patch.setattr(module, "_compare", lambda *_, **__: ("late", ()))
        session.compare()
    session.compare()
    runner.go_on()
    assert session.screen.phase == "opening"
    runner.go_on()
    assert session.screen.phase == "ready"
