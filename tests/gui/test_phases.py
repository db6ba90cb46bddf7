"""The pages that stand in place of the tree: empty, opening and failed."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QProgressBar, QToolButton

from inspector.gui import phase_stack
from inspector.gui.start.empty import EmptyPage, RecentRow
from inspector.gui.start.failure import FailurePageWidget, OpeningPage
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.screen import FindingRow
from tests.gui import fakes
from tests.gui.looking import button, shown

PATHS = tuple(f"/runs/{number}/best.pth" for number in range(7))


@pytest.fixture
def empty(qtbot, theme) -> EmptyPage:
    page = EmptyPage(theme)
    qtbot.addWidget(page)
    page.show_screen(fakes.empty_screen(PATHS))
    page.show()
    return page


def test_the_empty_window_makes_a_promise(empty):
    assert "Drop a checkpoint here" in shown(empty)
    assert "Nothing is executed, nothing is uploaded." in shown(empty)


@pytest.mark.parametrize(("text", "signal"), [("Open", "open_wanted"), ("demo", "demo_wanted")])
def test_the_empty_window_offers_two_ways(empty, qtbot, text, signal):
    with qtbot.waitSignal(getattr(empty, signal)):
        button(empty, text).click()


def test_a_few_recent_files_are_one_click_away(empty, qtbot):
    rows = empty.findChildren(RecentRow)
    assert len(rows) == 5
    assert "/runs/0" in shown(empty)
    with qtbot.waitSignal(empty.path_wanted) as wanted:
        rows[1].click()
    assert wanted.args == [PATHS[1]]
    empty.show_screen(fakes.empty_screen())
    assert "Recent files" not in shown(empty)


def test_an_error_is_pasted_and_answered_where_no_file_is_open(empty, qtbot):
    QGuiApplication.clipboard().clear()
    button(empty, "Paste an error").click()
    assert (empty._zone.isHidden(), empty._ask.isHidden()) == (True, False)
    with qtbot.waitSignal(empty.error_pasted) as asked:
        empty.findChild(QPlainTextEdit).setPlainText("RuntimeError: no")
    assert asked.args == ["RuntimeError: no"]
    card = FindingRow(
        id="x", tone="warning", title="Why it is", detail="d", opens="/b\udcff.pth", opening="Open b"
    )
    empty.show_screen(replace(fakes.empty_screen(PATHS), error_text="RuntimeError: no", explanation=card))
    qtbot.waitUntil(lambda: "Why it is" in shown(empty))
    empty.findChild(QPlainTextEdit).setFocus()
    qtbot.keyClick(empty.findChild(QPlainTextEdit), Qt.Key.Key_Tab)
    assert button(empty, "Open b").hasFocus()
    with qtbot.waitSignal(empty.path_wanted) as wanted:
        button(empty, "Open b").click()
    assert wanted.args == ["/b\udcff.pth"]
    button(empty, "Clear").click()
    empty.show_screen(fakes.empty_screen(PATHS))
    qtbot.waitUntil(lambda: "Why it is" not in shown(empty))
    assert not empty._zone.isHidden()


def test_the_drop_target_lights_up(empty):
    empty.show_hot(hot=True)
    assert empty._zone.property("hot") == "true"
    empty.show_hot(hot=False)
    assert empty._zone.property("hot") == "false"


def test_opening_is_blank_at_first_and_then_tells_how_far_it_is(qtbot):
    page = OpeningPage()
    qtbot.addWidget(page)
    page.show()
    work = Progress()
    screen = replace(fakes.empty_screen(), phase="opening", path="/x/best.pth", progress=work)
    page.show_screen(screen)
    assert "best.pth" not in shown(page)
    work.start("reading opcodes", 100)
    work.advance(25)
    qtbot.waitUntil(lambda: "reading opcodes" in shown(page))
    assert "Opening best.pth" in shown(page)
    bar = page.findChild(QProgressBar)
    assert bar.value() * 4 == bar.maximum()
    with qtbot.waitSignal(page.cancel_wanted):
        button(page, "Cancel").click()
    page.show_screen(fakes.empty_screen())
    assert "best.pth" not in shown(page)


def test_a_failure_tells_what_where_and_what_to_do(qtbot, theme):
    page = FailurePageWidget(theme)
    qtbot.addWidget(page)
    page.show()
    screen = fakes.failed_screen()
    page.show_screen(screen)
    for words in (screen.failure.title, screen.failure.what, screen.failure.where, screen.failure.remedy):
        assert words in shown(page)
    with qtbot.waitSignal(page.open_wanted):
        button(page, "Open another").click()
    with qtbot.waitSignal(page.retry_wanted):
        button(page, "Try again").click()
    page.show_screen(replace(screen, failure=replace(screen.failure, where="", remedy="")))
    assert "What to do" not in shown(page)
    assert "What loading would run" not in shown(page)
    runs = "Loading it can run commands: as far as it could be read, it calls posix.system()."
    page.show_screen(replace(screen, failure=replace(screen.failure, runs=runs)))
    assert "What loading would run" in shown(page)
    assert runs in shown(page)
    for what, is_shown in (("this is a page (HTML), indeed", False), ("this is a page titled X", True)):
        failure = replace(screen.failure, title="This is a page, indeed", what=what)
        page.show_screen(replace(screen, failure=failure))
        assert page._what.isHidden() is not is_shown
    page.show_screen(replace(screen, failure=None))


def test_code_for_another_format_can_be_copied(qtbot, theme):
    page = FailurePageWidget(theme)
    qtbot.addWidget(page)
    screen = fakes.failed_screen()
    page.show_screen(replace(screen, failure=replace(screen.failure, code="import torch\n\nx = 1\n")))
    page.show()
    copy = page.findChild(QToolButton)
    assert copy.isVisible()
    copy.click()
    assert QGuiApplication.clipboard().text() == "import torch\n\nx = 1\n"
    page.show_screen(screen)
    assert not copy.isVisible()


def test_a_window_that_is_new_says_soon_that_a_file_is_opened(make_window, qtbot, monkeypatch):
    monkeypatch.setattr(phase_stack, "_SOON_MS", 1 << 30)
    empty = fakes.empty_screen()
    opening = replace(empty, phase="opening", path="/x/best.pth", progress=Progress("opening"))
    window = make_window(opening)
    stack = window.centralWidget()
    assert stack.currentWidget() is stack._blank  # most files are open before one could read it
    stack._say_opening()
    assert stack.currentWidget() is stack._pages["opening"]
    window.show_screen(empty)
    window.show_screen(opening)
    assert stack.currentWidget() is stack._pages["opening"]
    other = make_window(opening)
    other.show_screen(empty)
    other.centralWidget()._say_opening()
    assert other.centralWidget().is_empty_page
