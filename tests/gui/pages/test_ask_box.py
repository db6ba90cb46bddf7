from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit

from inspector.gui.pages.findings import AskBox
from tests.gui.looking import button


@pytest.fixture
def box(qtbot, theme) -> AskBox:
    box = AskBox(theme)
    qtbot.addWidget(box)
    box.show()
    QGuiApplication.clipboard().clear()
    return box


def field(box: AskBox) -> QPlainTextEdit:
    return box.findChild(QPlainTextEdit)


def test_the_field_opens_on_request_and_asks_when_the_typing_pauses(box, qtbot):
    assert field(box).isHidden()
    button(box, "Paste").click()
    assert field(box).isVisible()
    with qtbot.waitSignal(box.asked) as asked:
        field(box).setPlainText("RuntimeError: no")
    assert asked.args == ["RuntimeError: no"]


@pytest.mark.parametrize(("copied", "shown"), [("RuntimeError: no", "RuntimeError: no"), ("a recipe", "")])
def test_an_error_on_the_clipboard_is_taken_at_once(box, qtbot, copied, shown):
    QGuiApplication.clipboard().setText(copied)
    box.begin()
    assert field(box).toPlainText() == shown


def test_what_is_there_already_stays(box):
    field(box).setPlainText("an older one")
    QGuiApplication.clipboard().setText("RuntimeError: no")
    box.begin()
    assert field(box).toPlainText() == "an older one"


def test_clearing_ends_the_question(box, qtbot):
    box.begin()
    field(box).setPlainText("RuntimeError: no")
    with qtbot.waitSignal(box.asked) as asked:
        button(box, "Clear").click()
    assert asked.args == [""]
    assert field(box).isHidden()


def test_the_text_of_a_screen_is_shown_without_asking_again(box, qtbot):
    with qtbot.assertNotEmitted(box.asked, wait=400):
        box.show_text("RuntimeError: no")
    assert field(box).toPlainText() == "RuntimeError: no"
    assert field(box).isVisible()
    box.show_text("")
    assert field(box).toPlainText() == ""
    assert field(box).isHidden()


def test_who_empties_the_field_can_go_on_typing(box):
    box.show_text("RuntimeError: no")
    field(box).setPlainText("")
    box._pause.stop()
    box.show_text("")
    assert field(box).isVisible()


def test_a_screen_does_not_take_back_what_is_being_typed(box):
    box.begin()
    field(box).setPlainText("Runtime")
    box.show_text("")
    assert field(box).toPlainText() == "Runtime"
