from __future__ import annotations

import pytest

from inspector.progress import Progress
from inspector.session.controller import Session
from inspector.session.present import presenter, rows
from inspector.session.present.compose import compose
from inspector.target.profile import Profile
from tests.unit.session.documents import saved_on


@pytest.fixture
def large(opened, monkeypatch) -> Session:
    """A session with a file in it that counts as large."""
    monkeypatch.setattr(presenter, "_MANY_TENSORS", 1)
    opened.reload()
    return opened


@pytest.fixture
def broken(monkeypatch):
    """Return a switch: while it is on, no screen for the target `mps` can be composed."""

    def compose_or_not(state):
        if state.target == "mps" and state.phase == "ready":
            raise ZeroDivisionError("by hand")
        return compose(state)

    monkeypatch.setattr(presenter, "compose", compose_or_not)


def going(session: Session) -> dict[str, str]:
    return {row.device: row.to for row in session.screen.device_map}


def test_with_many_tensors_the_answer_comes_from_the_worker(large, runner) -> None:
    runner.waits = True
    large.set_target("mps")
    assert large.screen.target == "mps"
    assert going(large) == {"cuda:0": "cpu", "cuda:1": "cpu", "cpu": "cpu"}
    large.set_target("cuda")
    large.select(1)
    assert len(runner.waiting) == 1  # one worker at a time
    assert large.screen.selected == 1
    assert large.screen.tensor
    runner.go_on()  # the first question was overtaken
    assert going(large)["cuda:0"] == "cpu"
    runner.go_on()
    assert going(large)["cuda:0"] == "cuda:0"
    assert large.screen.selected == 1


def test_the_sum_of_many_rows_comes_from_the_worker(large, runner, monkeypatch) -> None:
    runner.waits = True
    large.pick((1, 2))
    assert large.screen.strip.title == "2 rows"
    monkeypatch.setattr(rows, "MOST_PICKED", 2)
    large.pick((1, 2, 3))
    assert large.screen.strip.title == "2 rows"
    runner.go_on()
    assert large.screen.strip.title == "3 rows"


def test_what_a_click_needs_is_looked_up_while_a_large_file_is_opened(large, monkeypatch) -> None:
    monkeypatch.setattr("inspector.session.present.rows.look_up", None)
    monkeypatch.setattr("inspector.session.values.showing.Requests", None)
    large.select(large.screen.tree.tensor_nodes[0])
    assert large.screen.tensor


def test_states_that_are_taken_together_are_one_screen(opened, view) -> None:
    view.reset_mock()
    desk = opened._desk
    with desk.together(), desk.together():
        opened.select(1)
        opened.select(2)
        assert desk.state.selected == 2
    view.show_screen.assert_called_once_with(opened.screen)
    assert opened.screen.selected == 2
    with desk.together():
        pass
    view.show_screen.assert_called_once_with(opened.screen)


def test_what_costs_little_is_shown_at_once(large, runner) -> None:
    runner.waits = True
    large.select(1)
    assert large.screen.selected == 1
    assert not runner.waiting


def test_an_answer_for_a_file_that_was_closed_is_dropped(large, runner) -> None:
    runner.waits = True
    large.set_target("mps")
    large.close()
    runner.go_on()
    assert large.screen.phase == "empty"


def test_work_that_goes_on_is_shown_while_a_screen_is_worked_out(large, runner) -> None:
    runner.waits = True
    large.set_target("mps")
    large.start_job("check")
    assert large.screen.check.progress is not None
    large.stop_job("check")
    assert large.screen.check.progress is None


@pytest.mark.parametrize("change", ["target", "probe"])
def test_a_choice_made_while_the_file_is_read_is_worked_out_by_the_worker(
    view, runner, files, monkeypatch, change
) -> None:
    where: list[str] = []
    composed_by = "worker"

    def watched(state):
        if state.phase == "ready":
            where.append(f"{state.target} {composed_by}")
        return compose(state)

    def probe(_progress: Progress, _python: str | None) -> Profile:
        return Profile(id="this", label="this machine (2 CUDA GPUs)", accelerators=(("cuda", 2),))

    monkeypatch.setattr(presenter, "_MANY_TENSORS", 1)
    monkeypatch.setattr(presenter, "compose", watched)
    files["/a.pth"] = saved_on("cuda:0", path="/a.pth")
    runner.waits = True
    session = Session(view, runner, probe=probe if change == "probe" else None)
    session.open("/a.pth")
    if change == "target":
        session.set_target("mps")
        composed_by = "main"
        runner.go_on()
        assert session.screen.is_checking  # not worked out by the thread that shows the file
        assert where == []
        composed_by = "worker"
    while runner.waiting:
        runner.go_on()
    assert session.screen.phase == "ready"
    assert session.screen.target == ("mps" if change == "target" else "this")


@pytest.mark.parametrize("many", [1, 1000])
def test_an_exception_is_reported_and_the_window_goes_on_as_it_was(
    large, view, monkeypatch, broken, many
) -> None:
    monkeypatch.setattr(presenter, "_MANY_TENSORS", many)
    large.set_target("cpu")
    large.set_target("mps")
    assert view.show_notice.call_args.args[0].what == "unexpected ZeroDivisionError: by hand"
    assert large.screen.target == "cpu"
    large.select(1)
    assert (large.screen.selected, large.screen.phase) == (1, "ready")
    large.set_target("cuda")
    assert large.screen.target == "cuda"
    view.show_notice.assert_called_once()


def test_the_failure_of_a_question_that_was_overtaken_says_nothing(large, view, runner, broken) -> None:
    runner.waits = True
    large.set_target("mps")
    large.set_target("cpu")
    runner.go_on()
    view.show_notice.assert_not_called()
    runner.go_on()
    assert large.screen.target == "cpu"


def test_what_came_of_work_meanwhile_is_kept(large, runner, broken) -> None:
    runner.waits = True
    large.start_job("check")
    large.set_target("mps")
    large.stop_job("check")
    while runner.waiting:
        runner.go_on()
    assert large.screen.check.progress is None
    assert large.screen.target == "this"


def test_without_choices_to_go_back_to_the_file_is_said_to_fail(large, view, monkeypatch) -> None:
    def broken(state):
        if state.phase == "ready":
            raise ZeroDivisionError("by hand")
        return compose(state)

    monkeypatch.setattr(presenter, "compose", broken)
    large.select(1)
    assert large.screen.phase == "failed"
    assert large.screen.failure.what == "unexpected ZeroDivisionError: by hand"
    monkeypatch.setattr(presenter, "compose", compose)
    large.reload()
    assert large.screen.phase == "ready"


def test_a_file_whose_first_screen_fails_is_said_to_fail(view, runner, files, monkeypatch) -> None:
    def broken(state):
        return compose(state) if state.phase != "ready" else 1 // 0

    monkeypatch.setattr(presenter, "compose", broken)
    files["/a.pth"] = saved_on("cuda:0", path="/a.pth")
    session = Session(view, runner)
    session.open("/a.pth")
    assert session.screen.phase == "failed"
    view.show_notice.assert_not_called()


def test_a_search_does_not_wait_for_the_verdict(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cuda:0", "cuda:1", path="/a.pth")
    runner.waits = True
    session = Session(view, runner)
    session.open("/a.pth")
    runner.go_on()  # it is read
    unjudged = session.screen.banner
    session.search("layer0")
    session.search("layer1")
    assert session.screen.matches is None
    judging, overtaken, search = runner.waiting  # and nothing that judges the file anew
    runner.waiting = [overtaken, search]
    runner.go_on()
    assert session.screen.matches is None
    runner.go_on()
    assert session.screen.is_checking
    assert session.screen.banner == unjudged
    assert session.screen.matches == (session.screen.tree.tensor_nodes[1],)
    assert session.screen.search.size == "4.0 KB"
    session.search("")
    assert session.screen.matches is None
    assert not runner.waiting
    session.search("layer0")
    runner.waiting.insert(0, judging)
    runner.go_on()  # judged while it is searched: the rest of that screen is worked out by then
    while runner.waiting:
        runner.go_on()
    assert not session.screen.is_checking
    assert session.screen.banner != unjudged
    assert session.screen.matches == (session.screen.tree.tensor_nodes[0],)
    assert not session._state.jobs


def test_a_search_in_a_file_that_was_closed_is_not_begun(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cuda:0", path="/a.pth")
    begun = []
    view.when_shown.side_effect = begun.append
    session = Session(view, runner)
    session.open("/a.pth")
    session.search("layer0")
    session.close()
    runner.waits = True
    for act in begun:
        act()
    assert not runner.waiting


def test_a_search_that_fails_leaves_it_to_the_screen_to_say_so(view, runner, files, monkeypatch) -> None:
    files["/a.pth"] = saved_on("cuda:0", path="/a.pth")
    runner.waits = True
    session = Session(view, runner)
    session.open("/a.pth")
    runner.go_on()
    session.search("layer0")
    monkeypatch.setattr("inspector.session.present.rows.matching_nodes", None)
    runner.waiting.pop()()
    assert session.screen.is_checking
    assert session.screen.matches is None
