"""Errors that nobody foresaw, raised where nobody catches them: in slots, events, and threads."""

from __future__ import annotations

import sys
import threading
from functools import partial

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit, QPushButton

from inspector.gui import app as unexpected
from inspector.gui.app import UnexpectedErrors, report_of
from inspector.gui.dialogs.error import ErrorDialog


@pytest.fixture
def printed(monkeypatch) -> list[type[BaseException]]:
    """What the terminal is told."""
    kinds: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, _error, _trace: kinds.append(kind))
    monkeypatch.setattr(threading, "excepthook", lambda raised: kinds.append(raised.exc_type))
    return kinds


@pytest.fixture
def errors(theme, printed):
    errors = UnexpectedErrors(theme)
    errors.install()
    yield errors
    for dialog in dialogs():
        dialog.accept()
    errors.remove()
    errors.deleteLater()


def dialogs() -> list[ErrorDialog]:
    return [
        each for each in QApplication.topLevelWidgets() if isinstance(each, ErrorDialog) and each.isVisible()
    ]


def text_of(dialog: ErrorDialog) -> str:
    return dialog.findChild(QPlainTextEdit).toPlainText()


def fail(words: str = "by hand") -> None:
    raise ZeroDivisionError(words)


def test_an_error_in_a_slot_is_shown_and_can_be_copied(errors, printed, qtbot):
    QTimer.singleShot(0, fail)
    qtbot.waitUntil(lambda: len(dialogs()) == 1)
    (dialog,) = dialogs()
    assert text_of(dialog).startswith("Checkpoint Inspector ")
    assert text_of(dialog).endswith("ZeroDivisionError: by hand")
    assert "in fail" in text_of(dialog)
    assert printed == [ZeroDivisionError]
    copy = next(each for each in dialog.findChildren(QPushButton) if each.text() == "Copy")
    copy.click()
    assert QGuiApplication.clipboard().text() == text_of(dialog)


def test_an_error_in_a_thread_is_shown_by_the_main_thread(errors, printed, qtbot):
    thread = threading.Thread(target=fail, args=("elsewhere",))
    thread.start()
    thread.join()
    assert dialogs() == []
    qtbot.waitUntil(lambda: len(dialogs()) == 1)
    assert text_of(dialogs()[0]).endswith("ZeroDivisionError: elsewhere")
    assert printed == [ZeroDivisionError]


@pytest.mark.wide
def test_the_same_error_again_and_again_is_shown_once(errors, window, qtbot):
    """As an error in what paints a widget is."""
    for number in range(6):
        QTimer.singleShot(0, partial(fail, f"number {number}"))
    qtbot.waitUntil(lambda: bool(dialogs()) and "5 more errors" in words_of(dialogs()[0]))
    assert len(dialogs()) == 1
    dialogs()[0].accept()
    QTimer.singleShot(0, fail)
    qtbot.waitUntil(lambda: "Again: ZeroDivisionError" in window.statusBar().currentMessage())
    assert dialogs() == []


def words_of(dialog: ErrorDialog) -> str:
    return "\n".join(label.text() for label in dialog.findChildren(QLabel) if label.isVisible())


def test_other_errors_join_the_dialog_that_is_open(errors, qtbot, monkeypatch):
    def other() -> None:
        raise KeyError("other")

    QTimer.singleShot(0, fail)
    QTimer.singleShot(0, other)
    qtbot.waitUntil(lambda: bool(dialogs()) and "KeyError" in text_of(dialogs()[0]))
    assert len(dialogs()) == 1
    assert text_of(dialogs()[0]).index("ZeroDivisionError") < text_of(dialogs()[0]).index("KeyError")
    dialogs()[0].accept()
    monkeypatch.setattr(unexpected, "_MOST_SHOWN", 2)
    QTimer.singleShot(0, [].pop)
    qtbot.wait(20)
    assert dialogs() == []


@pytest.mark.wide
def test_the_window_goes_on(errors, window, session, qtbot, monkeypatch):
    session.set_target.side_effect = RuntimeError("in the session")
    window.top_bar._targets.activated.emit(1)
    qtbot.waitUntil(lambda: len(dialogs()) == 1)
    dialogs()[0].accept()
    window.actions_by_name["reload"].trigger()
    session.reload.assert_called_once_with()


def test_what_is_very_long_is_cut_and_an_interrupt_is_none(errors, printed, qtbot):
    report = report_of(ValueError, ValueError("x" * 1_000_000), None)
    assert len(report.text) < 25_000
    assert report.text.startswith("Checkpoint Inspector ")
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    qtbot.wait(20)
    assert (printed, dialogs()) == ([KeyboardInterrupt], [])


def test_the_hooks_are_given_back(theme, printed, qapp):
    before = sys.excepthook, threading.excepthook
    errors = UnexpectedErrors(theme)
    errors.remove()
    errors.install()
    assert sys.excepthook != before[0]
    errors.remove()
    assert (sys.excepthook, threading.excepthook) == before
    errors.deleteLater()
