from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QLineEdit, QProgressBar, QPushButton, QWidget

from inspector.gui import export_dialog as module
from inspector.gui.export_dialog import ExportDialog
from inspector.progress import Progress
from inspector.session.screen import ExportDraft, FailurePage

FAILURE = FailurePage(title="No copy was written", what="the disk is full", where="/x/y", remedy="make room")


@pytest.fixture
def draft(tmp_path) -> ExportDraft:
    lines = ("150 tensors move from cuda:0 to cpu", "50 stay on cpu")
    return ExportDraft(destination=str(tmp_path / "best.cpu.pth"), summary=lines, size="788 KB")


@pytest.fixture
def dialog(qtbot, theme, draft) -> ExportDialog:
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = ExportDialog(theme, parent)
    dialog.parent_kept_alive = parent
    dialog.show_draft(draft)
    dialog.open()
    return dialog


def button(dialog: ExportDialog, text: str) -> QPushButton:
    buttons = [each for each in dialog.findChildren(QPushButton) if each.isVisible()]
    return next(each for each in buttons if text in each.text())


def said(dialog: ExportDialog) -> str:
    return "\n".join(label.text() for label in dialog.findChildren(QLabel) if label.isVisible())


def test_the_draft_tells_what_changes_and_proposes_a_place(dialog, draft):
    assert dialog.state == "draft"
    for line in draft.summary:
        assert line in said(dialog)
    assert "788 KB" in said(dialog)
    assert dialog.findChild(QLineEdit).text() == draft.destination
    assert button(dialog, "Export").isDefault()


def test_export_is_asked_for_once_the_place_is_good(dialog, draft, qtbot):
    with qtbot.waitSignal(dialog.export_wanted) as wanted:
        button(dialog, "Export").click()
    assert wanted.args == [draft.destination, False]


@pytest.mark.parametrize(
    ("place", "told"),
    [("", "Say where"), (".", "This is a folder"), ("none/at/all.pth", "There is no such folder")],
)
def test_a_bad_place_is_told_and_not_exported_to(dialog, tmp_path, place, told):
    dialog.findChild(QLineEdit).setText(str(tmp_path / place) if place else "")
    assert told in said(dialog)
    assert not button(dialog, "Export").isEnabled()


def test_an_existing_file_is_replaced_only_when_told_so(dialog, draft, qtbot):
    Path(draft.destination).write_bytes(b"old")
    dialog.show_draft(draft)
    assert "There is a file of this name already" in said(dialog)
    assert not button(dialog, "Export").isEnabled()
    dialog.findChild(QCheckBox).setChecked(True)
    with qtbot.waitSignal(dialog.export_wanted) as wanted:
        button(dialog, "Export").click()
    assert wanted.args == [draft.destination, True]


@pytest.mark.parametrize("answer", ["/somewhere/else.pth", ""])
def test_browsing_fills_the_place_in(dialog, draft, monkeypatch, answer):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_a, **_k: (answer, ""))
    button(dialog, "Browse").click()
    assert dialog.findChild(QLineEdit).text() == (answer or draft.destination)


def test_cancel_closes_the_draft(dialog):
    button(dialog, "Cancel").click()
    assert dialog.isHidden()


def test_a_running_export_shows_how_far_it_is(dialog, qtbot):
    work = Progress()
    work.start("copying records", 1000)
    dialog.show_running(work)
    assert dialog.state == "running"
    work.advance(500)
    bar = dialog.findChild(QProgressBar)
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum() // 2)
    assert "copying records" in said(dialog)
    assert "500 B of 1.0 KB" in said(dialog)
    work.start("comparing")
    qtbot.waitUntil(lambda: bar.maximum() == 0)


@pytest.mark.parametrize("way", ["button", "escape", "close"])
def test_a_running_export_is_stopped_once_and_stays_until_it_has(dialog, qtbot, way):
    dialog.show_running(Progress("copying"))
    with qtbot.waitSignal(dialog.cancel_wanted):
        {"button": button(dialog, "Cancel").click, "escape": dialog.reject, "close": dialog.close}[way]()
    assert dialog.isVisible()
    assert "Stopping" in said(dialog)
    with qtbot.assertNotEmitted(dialog.cancel_wanted, wait=150):
        dialog.reject()
    dialog.show_failed(FAILURE, cancelled=True)
    dialog.close()
    assert dialog.isHidden()


def test_the_end_is_told_with_what_was_verified(dialog, qtbot, monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(module, "show_in_folder", shown.append)
    dialog.show_running(Progress("copying"))
    copy = str(tmp_path / "copy.pth")
    dialog.show_done(copy, ("788 KB written", "devices as planned"))
    assert dialog.state == "result"
    assert "devices as planned" in said(dialog)
    button(dialog, "Show in folder").click()
    assert shown == [Path(copy)]
    with qtbot.waitSignal(dialog.open_wanted) as wanted:
        button(dialog, "Open the copy").click()
    assert wanted.args == [copy]
    assert dialog.isHidden()


def test_close_is_what_enter_does_at_the_end(dialog):
    dialog.show_done("/x", ())
    assert button(dialog, "Close").isDefault()
    button(dialog, "Close").click()
    assert dialog.isHidden()


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_failure_is_explained_and_leads_back(dialog, cancelled):
    dialog.show_failed(FAILURE, cancelled=cancelled)
    for words in (FAILURE.title, "The disk is full.", FAILURE.where, "Make room."):
        assert words in said(dialog)
    button(dialog, "Back").click()
    assert dialog.state == "draft"


def test_the_dialog_is_only_as_high_as_its_state(dialog):
    high = dialog.height()
    dialog.show_running(Progress("copying"))
    assert dialog.height() < high
