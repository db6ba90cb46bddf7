from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QFileDialog, QMessageBox, QSpinBox, QToolButton, QWidget

from inspector.gui.dialogs.machine import MachineDialog
from tests.gui.looking import button


@pytest.fixture
def dialog(qtbot, theme) -> Iterator[MachineDialog]:
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = MachineDialog(theme, parent)
    dialog.show()
    yield dialog
    parent.close()


def test_the_script_is_saved(dialog, tmp_path, monkeypatch):
    path = tmp_path / "probe.py"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    button(dialog, "Save the script").click()
    functions = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)]
    assert "main" in {function.name for function in functions}


def test_a_folder_that_takes_no_file_is_told(dialog, tmp_path, qtbot):
    dialog.save_script(str(tmp_path / "no" / "probe.py"))
    box = dialog.findChild(QMessageBox)
    assert "The script was not saved" in box.text()
    box.close()


def test_a_cancelled_choice_does_nothing(dialog, qtbot, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("", ""))
    with qtbot.assertNotEmitted(dialog.file_chosen):
        button(dialog, "Save the script").click()
        button(dialog, "Open machine.json").click()
    assert dialog.isVisible()


def test_the_answer_is_taken(dialog, qtbot, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("/tmp/machine.json", ""))
    with qtbot.waitSignal(dialog.file_chosen) as chosen:
        button(dialog, "Open machine.json").click()
    assert chosen.args == ["/tmp/machine.json"]


def test_the_command_can_be_copied(dialog):
    dialog.findChild(QToolButton).click()
    assert "checkpoint_inspector_probe.py" in QGuiApplication.clipboard().text()


def test_only_what_can_be_several_is_counted(dialog):
    kind = dialog.findChild(QComboBox)
    count, memory = dialog.findChildren(QSpinBox)
    assert (count.isEnabled(), memory.text()) == (True, "not known")
    count.setValue(4)
    kind.setCurrentText("Apple silicon")
    assert (count.isEnabled(), count.value()) == (False, 1)
    kind.setCurrentText("AMD GPU (ROCm)")
    assert count.isEnabled()
