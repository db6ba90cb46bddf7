from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QListWidget, QWidget

from inspector.gui.dialogs.machine import PythonsDialog
from inspector.session.jobs.pythons import PythonRow, PythonsPage
from tests.gui.looking import button

ROWS = tuple(
    PythonRow(path=path, title=path, detail="conda", is_chosen=path == "/b", is_usable=path != "/c")
    for path in ("/a", "/b", "/c")
)


@pytest.fixture
def dialog(qtbot, theme) -> Iterator[PythonsDialog]:
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = PythonsDialog(theme, parent)
    dialog.show_page(PythonsPage(rows=(), is_looking=True))
    yield dialog
    parent.close()


def test_the_one_in_use_is_selected_and_another_is_chosen(dialog, qtbot):
    assert dialog.isVisible()
    assert not button(dialog, "Use this Python").isEnabled()
    dialog.show_page(PythonsPage(rows=ROWS, is_looking=False))
    rows = dialog.findChild(QListWidget)
    assert rows.currentRow() == 1
    assert "(in use)" in rows.item(1).text()
    assert not rows.item(2).flags() & Qt.ItemFlag.ItemIsSelectable
    rows.setCurrentRow(0)
    chosen = []
    dialog.chosen.connect(chosen.append)
    with qtbot.waitSignal(dialog.ended):
        qtbot.keyClick(rows, Qt.Key.Key_Return)
    assert chosen == ["/a"]
    assert not dialog.isVisible()


def test_one_that_gives_no_answer_cannot_be_chosen(dialog, qtbot):
    dialog.show_page(PythonsPage(rows=ROWS, is_looking=False))
    dialog.findChild(QListWidget).setCurrentRow(2)
    assert not button(dialog, "Use this Python").isEnabled()
    with qtbot.assertNotEmitted(dialog.chosen):
        dialog.findChild(QListWidget).itemActivated.emit(dialog.findChild(QListWidget).item(2))


def test_another_can_be_looked_for(dialog, qtbot, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("", ""))
    with qtbot.assertNotEmitted(dialog.chosen):
        button(dialog, "Browse").click()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("/d", ""))
    with qtbot.waitSignal(dialog.chosen) as found:
        button(dialog, "Browse").click()
    assert found.args == ["/d"]


def test_cancel_chooses_nothing(dialog, qtbot):
    with qtbot.assertNotEmitted(dialog.chosen), qtbot.waitSignal(dialog.ended):
        button(dialog, "Cancel").click()
