from __future__ import annotations

import pytest
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QComboBox, QPlainTextEdit, QPushButton

from inspector.gui.pages.code import CodePanel
from inspector.gui.widgets import controls
from inspector.records import replace
from inspector.session.screen import Choice, CodePage
from tests.gui import fakes

SCREEN = fakes.ready_screen()


@pytest.fixture
def code(qtbot, theme) -> CodePanel:
    panel = CodePanel(theme)
    qtbot.addWidget(panel)
    panel.show_screen(SCREEN)
    return panel


def colors_of(panel: CodePanel) -> dict[str, str]:
    """Return the color of the first place of each word."""
    document = panel.findChild(QPlainTextEdit).document()
    found: dict[str, str] = {}
    block = document.begin()
    while block.isValid():
        for form in block.layout().formats():
            word = block.text()[form.start : form.start + form.length]
            found.setdefault(word, form.format.foreground().color().name())
        block = block.next()
    return found


def test_the_code_is_there_and_colored(code, theme):
    assert code.findChild(QPlainTextEdit).toPlainText() == fakes.CODE
    colors = colors_of(code)
    assert colors["import"] == theme.tokens.colors["code_keyword"]
    assert colors['"best.pth"'] == theme.tokens.colors["code_string"]
    assert colors["load"] == theme.tokens.colors["code_name"]
    assert colors["# saved on two GPUs"] == theme.tokens.colors["code_comment"]
    assert colors["1"] == theme.tokens.colors["code_number"]
    theme.set_mode("dark")
    assert colors_of(code)["import"] == theme.tokens.colors["code_keyword"]


def test_the_style_is_chosen_by_the_user_alone(code, qtbot):
    combo = code.findChild(QComboBox)
    assert [combo.itemText(place) for place in range(combo.count())] == [
        "Plain torch.load",
        "Resume training",
    ]
    with qtbot.assertNotEmitted(code.style_chosen):
        code.show_screen(replace(SCREEN, code=replace(SCREEN.code, style="resume")))
    assert combo.currentData() == "resume"
    with qtbot.waitSignal(code.style_chosen) as chosen:
        combo.activated.emit(0)
    assert chosen.args == ["plain"]


def test_one_style_is_no_choice_and_no_code_no_copy(code):
    page = CodePage(styles=(Choice(id="plain", label="Plain"),), style="plain", text="import torch\n")
    code.show_screen(replace(SCREEN, code=page))
    assert not code.findChild(QComboBox).isEnabled()
    code.show_screen(replace(SCREEN, code=None))
    assert not code.findChild(QPushButton).isEnabled()


def test_the_same_code_keeps_what_is_selected(code):
    text = code.findChild(QPlainTextEdit)
    text.moveCursor(QTextCursor.MoveOperation.End)
    code.show_screen(SCREEN)
    assert text.textCursor().atEnd()


def test_copying_is_asked_for_and_confirmed(code, qtbot, monkeypatch):
    monkeypatch.setattr(controls, "COPIED_MS", 20)
    button = code.findChild(QPushButton)
    with qtbot.waitSignal(code.copy_wanted):
        button.click()
    code.confirm_copied()
    assert button.text() == "Copied"
    qtbot.waitUntil(lambda: button.text() == "Copy")
