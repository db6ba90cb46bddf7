from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QLineEdit, QProgressBar, QPushButton, QWidget

from inspector.gui.dialogs.export import dialog as module
from inspector.gui.dialogs.export.dialog import ExportDialog
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.export.looking import Wanted, look_at
from inspector.session.export.page import ExportDraft, ExportPage, ExportResult, ExportWish
from inspector.session.screen import Choice, FailurePage

WANTED = Wanted(source="/no/such/file.pth")
KINDS = (
    Choice(id="copy", label="The whole file, with other devices"),
    Choice(id="in-place", label="Change the file itself"),
    Choice(id="weights", label="The weights alone"),
)
FAILURE = FailurePage(title="No copy was written", what="the disk is full", where="/x/y", remedy="make room")


@pytest.fixture
def draft(tmp_path) -> ExportDraft:
    lines = ("150 tensors move from cuda:0 to cpu", "50 stay on cpu")
    return ExportDraft(
        wish=ExportWish(),
        kinds=KINDS,
        destination=str(tmp_path / "best.cpu.pth"),
        summary=lines,
        size="788 KB",
        can_exclude=True,
        can_verify=True,
    )


@pytest.fixture
def dialog(qtbot, theme, draft) -> ExportDialog:
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = ExportDialog(theme, parent)
    dialog.parent_kept_alive = parent
    dialog.ended.connect(lambda: dialog.show_page(None))  # as the session does
    dialog.back_wanted.connect(lambda: dialog.show_page(asking(draft)))
    dialog.look_wanted.connect(lambda path: dialog.show_page(asking(dialog._page.draft, path)))
    dialog.show_page(asking(draft))
    return dialog


def asking(draft: ExportDraft, path: str | None = None) -> ExportPage:
    path = draft.destination if path is None else path
    return ExportPage(stage="draft", draft=draft, destination=look_at(path, WANTED))


def type_path(dialog: ExportDialog, path: str) -> None:
    place(dialog).setText(path)
    place(dialog).textEdited.emit(path)


def running(work: Progress) -> ExportPage:
    return ExportPage(stage="running", title="Writing the copy", progress=work)


def done(result: ExportResult) -> ExportPage:
    return ExportPage(stage="done", result=result)


def failed(draft: ExportDraft | None, *, cancelled: bool) -> ExportPage:
    return ExportPage(stage="failed", draft=draft, failure=FAILURE, cancelled=cancelled)


def button(dialog: ExportDialog, text: str) -> QPushButton:
    buttons = [each for each in dialog.findChildren(QPushButton) if each.isVisible()]
    return next(each for each in buttons if text in each.text())


def place(dialog: ExportDialog) -> QLineEdit:
    return next(line for line in dialog.findChildren(QLineEdit) if line.accessibleName() == "Destination")


def box(dialog: ExportDialog, text: str) -> QCheckBox:
    return next(each for each in dialog.findChildren(QCheckBox) if text in each.text())


def said(dialog: ExportDialog) -> str:
    return "\n".join(label.text() for label in dialog.findChildren(QLabel) if label.isVisible())


def test_the_draft_tells_what_changes_and_proposes_a_place(dialog, draft):
    assert dialog.state == "draft"
    for line in draft.summary:
        assert line in said(dialog)
    assert "788 KB" in said(dialog)
    assert place(dialog).text() == draft.destination
    assert button(dialog, "Export").isDefault()


def test_export_is_asked_for_once_the_place_is_good(dialog, draft, qtbot):
    with qtbot.waitSignal(dialog.export_wanted) as wanted:
        button(dialog, "Export").click()
    assert wanted.args == [draft.destination, False]


@pytest.mark.parametrize(
    ("where", "told"),
    [("", "Enter a path"), (".", "This is a folder"), ("none/at/all.pth", "There is no folder none.")],
)
def test_a_bad_place_is_told_and_not_exported_to(dialog, tmp_path, where, told):
    type_path(dialog, str(tmp_path / where) if where else "")
    assert told in said(dialog)
    assert not button(dialog, "Export").isEnabled()


def test_an_existing_file_is_replaced_only_when_told_so(dialog, draft, qtbot):
    Path(draft.destination).write_bytes(b"old")
    dialog.show_page(None)
    dialog.show_page(asking(draft))
    assert "best.cpu.pth exists already (3 B)." in said(dialog)
    assert not button(dialog, "Export").isEnabled()
    box(dialog, "Replace").setChecked(True)
    with qtbot.waitSignal(dialog.export_wanted) as wanted:
        button(dialog, "Export").click()
    assert wanted.args == [draft.destination, True]


@pytest.mark.parametrize("answer", ["/somewhere/else.pth", ""])
def test_browsing_fills_the_place_in(dialog, draft, monkeypatch, answer):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_a, **_k: (answer, ""))
    button(dialog, "Browse").click()
    assert place(dialog).text() == (answer or draft.destination)


def test_cancel_closes_the_draft(dialog):
    button(dialog, "Cancel").click()
    assert dialog.isHidden()


def test_a_running_export_shows_how_far_it_is(dialog, qtbot):
    work = Progress()
    work.start("copying records", 1000)
    dialog.show_page(running(work))
    assert dialog.state == "running"
    work.advance(500)
    bar = dialog.findChild(QProgressBar)
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum() // 2)
    assert "copying records" in said(dialog)
    assert "500 B of 1.0 KB" in said(dialog)
    work.start("comparing")
    qtbot.waitUntil(lambda: bar.maximum() == 0)


@pytest.mark.parametrize("way", ["button", "escape", "close"])
def test_a_running_export_is_stopped_and_stays_until_it_has(dialog, draft, qtbot, way):
    page = running(Progress("copying"))
    dialog.show_page(page)
    with qtbot.waitSignal(dialog.cancel_wanted):
        {"button": button(dialog, "Cancel").click, "escape": dialog.reject, "close": dialog.close}[way]()
    dialog.show_page(replace(page, stopping=True))
    assert dialog.isVisible()
    assert "Stopping" in said(dialog)
    assert not button(dialog, "Cancel").isEnabled()
    dialog.show_page(failed(draft, cancelled=True))
    dialog.close()
    assert dialog.isHidden()


def test_the_next_export_begins_with_the_place_that_is_proposed(dialog, draft, tmp_path):
    type_path(dialog, str(tmp_path / "mine.pth"))
    dialog.show_page(None)
    assert dialog.isHidden()
    dialog.show_page(asking(draft))
    assert place(dialog).text() == draft.destination


def test_a_place_whose_name_is_no_text_is_exported_to_as_it_is(dialog, draft, tmp_path, qtbot):
    strange = str(tmp_path / "b\udcffst.cpu.pth")
    dialog.show_page(asking(replace(draft, destination=strange)))
    assert place(dialog).text().endswith("b\\udcffst.cpu.pth")
    with qtbot.waitSignal(dialog.export_wanted) as wanted:
        button(dialog, "Export").click()
    assert wanted.args == [strange, False]


def test_the_end_is_told_with_what_was_verified(dialog, qtbot, monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(module, "show_in_folder", lambda path, _failed: shown.append(path) or True)
    dialog.show_page(running(Progress("copying")))
    copy = str(tmp_path / "copy.pth")
    dialog.show_page(done(ExportResult(destination=copy, lines=("788 KB written", "devices as planned"))))
    assert dialog.state == "result"
    assert "devices as planned" in said(dialog)
    button(dialog, "Show in folder").click()
    assert shown == [Path(copy)]
    with qtbot.waitSignal(dialog.open_wanted) as wanted:
        button(dialog, "Open the copy").click()
    assert wanted.args == [copy]
    assert dialog.isHidden()


def test_close_is_what_enter_does_at_the_end(dialog):
    dialog.show_page(done(ExportResult(destination="/x", lines=())))
    assert button(dialog, "Close").isDefault()
    button(dialog, "Close").click()
    assert dialog.isHidden()


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_failure_is_explained_and_leads_back(dialog, cancelled):
    dialog.show_page(failed(draft, cancelled=cancelled))
    for words in (FAILURE.title, "The disk is full.", FAILURE.where, "Make room."):
        assert words in said(dialog)
    button(dialog, "Back").click()
    assert dialog.state == "draft"


# ------------------------------------------------------------------ what is written


def test_a_change_of_the_file_itself_wants_to_be_confirmed(dialog, draft, qtbot):
    wish = ExportWish(kind="in-place")
    dialog.show_page(
        asking(replace(draft, wish=wish, destination="", warnings=("The file itself is changed.",)))
    )
    assert "Change the file itself" in said(dialog)
    assert "The file itself is changed." in said(dialog)
    assert not place(dialog).isVisible()
    assert not button(dialog, "Change").isEnabled()
    box(dialog, "Change this file").setChecked(True)
    with qtbot.waitSignal(dialog.export_wanted) as wanted:
        button(dialog, "Change").click()
    assert wanted.args == ["", False]


def test_what_cannot_be_written_says_why(dialog, draft):
    dialog.show_page(asking(replace(draft, summary=(), refusal="There are two models.")))
    assert "There are two models." in said(dialog)
    assert not button(dialog, "Export").isEnabled()


def test_a_change_can_be_undone_and_a_copy_has_a_receipt(dialog, qtbot, monkeypatch):
    dialog.show_page(
        done(ExportResult(destination="/x", lines=(), done="Changed", is_copy=False, can_undo=True))
    )
    assert "Changed" in said(dialog)
    with qtbot.waitSignal(dialog.undo_wanted):
        button(dialog, "Undo").click()
    dialog.show_page(done(ExportResult(destination="/x", lines=(), has_receipt=True)))
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    with qtbot.assertNotEmitted(dialog.receipt_wanted):
        button(dialog, "Save receipt").click()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("/x.receipt.json", ""))
    with qtbot.waitSignal(dialog.receipt_wanted) as wanted:
        button(dialog, "Save receipt").click()
    assert wanted.args == ["/x.receipt.json"]


def test_a_place_that_was_typed_is_kept_when_the_wish_changes_and_a_proposed_one_follows(
    dialog, draft, tmp_path
):
    other = replace(draft, wish=ExportWish(kind="weights"), destination=str(tmp_path / "w.pth"))
    dialog.show_page(asking(other))
    assert place(dialog).text() == other.destination
    type_path(dialog, str(tmp_path / "mine.pth"))
    dialog.show_page(asking(draft, str(tmp_path / "mine.pth")))
    assert place(dialog).text() == str(tmp_path / "mine.pth")


def test_nothing_is_exported_before_the_draft_and_its_place_are_known(dialog, draft):
    waiting = ExportPage(stage="looking", draft=draft, destination=look_at(draft.destination, WANTED))
    for page in (waiting, ExportPage(stage="draft", draft=draft), asking(draft, "/somewhere/else.pth")):
        dialog.show_page(page)
        assert not button(dialog, "Export").isEnabled()
        assert not box(dialog, "Replace").isVisible()
    dialog.show_page(asking(draft))
    assert button(dialog, "Export").isEnabled()


def test_an_end_shows_what_was_lost_and_a_way_back_to_a_draft_only(dialog):
    high = dialog.height()
    dialog.show_page(running(Progress("copying")))
    assert dialog.height() < high  # only as high as what it shows
    lost = "Left out: optimizer."
    dialog.show_page(done(ExportResult(destination="/x", lines=("done",), warnings=(lost,))))
    assert lost in said(dialog)
    dialog.show_page(failed(None, cancelled=False))
    assert not any("Back" in each.text() for each in dialog.findChildren(QPushButton) if each.isVisible())


def test_a_copy_of_a_folder_is_called_one(dialog, draft, monkeypatch):
    dialog.show_page(asking(replace(draft, makes_folder=True)))
    assert "Export a fixed copy of the folder" in said(dialog)
    assert "The folder itself stays as it is." in said(dialog)
    asked = []
    ask = lambda *words, **_: asked.append(words[1]) or ("", "")  # noqa: E731
    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    button(dialog, "Browse").click()
    assert asked == ["Name of the new folder"]


def test_a_folder_that_cannot_be_shown_is_named(dialog, monkeypatch):
    notices = []
    monkeypatch.setattr(module, "show_notice", lambda _parent, notice: notices.append(notice.where))
    monkeypatch.setattr(module, "show_in_folder", lambda _path, _failed: False)
    dialog.show_page(done(ExportResult(destination="/runs/x\u202e.pth", lines=())))
    button(dialog, "Show in folder").click()
    assert notices == ["/runs/x\\u202e.pth"]
    dialog.show_page(None)
    dialog._say_no_folder()  # it answered late
    assert notices[1:] == [""]
