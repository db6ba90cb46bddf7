"""The program with its real session, as far as that goes within one process."""

from __future__ import annotations

import gc
import shutil
import weakref
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog

from inspector.gui import app as module
from inspector.gui import app as recognizing
from inspector.gui import single_instance
from inspector.gui.app import MachineProbe, Program, main, screenshot
from inspector.gui.settings import Settings
from inspector.progress import Progress
from inspector.resources import demo_path
from inspector.target import profile_file
from inspector.target.profile import Profile


@pytest.fixture
def program(qapp, qtbot):
    program = Program(qapp, Settings(fresh=True), "light")
    yield program
    for window in program.windows:
        window.close()
    qtbot.waitUntil(lambda: not program._leaving)
    program.setParent(None)
    program._theme.setParent(None)


@pytest.mark.wide
def test_two_files_are_compared_in_one_window_for_each_pair(program, qtbot, copies, monkeypatch):
    first = program.open_window(copies[0])
    wait_ready(qtbot, first)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (copies[1], ""))
    first.actions_by_name["compare"].trigger()
    first.actions_by_name["compare"].trigger()
    (comparison,) = program.comparisons
    qtbot.waitUntil(lambda: comparison.shown is not None and comparison.shown.phase == "ready")
    assert comparison.shown.verdict.startswith("Equal: ")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("", ""))
    first.actions_by_name["compare"].trigger()
    first.compare_with([copies[2]])
    assert len(program.comparisons) == 2
    comparison.head.cards[1].open_wanted.emit()
    qtbot.waitUntil(lambda: len(program.windows) == 2)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(Path(copies[0]).parent))
    first.actions_by_name["series"].trigger()
    first.actions_by_name["series"].trigger()
    assert len(program.comparisons) == 3
    series = program.comparisons[2]
    qtbot.waitUntil(lambda: series.shown is not None and series.shown.phase == "ready")
    assert series.shown.files == ("rank0.pth", "rank1.pth", "rank2.pth")
    for window in program.comparisons:
        window.close()
    assert program.comparisons == ()


@pytest.fixture
def copies(tmp_path) -> list[str]:
    return [str(shutil.copy(demo_path(), tmp_path / f"rank{number}.pth")) for number in range(3)]


def titles(program: Program) -> list[str]:
    return sorted(window.windowTitle() for window in program.windows)


def wait_ready(qtbot, *windows) -> None:
    qtbot.waitUntil(
        lambda: all(
            window.shown is not None and window.shown.phase == "ready" and window.is_drawn
            for window in windows
        )
    )


@pytest.mark.wide
def test_the_demo_opens(program, qtbot):
    window = program.open_window(demo=True)
    wait_ready(qtbot, window)
    assert window.windowTitle() == "demo.pth - Checkpoint Inspector"
    assert window.shown.tree.nodes
    assert program.open_window is not None


def test_the_python_of_the_command_line_goes_before_the_remembered_one(qapp, qtbot):
    settings = Settings()
    settings.keep_python("/remembered")
    for named, used in (("/named", "/named"), ("", "/remembered")):
        program = Program(qapp, settings, "light", MachineProbe(named))
        window = program.open_window()
        qtbot.waitUntil(lambda window=window: window.session is not None)
        assert window.session._state.python == used
        window.close()
        qtbot.waitUntil(lambda program=program: not program._leaving)
        program._theme.setParent(None)
        program.setParent(None)


def test_every_start_is_on_this_machine(qapp, qtbot, copies):
    """A machine that was looked at last month would make a file green that does not load here."""
    program = Program(qapp, Settings(), "light")
    window = program.open_window(copies[0])
    wait_ready(qtbot, window)
    window.session.set_target("2xcuda")
    qtbot.waitUntil(lambda: window.shown.target == "2xcuda")
    other = program.open_window(copies[1])
    wait_ready(qtbot, other)
    assert (other.shown.target, other.shown.wanted) == ("this", "")
    for each in program.windows:
        each.close()
    qtbot.waitUntil(lambda: not program._leaving)
    program._theme.setParent(None)
    program.setParent(None)


@pytest.mark.wide
def test_files_get_a_window_each_the_empty_one_first(program, qtbot, copies):
    empty = program.open_window()
    qtbot.waitUntil(lambda: empty.shown is not None)
    program.open_paths(copies)
    wait_ready(qtbot, *program.windows)
    assert titles(program) == [f"rank{number}.pth - Checkpoint Inspector" for number in range(3)]
    assert empty.windowTitle() == "rank0.pth - Checkpoint Inspector"


@pytest.mark.wide
def test_a_launch_without_a_file_brings_an_empty_window(program, qtbot, copies):
    window = program.open_window(copies[0])
    wait_ready(qtbot, window)
    program.open_paths([])
    qtbot.waitUntil(lambda: titles(program)[0] == "Checkpoint Inspector")
    assert len(program.windows) == 2
    qtbot.waitUntil(lambda: program.windows[1].shown is not None)
    program.open_paths([])
    assert len(program.windows) == 2


@pytest.mark.wide
def test_a_closed_window_is_let_go(program, qtbot, copies):
    window = program.open_window(copies[0])
    wait_ready(qtbot, window)
    window.close()
    assert program.windows == ()
    qtbot.waitUntil(lambda: not program._leaving)


@pytest.mark.wide
def test_a_closed_window_lets_go_of_its_session_and_its_file(program, qtbot, copies):
    """Also after a large file was read, when the collector sees nothing of what was there by then."""
    window = program.open_window(copies[0])
    wait_ready(qtbot, window)
    for page in ("findings", "file", "memory"):
        window.workspace.pages.open_page(page)
    window.session.begin_export()
    window.session.start_job("check")
    qtbot.waitUntil(lambda: window.shown.export.stage == "draft" and bool(window.shown.check.lines))
    held = [weakref.ref(window.session), weakref.ref(window.session._state.document)]
    gc.freeze()
    window.close()
    qtbot.waitUntil(lambda: not program._leaving)
    QCoreApplication.processEvents()
    gc.collect()
    assert [ref() for ref in held] == [None, None]
    gc.unfreeze()


def test_a_window_can_close_while_its_file_is_read(program, qtbot, copies):
    window = program.open_window(copies[0])
    qtbot.waitUntil(lambda: window.shown is not None)
    window.close()
    assert program.windows == ()


def test_a_file_that_cannot_be_read_is_explained(program, qtbot, tmp_path):
    path = tmp_path / "page.pth"
    path.write_text("<!DOCTYPE html><html><body>Not found</body></html>")
    window = program.open_window(str(path))
    qtbot.waitUntil(lambda: window.shown is not None and window.shown.phase == "failed")
    assert window.shown.failure.what


@pytest.mark.wide
@pytest.mark.parametrize("page", ["memory", "tensor"])
def test_a_picture_shows_the_real_window(qapp, qtbot, tmp_path, page):
    out = tmp_path / "window.png"
    screenshot(str(demo_path()), str(out), size=(1000, 700), theme="dark", page=page)
    image = QImage(str(out))
    assert (image.width(), image.height()) == (1000, 700)
    assert len({image.pixelColor(x, y).name() for x in range(0, 1000, 7) for y in range(0, 700, 7)}) > 30


@pytest.mark.wide
def test_a_picture_of_the_empty_window_and_of_no_place(qapp, qtbot, tmp_path):
    screenshot(None, str(tmp_path / "empty.png"))
    assert (tmp_path / "empty.png").exists()
    with pytest.raises(OSError, match="could not be written"):
        screenshot(None, str(tmp_path / "none" / "empty.png"))


def test_a_picture_is_not_waited_for_forever(qapp, qtbot, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_PICTURE_TIMEOUT_S", -1)
    with pytest.raises(TimeoutError):
        screenshot(None, str(tmp_path / "late.png"))


def test_this_machine_is_asked_once(monkeypatch):
    asked = []

    def answer(_progress: Progress, python: str | None) -> Profile:
        asked.append(python)
        return Profile(id="this", label="this machine", torch_version="2.9")

    monkeypatch.setattr(profile_file, "probe_this_machine", answer)
    probe = MachineProbe()
    assert probe(Progress(), None) is probe(Progress(), None)
    assert probe(Progress(), "venv") is not probe(Progress(), None)
    assert asked == [None, "venv"]


@pytest.mark.wide
def test_a_message_of_thousands_of_files_opens_some_and_says_so(program, qtbot, copies, monkeypatch):
    monkeypatch.setattr(module, "MOST_AT_ONCE", 2)
    opened = []
    monkeypatch.setattr(program, "open_window", lambda path: opened.append(path) or empty)
    empty = Program.open_window(program)
    qtbot.waitUntil(lambda: empty.shown is not None)
    notices = []
    monkeypatch.setattr(empty, "show_notice", notices.append)
    program.open_paths(copies[:2])
    assert (len(opened), notices) == (1, [])
    wait_ready(qtbot, empty)
    program.open_paths([*copies, *["/missing"] * 4093])
    qtbot.waitUntil(lambda: len(opened) == 2)  # the first is shown already
    assert [notice.what for notice in notices] == ["only 2 of 4,096 files were opened"]


@pytest.mark.wide
@pytest.mark.parametrize("demo", [True, False])
def test_main_runs_until_the_last_window_is_closed(qapp, qtbot, monkeypatch, demo):
    programs = []

    def run() -> int:
        (program,) = programs
        wait_ready(qtbot, *program.windows) if demo else qtbot.waitUntil(
            lambda: program.windows[0].shown is not None
        )
        for window in program.windows:
            window.close()
        qtbot.waitUntil(lambda: not program._leaving)
        return 0

    class Watched(Program):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments[:3])
            programs.append(self)

    monkeypatch.setattr(module, "Program", Watched)
    monkeypatch.setattr(module.signal, "signal", lambda *_args: None)
    monkeypatch.setattr(qapp, "exec", run)
    monkeypatch.setattr(module, "make_app", lambda: qapp)
    monkeypatch.chdir(Path.cwd())
    assert main([], demo=demo) == 0


def test_main_ends_at_once_when_the_files_are_handed_over(qapp, monkeypatch):
    monkeypatch.setattr(single_instance, "lead_or_hand_over", lambda _paths: None)
    monkeypatch.setattr(module.signal, "signal", lambda *_args: None)
    assert main(["/x/best.pth"]) == 0


def test_a_file_that_is_shown_is_raised_and_not_opened_again(program, qtbot, copies, tmp_path, monkeypatch):
    raised, followed = [], []
    monkeypatch.setattr(recognizing, "PATIENCE_MS", 100_000)
    monkeypatch.setattr(module, "_bring_to_front", raised.append)
    program.open_paths(copies[:2])
    wait_ready(qtbot, *program.windows)
    first, second = program.windows
    raised.clear()
    link = tmp_path / "link.pth"
    link.symlink_to(copies[0])
    program.open_paths([str(link)])  # as a second launch does
    qtbot.waitUntil(lambda: raised == [first])
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    with monkeypatch.context() as patch:
        patch.setattr(first, "open_paths", followed.append)
        second.open_paths([str(script), copies[0]])  # from another window: its script follows the file
    assert (raised, followed) == ([first, first], [[str(script)]])
    assert program.windows == (first, second)
    assert second.shown.path == copies[1]
    with monkeypatch.context() as patch:
        patch.setattr(first.session, "open", followed.append)
        first.open_paths([copies[0]])  # in its own window it is read again
        qtbot.waitUntil(lambda: followed[1:] == [copies[0]])
    assert raised == [first, first]
    program.open_paths(["no\0name"])
    qtbot.waitUntil(lambda: len(program.windows) == 3)
