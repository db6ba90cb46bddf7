from __future__ import annotations

import inspect
import os
import shutil
import threading
from pathlib import Path

import pytest

import inspector.errors
from inspector.errors import CancelledError, CheckpointError, ExportError
from inspector.resources import demo_path
from inspector.session.controller import Session
from inspector.session.jobs import open as opening
from inspector.session.present import presenter
from inspector.session.present.failure import CANNOT_OPEN
from inspector.session.screen import FailurePage, Screen
from tests.unit.session.documents import saved_on

CORPUS = Path(__file__).parents[3] / "data" / "corpus"
TITLES = {
    "DamagedError": "The file is damaged or incomplete",
    "NotACheckpointError": "This is not a checkpoint",
}


def screens(view) -> list[Screen]:
    """The screens in which something else was open, or under way, than in the one before."""
    shown: list[Screen] = []
    for call in view.show_screen.call_args_list:
        if not shown or shown[-1].phase != call.args[0].phase or shown[-1].path != call.args[0].path:
            shown.append(call.args[0])
    return shown


def phases(view) -> list[str]:
    return [screen.phase for screen in screens(view)]


def test_opening_is_shown_from_its_first_moment(session, view) -> None:
    session.open("/a.pth")
    assert phases(view) == ["opening", "ready"]
    opening, ready = screens(view)
    assert opening.progress is not None
    assert opening.title == "a.pth - Checkpoint Inspector"
    assert ready.progress is None
    assert ready.recent == ("/a.pth",)


def test_recent_files_are_absolute_few_and_newest_first(view, runner, files) -> None:
    known = tuple(f"/{number}.pth" for number in range(8))
    session = Session(view, runner, known)
    files["c.pth"] = saved_on("cpu")
    session.open("c.pth")
    path = str(Path("c.pth").absolute())
    assert session.screen.recent == (path, *known[:7])
    session.open("c.pth")
    assert session.screen.recent == (path, *known[:7])


def test_the_first_verdict_is_worked_out_by_the_worker(session, view, runner, monkeypatch) -> None:
    composed: list[str] = []
    compose = presenter.compose

    def watched(state):
        composed.append(f"{state.phase} {threading.current_thread().name}")
        return compose(state)

    monkeypatch.setattr(presenter, "compose", watched)

    def run(work, progress, on_done, on_failed) -> None:
        results: list[object] = []
        thread = threading.Thread(target=lambda: results.append(work(progress)), name="worker")
        thread.start()
        thread.join()
        on_done(results[0])

    monkeypatch.setattr(runner, "run", run)
    session.open("/a.pth")
    assert composed[:3] == ["opening MainThread", "ready worker", "ready MainThread"]
    shown = [call.args[0] for call in view.show_screen.call_args_list]
    assert [screen.is_checking for screen in shown if screen.phase == "ready"][:2] == [True, False]
    assert len({id(screen.tree) for screen in shown if screen.phase == "ready"}) == 1


def test_as_long_as_nothing_is_judged_nothing_is_claimed(session, view, runner) -> None:
    acts = []
    view.when_shown.side_effect = acts.append
    session.open("/a.pth")
    screen = session.screen
    assert (screen.phase, screen.is_checking, screen.tree is not None) == ("ready", True, True)
    assert (screen.banner.tone, screen.banner.error_text, screen.safety) == ("neutral", None, None)
    assert (screen.code, screen.can_export, screen.findings, screen.charts) == (None, False, (), ())
    session.select(1)
    session.search("layer1")
    screen = session.screen
    assert (screen.is_checking, screen.selected, screen.query, screen.matches) == (True, 1, "layer1", None)
    for act in acts:
        act()
    screen = session.screen
    assert (screen.is_checking, screen.selected, screen.safety.tone) == (False, 1, "good")
    assert [screen.tree.nodes[id_].name for id_ in screen.matches] == ["weight"]
    session.open("/b.pth")
    assert (session.screen.is_checking, session.screen.safety) == (True, None)


def test_a_file_that_is_closed_before_its_tree_was_painted_is_not_judged(session, view, runner) -> None:
    acts = []
    view.when_shown.side_effect = acts.append
    session.open("/a.pth")
    session.close()
    runner.waits = True
    for act in acts:
        act()
    assert (session.screen.phase, runner.waiting) == ("empty", [])


def test_the_demo_is_a_file_like_any_other(session, files) -> None:
    files[str(demo_path())] = saved_on("cpu")
    session.open_demo()
    assert session.screen.path == str(demo_path())
    assert session.screen.phase == "ready"


def test_another_file_starts_anew_but_for_target_and_style(session) -> None:
    session.open("/a.pth")
    session.set_target("cuda")
    session.set_mapping("cuda:1", "cpu")
    session.select(1)
    session.search("layer")
    session.open("/b.pth")
    screen = session.screen
    assert (screen.selected, screen.query, screen.target) == (None, "", "cuda")
    assert [(row.device, row.to) for row in screen.device_map] == [("mps", "cuda:0")]


def test_reloading_keeps_the_map_and_the_search(session, view, files) -> None:
    session.open("/a.pth")
    session.set_target("2xcuda")
    session.set_mapping("cuda:1", "cpu")
    session.search("layer0")
    session.select(1)
    files["/a.pth"] = saved_on("cuda:0", "cuda:1", path="/a.pth")
    session.reload()
    assert phases(view)[-2:] == ["opening", "ready"]
    assert [(row.device, row.to) for row in session.screen.device_map] == [
        ("cuda:0", "cuda:0"),
        ("cuda:1", "cpu"),
    ]
    assert (session.screen.query, session.screen.selected, session.screen.target) == (
        "layer0",
        None,
        "2xcuda",
    )
    assert len(session.screen.matches or ()) == 1


def test_a_file_that_could_not_be_opened_can_be_tried_again(session, files) -> None:
    files["/c.pth"] = ExportError("not yet")
    session.open("/c.pth")
    files["/c.pth"] = saved_on("cpu")
    session.reload()
    assert (session.screen.phase, session.screen.failure) == ("ready", None)


def test_closing_lets_go_of_the_file(session) -> None:
    session.open("/a.pth")
    session.set_mapping("cuda:0", "cpu")
    session.close()
    screen = session.screen
    assert (screen.phase, screen.path, screen.tree, screen.title) == (
        "empty",
        "",
        None,
        "Checkpoint Inspector",
    )
    assert screen.recent == ("/a.pth",)


def test_an_error_that_nobody_foresaw_is_shown_too(session, files) -> None:
    files["/c.pth"] = ZeroDivisionError("oops")
    session.open("/c.pth")
    assert session.screen.failure is not None
    assert session.screen.failure.what == "unexpected ZeroDivisionError: oops"


def test_a_mistake_in_working_out_the_screen_is_shown_as_well(session, monkeypatch) -> None:
    compose = presenter.compose

    def mistaken(state):
        return compose(state) if state.phase != "ready" else 1 / 0

    monkeypatch.setattr(presenter, "compose", mistaken)
    session.open("/a.pth")
    assert session.screen.phase == "failed"
    assert session.screen.failure is not None
    assert "ZeroDivisionError" in session.screen.failure.what


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
def test_a_json_file_that_describes_no_machine_is_opened_as_what_it_is(opened, view, tmp_path, name) -> None:
    path = tmp_path / name
    path.write_text('{"hidden_size": 768}')
    opened.open(str(path))
    view.show_notice.assert_not_called()
    assert opened.screen.path == str(path)
    assert opened.screen.target == "this"


@pytest.mark.wide
def test_a_json_file_is_not_opened_over_a_later_one(opened, runner, profile) -> None:
    runner.waits = True
    opened.open(str(profile))
    opened.open("/b.pth")
    runner.go_on()
    assert (opened.screen.path, opened.screen.target, len(runner.waiting)) == ("/b.pth", "this", 1)


def test_a_file_that_changes_on_disk_is_seen_to_have_changed(view, runner, copy) -> None:
    session = Session(view, runner)
    runner.waits = True
    session.open(str(copy))
    runner.go_on()
    runner.go_on()  # the verdict
    read = session.screen.stamp
    assert read is not None
    copy.write_bytes(b"something else")
    assert session.screen.on_disk == read
    runner.go_on()
    assert session.screen.on_disk not in {read, None}
    runner.go_on()  # the values of its scalars
    copy.unlink()
    session.look_at_file()
    runner.go_on()
    assert (session.screen.stamp, session.screen.on_disk) == (read, None)
    session.close()
    assert session.screen.on_disk is None


def test_a_free_path_that_is_taken_since_is_proposed_no_more(view, runner, copy) -> None:
    session = Session(view, runner)
    session.open(str(copy))
    session.set_target("cpu")

    def proposed() -> str:
        texts = [text for card in session.screen.findings for _, text in card.lines if " -o " in text]
        return texts[0].partition(" -o ")[2].split()[0]

    first = proposed()
    assert first.endswith(".cpu.pth")
    session.look_at_file()
    findings = session.screen.findings
    session.look_at_file()
    assert session.screen.findings is findings  # nothing happened
    Path(first).write_bytes(b"a copy")
    os.utime(copy.parent, ns=(1, 1))  # clocks of file systems may be coarse
    session.look_at_file()
    assert proposed().endswith(".cpu-2.pth")
    session.explain_error("RuntimeError: Attempting to deserialize object on a CUDA device")
    shutil.rmtree(copy.parent)
    session.look_at_file()
    assert session.screen.on_disk is None


def test_every_error_of_opening_gets_its_page(session, files) -> None:
    for name, error in inspect.getmembers(inspector.errors, inspect.isclass):
        if not issubclass(error, CheckpointError) or error is CancelledError:
            continue
        files["/c.pth"] = error("it is damaged", where="byte 7", remedy="fetch it again")
        session.open("/c.pth")
        screen = session.screen
        assert (screen.phase, screen.progress, screen.path) == ("failed", None, "/c.pth"), name
        assert screen.failure == FailurePage(
            title=TITLES.get(name, CANNOT_OPEN), what="it is damaged", where="byte 7", remedy="fetch it again"
        )
        assert screen.recent == ()


@pytest.mark.parametrize("hears", [True, False])
def test_what_comes_too_late_of_opening_a_file_is_dropped(session, runner, monkeypatch, hears) -> None:
    """Whether reading ends when it is cancelled or goes on to its end."""
    if not hears:
        monkeypatch.setattr(opening, "open_document", lambda path, _: saved_on("cpu", path=path))
    runner.waits = True
    for leave in (session.close, session.cancel_opening, lambda: session.open("/b.pth")):
        session.open("/a.pth")
        leave()
        shown = session.screen
        runner.go_on()
        assert session.screen is shown
        assert shown.path in {"", "/b.pth"}
    runner.go_on()
    assert (session.screen.path, session.screen.phase) == ("/b.pth", "ready")


def test_a_folder_has_changed_when_one_of_its_files_has(view, runner, tmp_path) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(CORPUS / "dcp" / "plain", folder)
    for path in (folder, folder / ".metadata", folder / "__0_0.distcp"):
        session = Session(view, runner)
        session.open(str(path))
        screen = session.screen
        assert screen.stamp is not None
        assert screen.on_disk == screen.stamp, path  # nothing has happened to it
        assert str(folder / "__0_0.distcp") in screen.parts
        with (folder / "__0_0.distcp").open("ab") as file:
            file.write(b"\0")
        session.look_at_file()
        assert session.screen.on_disk not in {None, screen.stamp}, path
    shutil.rmtree(folder)
    session.look_at_file()
    assert session.screen.on_disk is None


def test_json_files_are_told_apart_without_a_file_too(session, files, profile, tmp_path) -> None:
    session.open(str(profile))
    assert (session.screen.phase, session.screen.path) == ("empty", "")
    assert session.screen.target == session._state.machines[0].id
    other, index = tmp_path / "config.json", tmp_path / "model.safetensors.index.json"
    for path in (other, index):
        path.write_text("{}")
        files[str(path)] = saved_on("cpu", path=str(path))
        session.open(str(path))
        assert (session.screen.phase, session.screen.path) == ("ready", str(path))
