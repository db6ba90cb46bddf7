from __future__ import annotations

import inspect
import shutil
import threading
from pathlib import Path

import pytest

import inspector.errors
from inspector.errors import CancelledError, CheckpointError, ExportError, PlanError
from inspector.progress import Progress
from inspector.remap.plan import plan_remap
from inspector.resources import demo_path
from inspector.session import controller
from inspector.session.controller import Session
from inspector.session.device_map import DeviceMap
from inspector.session.document import Document
from inspector.session.export.page import ExportWish
from inspector.session.present import presenter
from inspector.session.screen import Screen
from inspector.target.machine.profile import Profile
from tests.unit.report.rows import checkpoint, tensor, value
from tests.unit.session.documents import AtOnce, a_view, document_of, saved_on

GPUS = Profile(id="this", label="this machine (2 CUDA GPUs)", accelerators=(("cuda", 2),))
ERRORS = [
    error
    for _, error in inspect.getmembers(inspector.errors, inspect.isclass)
    if issubclass(error, CheckpointError) and error is not CancelledError
]


@pytest.fixture
def view():
    return a_view()


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, Document | Exception]:
    """What opening a path gives; nothing is read from the disk."""
    known: dict[str, Document | Exception] = {}

    def open_document(path: str, progress: Progress) -> Document:
        progress.advance()
        found = known[path]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(controller, "open_document", open_document)
    return known


@pytest.fixture
def session(view, runner, files) -> Session:
    files["/a.pth"] = saved_on("cuda:0", "cuda:1", "cpu", path="/a.pth")
    files["/b.pth"] = saved_on("mps", path="/b.pth")
    return Session(view, runner)


def phases(view) -> list[str]:
    return [call.args[0].phase for call in view.show_screen.call_args_list]


def screens(view) -> list[Screen]:
    return [call.args[0] for call in view.show_screen.call_args_list]


# ------------------------------------------------------------------------------------------------- files


def test_it_starts_empty_and_shows_nothing_unasked(view, runner) -> None:
    session = Session(view, runner, ("/old.pth",))
    assert session.screen.phase == "empty"
    assert session.screen.recent == ("/old.pth",)
    view.show_screen.assert_not_called()


def test_opening_is_shown_from_its_first_moment(session, view) -> None:
    session.open("/a.pth")
    assert phases(view) == ["opening", "ready"]
    opening, ready = screens(view)
    assert opening.progress is not None
    assert opening.title == "a.pth - Checkpoint Inspector"
    assert ready.progress is None
    assert ready.recent == ("/a.pth",)
    assert ready is session.screen


def test_recent_files_are_absolute_few_and_newest_first(view, runner, files) -> None:
    known = tuple(f"/{number}.pth" for number in range(8))
    session = Session(view, runner, known)
    files["c.pth"] = saved_on("cpu")
    session.open("c.pth")
    path = str(Path("c.pth").absolute())
    assert session.screen.recent == (path, *known[:7])
    session.open("c.pth")
    assert session.screen.recent == (path, *known[:7])


def test_the_first_screen_is_worked_out_by_the_worker(session, view, runner, monkeypatch) -> None:
    composed: list[str] = []
    compose = presenter.compose

    def watched(state):
        composed.append(f"{state.phase} {threading.current_thread().name}")
        return compose(state)

    monkeypatch.setattr(controller, "compose", watched)
    monkeypatch.setattr(presenter, "compose", watched)

    def run(work, progress, on_done, on_failed) -> None:
        results: list[object] = []
        thread = threading.Thread(target=lambda: results.append(work(progress)), name="worker")
        thread.start()
        thread.join()
        on_done(results[0])

    monkeypatch.setattr(runner, "run", run)
    session.open("/a.pth")
    assert composed == ["opening MainThread", "ready worker", "ready MainThread"]


def test_the_demo_is_a_file_like_any_other(session, files) -> None:
    files[str(demo_path())] = saved_on("cpu")
    session.open_demo()
    assert session.screen.path == str(demo_path())
    assert session.screen.phase == "ready"


def test_another_file_starts_anew_but_for_target_and_style(session) -> None:
    session.open("/a.pth")
    session.set_target("cuda:1")
    session.set_mapping("cuda:1", "cpu")
    session.select(1)
    session.search("layer")
    session.open("/b.pth")
    screen = session.screen
    assert (screen.selected, screen.query, screen.target) == (None, "", "cuda:1")
    assert [(row.device, row.to) for row in screen.device_map] == [("mps", "cuda:0")]


def test_reloading_keeps_the_map_and_the_search(session, view, files) -> None:
    session.open("/a.pth")
    session.set_target("cuda:2")
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
        "cuda:2",
    )
    assert len(session.screen.matches or ()) == 1


def test_an_empty_window_has_nothing_to_reload(session, view) -> None:
    session.reload()
    view.show_screen.assert_not_called()


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


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_of_opening_gets_its_page(session, files, error) -> None:
    files["/c.pth"] = error("it is damaged", where="byte 7", remedy="fetch it again")
    session.open("/c.pth")
    screen = session.screen
    assert (screen.phase, screen.progress, screen.path) == ("failed", None, "/c.pth")
    assert screen.failure is not None
    title = {
        "DamagedError": "The file is damaged or incomplete",
        "NotACheckpointError": "This is no checkpoint",
    }.get(error.__name__, "This file cannot be opened")
    assert screen.failure.title == title
    assert (screen.failure.what, screen.failure.where, screen.failure.remedy) == (
        "it is damaged",
        "byte 7",
        "fetch it again",
    )
    assert screen.recent == ()


def test_an_error_that_nobody_foresaw_is_shown_too(session, files) -> None:
    files["/c.pth"] = ZeroDivisionError("oops")
    session.open("/c.pth")
    assert session.screen.failure is not None
    assert session.screen.failure.what == "unexpected ZeroDivisionError: oops"


def test_a_mistake_in_working_out_the_screen_is_shown_as_well(session, monkeypatch) -> None:
    compose = controller.compose

    def mistaken(state):
        return compose(state) if state.phase != "ready" else 1 / 0

    monkeypatch.setattr(controller, "compose", mistaken)
    session.open("/a.pth")
    assert session.screen.phase == "failed"
    assert session.screen.failure is not None
    assert "ZeroDivisionError" in session.screen.failure.what


# ------------------------------------------------------------------------------ answers that come too late


def test_of_two_files_asked_for_the_second_is_shown(session, view, runner) -> None:
    runner.waits = True
    session.open("/a.pth")
    session.open("/b.pth")
    runner.go_on()
    assert phases(view) == ["opening", "opening"]
    runner.go_on()
    assert session.screen.path == "/b.pth"
    assert phases(view) == ["opening", "opening", "ready"]


def test_a_failure_that_comes_too_late_is_dropped(session, view, runner, files) -> None:
    runner.waits = True
    files["/c.pth"] = ExportError("no")
    session.open("/c.pth")
    first = runner.waiting.pop()
    session.open("/b.pth")
    runner.go_on()
    first()
    assert phases(view) == ["opening", "opening", "ready"]


def test_a_document_that_comes_after_closing_is_dropped(session, view, runner, files, monkeypatch) -> None:
    monkeypatch.setattr(controller, "open_document", lambda path, progress: files[path])
    runner.waits = True
    session.open("/a.pth")
    session.close()
    runner.go_on()
    assert phases(view) == ["opening", "empty"]


def test_opening_is_cancelled(session, view, runner) -> None:
    runner.waits = True
    session.open("/a.pth")
    session.cancel_opening()
    session.cancel_opening()
    runner.go_on()
    assert phases(view) == ["opening", "empty"]
    assert session.screen.path == ""


def test_there_may_be_nothing_to_cancel(session, view) -> None:
    session.cancel_opening()
    session.cancel_export()
    session.resume_export()
    session.end_export()
    view.show_screen.assert_not_called()


# ------------------------------------------------------------------------------------------ this machine


def test_the_probe_runs_once_after_the_first_file(view, runner, files) -> None:
    asked: list[str] = []

    def probe(progress: Progress) -> Profile:
        asked.append(progress.label)
        return GPUS

    files["/a.pth"] = saved_on("cuda:1")
    session = Session(view, runner, (), probe)
    assert asked == []
    session.open("/a.pth")
    session.open("/a.pth")
    assert asked == ["looking for GPUs"]
    assert session.screen.targets[0].label == "This machine (2 CUDA GPUs)"
    assert session.screen.banner is not None
    assert session.screen.banner.headline.endswith("It loads on this machine as is.")


def test_a_late_answer_keeps_the_choices_that_were_made_meanwhile(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cuda:1", "cpu")
    session = Session(view, runner, (), lambda progress: GPUS)
    runner.waits = True
    session.open("/a.pth")
    runner.go_on()
    assert session.screen.targets[0].label == "This machine (looking for GPUs \u2026)"
    session.set_mapping("cuda:1", "cpu")
    session.open("/a.pth")
    session.close()
    runner.go_on()
    assert session.screen.phase == "empty"
    assert session.screen.targets[0].label == "This machine (2 CUDA GPUs)"


def test_a_second_file_does_not_ask_while_the_probe_runs(view, runner, files) -> None:
    files["/a.pth"] = saved_on("cpu")
    session = Session(view, runner, (), lambda progress: GPUS)
    runner.waits = True
    session.open("/a.pth")
    runner.go_on()
    session.open("/a.pth")
    assert len(runner.waiting) == 2
    runner.waiting.pop()()
    assert len(runner.waiting) == 1


@pytest.mark.parametrize("error", [CheckpointError("no torch"), OSError("no process"), CancelledError()])
def test_without_an_answer_the_label_says_so(view, runner, files, error) -> None:
    def probe(progress: Progress) -> Profile:
        raise error

    files["/a.pth"] = saved_on("cpu")
    session = Session(view, runner, (), probe)
    session.open("/a.pth")
    assert session.screen.phase == "ready"
    assert session.screen.targets[0].label == "This machine (taken as CPU only)"


# ----------------------------------------------------------------------------------------------- choices


def test_another_target_takes_the_map_with_it(session) -> None:
    session.open("/a.pth")
    session.set_mapping("cuda:0", "cuda:0")
    session.set_target("cuda:1")
    assert session.screen.target == "cuda:1"
    assert [row.to for row in session.screen.device_map] == ["cuda:0", "cuda:0", "cpu"]


def test_devices_are_mapped_one_by_one(session) -> None:
    session.open("/a.pth")
    session.set_target("cuda:2")
    session.set_mapping("cuda:0", "cpu")
    session.set_mapping("cuda:1", "cuda:0")
    session.set_mapping("cuda:0", "cuda:1")
    assert [row.to for row in session.screen.device_map] == ["cuda:1", "cuda:0", "cpu"]


def test_selecting_searching_and_styling(session, view) -> None:
    session.open("/a.pth")
    node = session.screen.tree.tensor_nodes[0]
    session.select(node)
    assert session.screen.tensor
    session.search("layer1")
    assert session.screen.matches == (session.screen.tree.tensor_nodes[1],)
    session.search("")
    assert session.screen.matches is None
    session.set_code_style("resume")
    assert session.screen.code.style == "plain"  # this file offers no other
    session.select(None)
    assert session.screen.tensor == ()
    assert view.show_screen.call_count == 7


def test_wishes_about_a_file_that_is_gone_are_none_about_the_next(session, runner) -> None:
    def wish_all() -> None:
        session.search("layer1")
        session.select(2)
        session.set_mapping("mps", "cpu")
        session.explain_error("RuntimeError")
        session.remove_branch("*")

    wish_all()
    runner.waits = True
    session.open("/b.pth")
    wish_all()
    runner.go_on()
    screen = session.screen
    assert (screen.query, screen.selected, screen.error_text) == ("", None, "")
    assert session._state.chosen == ()


# ------------------------------------------------------------------------------------------------ export


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(demo_path(), tmp_path / "demo.pth"))


@pytest.fixture
def real(view, runner, copy) -> Session:
    """A session with a real file in it."""
    session = Session(view, runner)
    session.set_target("cpu")
    session.open(str(copy))
    view.reset_mock()
    return session


def stages(view) -> list[str | None]:
    """The stages of the export in the order they were shown, each once."""
    pages = [call.args[0].export for call in view.show_screen.call_args_list]
    said = [None if page is None else page.stage for page in pages]
    return [stage for place, stage in enumerate(said) if place == 0 or stage != said[place - 1]]


def test_an_export_is_asked_for_done_and_reported(real, view, copy) -> None:
    real.begin_export()
    draft = real.screen.export.draft
    assert draft.destination == str(copy.with_name("demo.cpu.pth"))
    assert draft.summary[:2] == ("150 tensors from cuda:0 to cpu", "83 tensors from cuda:1 to cpu")
    real.export(draft.destination)
    assert stages(view) == ["looking", "draft", "running", "done"]
    result = real.screen.export.result
    assert result.destination == draft.destination
    assert result.lines[0].endswith("233 tensors relabelled.")
    real.open(draft.destination)
    assert real.screen.export is None
    assert real.screen.banner.headline.endswith("It loads on every machine as is.")


def test_an_export_that_fails_says_why_and_leads_back(real, copy) -> None:
    real.begin_export()
    draft = real.screen.export.draft
    real.export(str(copy))
    page = real.screen.export
    assert (page.stage, page.cancelled, page.failure.title) == ("failed", False, "No copy was written")
    assert page.failure.what == "the copy would replace the file itself"
    real.resume_export()
    assert (real.screen.export.stage, real.screen.export.draft) == ("draft", draft)
    real.end_export()
    assert real.screen.export is None


def test_an_export_is_cancelled(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.export(str(copy.with_name("out.pth")))
    real.cancel_export()
    page = real.screen.export
    assert (page.stage, page.stopping, page.progress.cancelled) == ("running", True, True)
    runner.go_on()
    assert (real.screen.export.stage, real.screen.export.cancelled) == ("failed", True)
    assert list(copy.parent.iterdir()) == [copy]


def test_an_existing_file_is_replaced_on_request_only(real, copy) -> None:
    taken = copy.with_name("taken.pth")
    taken.write_bytes(b"precious")
    real.begin_export()
    real.export(str(taken))
    assert taken.read_bytes() == b"precious"
    real.resume_export()
    real.export(str(taken), overwrite=True)
    assert real.screen.export.stage == "done"
    assert taken.stat().st_size > 100_000


def test_one_export_at_a_time(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.export(str(copy.with_name("one.pth")))
    real.export(str(copy.with_name("two.pth")))
    real.begin_export()
    real.undo_export()
    assert len(runner.waiting) == 1
    runner.go_on()
    assert real.screen.export.stage == "done"
    real.export(str(copy.with_name("two.pth")))
    assert not runner.waiting


def test_nothing_is_written_while_the_draft_is_worked_out(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.change_export(ExportWish(kind="safetensors"))
    page = real.screen.export
    assert (page.stage, page.draft.wish.kind) == ("looking", "safetensors")
    real.export(str(copy.with_name("out.pth")))
    assert len(runner.waiting) == 1


def test_a_copy_of_a_file_that_was_closed_is_not_reported_on_the_next(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.export(str(copy.with_name("out.pth")))
    finish = runner.waiting.pop()
    real.open(str(copy))
    finish()
    assert (real.screen.phase, real.screen.export) == ("opening", None)
    runner.go_on()
    assert (real.screen.phase, real.screen.export) == ("ready", None)


def test_a_draft_that_comes_after_closing_is_dropped(real, runner) -> None:
    runner.waits = True
    real.begin_export()
    real.close()
    runner.go_on()
    assert (real.screen.phase, real.screen.export) == ("empty", None)


def test_cancelling_an_export_leaves_a_check_running_and_the_other_way_round(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.check_file()
    real.export(str(copy.with_name("out.pth")))
    real.cancel_export()
    assert not real.screen.check.progress.cancelled
    runner.go_on()
    assert real.screen.check.lines[-1] == "Nothing is wrong."
    assert real.screen.export.stage == "running"
    runner.go_on()
    assert real.screen.export.cancelled
    real.resume_export()
    real.export(str(copy.with_name("out.pth")))
    real.check_file()
    real.cancel_check()
    assert (real.screen.check.progress, real.screen.export.progress.cancelled) == (None, False)
    runner.go_on()
    assert real.screen.export.stage == "done"


def test_without_a_file_nothing_is_exported(session, view) -> None:
    session.begin_export()
    session.change_export(ExportWish())
    session.export("/somewhere.pth")
    session.undo_export()
    session.save_receipt("/somewhere.json")
    assert view.method_calls == []


def test_a_map_that_is_refused_is_not_exported(session, monkeypatch) -> None:
    session.open("/a.pth")

    def refused(document: Document, *_asked: object) -> DeviceMap:
        return DeviceMap(
            checkpoint=document.checkpoint,
            going=(),
            branches=(),
            plan=plan_remap(document.checkpoint, ()),
            refusal=PlanError("tensors disagree", remedy="give them one device"),
        )

    monkeypatch.setattr(controller, "device_map_of", refused)
    session.begin_export()
    page = session.screen.export
    assert (page.stage, page.draft, page.failure.what) == ("failed", None, "tensors disagree")
    session.resume_export()
    assert session.screen.export.stage == "failed"


# --------------------------------------------------------------------------------- questions of the view


def test_paths_and_expressions_of_nodes(session, files) -> None:
    files["/c.pth"] = document_of(checkpoint(tensor("m", "a.b"), value("c", "x/y")))
    assert (session.node_path(1), session.node_expression(1)) == ("", "")
    session.open("/c.pth")
    tree = session.screen.tree
    weight, number = tree.tensor_nodes[0], tree.value_nodes[0]
    assert session.node_path(weight) == "m/a.b"
    assert session.node_path(number) == "c/x~1y"
    assert session.node_path(tree.nodes[weight].parent) == "m/a"
    assert session.node_path(0) == ""
    assert session.node_expression(weight) == "checkpoint['m']['a.b']"
    assert session.node_expression(number) == session.node_expression(0) == ""
