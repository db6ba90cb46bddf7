from __future__ import annotations

import dataclasses
import gc
import sys
from pathlib import PurePath

import pytest
from PySide6.QtCore import QCoreApplication, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QWidget,
)

from inspector.gui.dialogs.export.draft import DraftPage
from inspector.gui.dialogs.machine import MachineDialog
from inspector.gui.main_window import MainWindow
from inspector.gui.pages.memory.map_panel import MapPart
from inspector.gui.pages.memory.panel import ChartCard
from inspector.gui.pages.tabs import PageTabs
from inspector.gui.settings import Settings
from inspector.gui.start.empty import EmptyPage, RecentRow
from inspector.gui.start.failure import FailurePageWidget, OpeningPage
from inspector.gui.widgets.dropdown import MapMenu
from inspector.gui.widgets.path_text import path_of_url, start_folder
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.export.page import ExportDraft, ExportPage, ExportResult, ExportWish
from inspector.session.screen import Choice, FailurePage, Loading
from tests.gui import fakes
from tests.gui.looking import button
from tests.unit.report.charts.maps import map_of, sized

READY = fakes.ready_screen()
COPY = Qt.DropAction.CopyAction
MOVE = Qt.DropAction.MoveAction


def page_of(window) -> QWidget:
    return window.centralWidget().currentWidget()


# ------------------------------------------------------------------ screens


def test_each_phase_has_its_page(make_window):
    window = make_window(fakes.empty_screen())
    assert isinstance(page_of(window), EmptyPage)
    opening = replace(fakes.empty_screen(), phase="opening", path="/x/best.pth", progress=Progress("reading"))
    window.show_screen(opening)
    assert isinstance(page_of(window), OpeningPage)
    window.show_screen(fakes.failed_screen())
    assert isinstance(page_of(window), FailurePageWidget)
    window.show_screen(READY)
    assert page_of(window) is window.workspace
    window.show_screen(fakes.empty_screen())
    assert isinstance(page_of(window), EmptyPage)


def test_a_workspace_that_was_built_before_its_session_is_connected_to_it(qtbot, theme, session):
    """The frame stands, and the workspace in it, while what reads files is still imported."""
    window = MainWindow(theme, Settings(fresh=True))
    qtbot.addWidget(window)
    window.workspace.show()
    window.attach(session)
    window.tree.node_chosen.emit(3)
    session.select.assert_called_once_with(3)
    window.workspace.device_map.menu.all_chosen.emit("cpu")
    session.map_all.assert_called_once_with("cpu")


def test_title_and_status_line(make_window):
    window = make_window(fakes.empty_screen())
    assert window.windowTitle() == "Checkpoint Inspector"
    window.show_screen(READY)
    assert window.windowTitle() == "best.pth - Checkpoint Inspector"
    words = [label.text() for label in window.statusBar().findChildren(QLabel)]
    assert any("opened in 0.04 s" in text for text in words)
    buttons = window.statusBar().findChildren(QPushButton)
    path = next(each for each in buttons if each.accessibleName() == "About this file (Ctrl+I)")
    assert READY.path in path.toolTip()
    path.click()
    assert window.workspace.pages.current_id == "file"


@pytest.mark.wide
def test_showing_a_screen_wants_nothing(window, session):
    QCoreApplication.processEvents()  # a window that becomes active looks at its file
    session.reset_mock()
    for screen in (
        replace(READY, target="mps", selected=7, query="conv", matches=(5, 7)),
        replace(READY, device_map=tuple(replace(row, to="mps") for row in READY.device_map)),
        replace(READY, code=replace(READY.code, style="resume")),
        fakes.failed_screen(),
        fakes.empty_screen(),
        READY,
    ):
        window.show_screen(screen)
    wanted = [name for name, *_ in session.mock_calls if name != "look_at_file"]  # which the activation wants
    assert wanted == []


@pytest.mark.wide
def test_the_same_screen_touches_nothing(window, monkeypatch):
    window.show_screen(READY)
    space = window.workspace

    def fail(*_args: object) -> None:
        raise AssertionError("touched")

    for part, method in (
        (space.tree, "show_tree"),
        (space.tree, "show_matches"),
        (space.tree, "show_selected"),
        (space.banner, "show_banner"),
        (space.banner, "show_safety"),
        (space.device_map, "show_rows"),
        (space.pages.page("overview"), "show_screen"),
    ):
        monkeypatch.setattr(part, method, fail)
    window.show_screen(replace(READY))


@pytest.mark.wide
def test_the_search_shows_its_count_and_place(window):
    matches = tuple(place for place, node in enumerate(READY.tree.nodes) if node.name == "conv1")
    window.show_screen(replace(READY, query="conv1", matches=matches, selected=matches[2]))
    box = window.search
    assert f"3 of {len(matches)}" in [label.text() for label in box.findChildren(QLabel)]
    assert box.findChild(QLineEdit).text() == "conv1"
    tree = window.workspace.tree
    assert tree.current_node() == matches[2]
    assert not tree.model().index_of(1).isValid()
    box.only_toggled.emit(False)
    assert tree.model().index_of(1).isValid()


# ------------------------------------------------------------------ what the user does


def test_a_device_is_chosen_only_where_there_are_several(window, session, qtbot):
    box = window.top_bar._devices
    assert not box.isVisible()
    devices = (Choice(id="", label="any device"), Choice(id="cuda:1", label="cuda:1"))
    window.show_screen(replace(READY, devices=devices, wanted="cuda:1"))
    qtbot.waitUntil(box.isVisible)
    assert (box.currentText(), box.accessibleName()) == ("cuda:1", "Device that is wanted there")
    box.activated.emit(0)
    session.set_wanted.assert_called_once_with("")
    window.show_screen(READY)
    qtbot.waitUntil(lambda: not box.isVisible())
    assert box.count() == 0


@pytest.mark.wide
def test_the_target_the_map_and_the_style_are_handed_on(window, session):
    window.top_bar._targets.activated.emit(2)
    session.set_target.assert_called_once_with("2xcuda")
    window.workspace.device_map.mapping_chosen.emit("cuda:0", "mps")
    session.set_mapping.assert_called_once_with("cuda:0", "mps")
    for menu in (window.workspace.device_map.menu, window.findChild(MapMenu)):
        session.reset_mock()
        menu.all_chosen.emit("mps")
        session.map_all.assert_called_once_with("mps")
        menu.as_saved_wanted.emit()
        session.map_as_saved.assert_called_once_with()
        menu.suggested_wanted.emit()
        session.map_as_suggested.assert_called_once_with()
    window.workspace.pages.open_page("code")
    window.workspace.pages.page("code").style_chosen.emit("resume")
    session.set_code_style.assert_called_once_with("resume")
    window.show_page("file")
    page = window.workspace.pages.page("file")
    page.check_wanted.emit()
    session.start_job.assert_called_once_with("check")
    page.check_cancelled.emit()
    session.stop_job.assert_called_once_with("check")
    window.show_page("memory")
    window.workspace.pages.page("memory").bars.loading_chosen.emit(Loading(ranks=2))
    session.set_loading.assert_called_once_with(Loading(ranks=2))
    window.actions_by_name["paste_error"].trigger()
    window.workspace.pages.page("findings").error_pasted.emit("KeyError")
    session.explain_error.assert_called_once_with("KeyError", start_folder())


@pytest.mark.wide
def test_choosing_and_activating_a_row(window, session):
    window.workspace.tree.node_chosen.emit(5)
    session.select.assert_called_once_with(5)
    window.workspace.tree.node_activated.emit(6)
    session.select.assert_called_with(6)
    assert window.workspace.pages.current_id == "tensor"
    window.workspace.pages.open_page("findings")
    window.workspace.pages.page("findings").node_wanted.emit(7)
    session.select.assert_called_with(7)


@pytest.mark.wide
def test_the_banner_leads_to_export_code_and_findings(window, session):
    banner = window.workspace.banner
    banner.export_wanted.emit()
    session.begin_export.assert_called_once_with()
    banner.copy_code_wanted.emit()
    assert QGuiApplication.clipboard().text() == fakes.CODE
    banner.why_wanted.emit()
    assert window.workspace.pages.current_id == "findings"


@pytest.mark.wide
def test_copying_from_the_tree(window, session):
    session.node_path.return_value = "model/conv1.weight"
    session.node_expression.return_value = 'checkpoint["model"]["conv1.weight"]'
    window.show_screen(replace(READY, selected=5))
    window.actions_by_name["copy_path"].trigger()
    assert QGuiApplication.clipboard().text() == "model/conv1.weight"
    window.actions_by_name["copy_expression"].trigger()
    assert QGuiApplication.clipboard().text() == 'checkpoint["model"]["conv1.weight"]'
    session.node_expression.return_value = ""
    window.actions_by_name["copy_expression"].trigger()
    assert QGuiApplication.clipboard().text() == 'checkpoint["model"]["conv1.weight"]'
    assert "Only a tensor" in window.statusBar().currentMessage()
    window.actions_by_name["copy_rows"].trigger()
    assert QGuiApplication.clipboard().text().startswith("Name\tDevice")
    assert window.statusBar().currentMessage() == "Copied 2 lines"


@pytest.mark.wide
def test_matches_are_walked_round(window, session):
    matches = (5, 9, 12)
    window.show_screen(replace(READY, query="x", matches=matches, selected=12))
    window.actions_by_name["find_next"].trigger()
    session.select.assert_called_with(5)
    window.actions_by_name["find_previous"].trigger()
    session.select.assert_called_with(9)
    window.show_screen(replace(READY, query="x", matches=matches, selected=None))
    window.actions_by_name["find_next"].trigger()
    session.select.assert_called_with(5)
    window.actions_by_name["find_previous"].trigger()
    session.select.assert_called_with(12)


@pytest.mark.wide
def test_find_and_escape(window, session, qtbot):
    window.actions_by_name["find"].trigger()
    line = window.search.findChild(QLineEdit)
    qtbot.waitUntil(line.hasFocus)
    line.setText("conv")
    window.search.flush()
    session.search.assert_called_with("conv")
    qtbot.keyClick(line, Qt.Key.Key_Escape)
    session.search.assert_called_with("")
    qtbot.waitUntil(window.workspace.tree.hasFocus)


@pytest.mark.wide
def test_cancel_and_retry(window, session):
    stack = window.centralWidget()
    stack.cancel_wanted.emit()
    session.cancel_opening.assert_called_once_with()
    stack.retry_wanted.emit()
    session.reload.assert_called_once_with()


def test_closing_without_a_file_closes_the_window(make_window, session):
    window = make_window(fakes.empty_screen())
    window.actions_by_name["close"].trigger()
    assert not window.isVisible()
    session.close.assert_not_called()


# ------------------------------------------------------------------ files from outside


def drag(kind: type, paths: list[str], keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path) for path in paths])
    place = QPointF(300, 300) if kind is QDropEvent else QPoint(300, 300)
    event = kind(place, COPY | MOVE, data, Qt.MouseButton.LeftButton, keys)
    event.data_kept_alive = data
    event.setDropAction(MOVE)
    return event


def test_a_dropped_file_is_copied_from_and_opened_after_the_drop(make_window, session, qtbot):
    window = make_window(fakes.empty_screen())
    enter = drag(QDragEnterEvent, ["/x/best.pth"])
    enter.ignore()
    window.dragEnterEvent(enter)
    assert enter.isAccepted()
    assert enter.dropAction() == COPY
    assert page_of(window)._zone.property("hot") == "true"
    drop = drag(QDropEvent, ["/x/best.pth"])
    window.dropEvent(drop)
    assert (drop.isAccepted(), drop.dropAction()) == (True, COPY)
    session.open.assert_not_called()
    qtbot.waitUntil(lambda: session.open.called)
    session.open.assert_called_once_with("/x/best.pth")
    assert page_of(window)._zone.property("hot") == "false"


def test_what_is_dropped_before_there_is_a_session_is_opened_with_it(qtbot, theme, session):
    window = MainWindow(theme, Settings(fresh=True))
    qtbot.addWidget(window)
    window.open_paths(["/early.pth", "/train.py"])
    window.attach(session)
    assert [call.args for call in session.open.mock_calls] == [("/early.pth",), ("/train.py",)]


def test_several_files_get_a_window_each(make_window, session, qtbot):
    window = make_window(fakes.empty_screen())
    with qtbot.waitSignal(window.files_wanted) as wanted:
        window.dropEvent(drag(QDropEvent, ["/a.pth", "/b.pth", "/c.pth"]))
    assert wanted.args == [["/b.pth", "/c.pth"]]
    session.open.assert_called_once_with("/a.pth")


def test_with_ctrl_a_dropped_file_is_compared_with_the_open_one(make_window, session, qtbot):
    ctrl = Qt.KeyboardModifier.ControlModifier
    window = make_window(fakes.ready_screen())
    with qtbot.waitSignal(window.comparison_wanted) as wanted:
        window.dropEvent(drag(QDropEvent, ["/b.pth"], ctrl))
    assert wanted.args == [[window.shown.path, "/b.pth"]]
    session.open.assert_not_called()
    window.show_screen(fakes.empty_screen())
    window.compare_with(["/c.pth"])
    window.dropEvent(drag(QDropEvent, ["/b.pth"], ctrl))
    qtbot.waitUntil(lambda: session.open.called)
    session.open.assert_called_once_with("/b.pth")


def test_scripts_are_followed_with_the_file_beside_them(make_window, session, qtbot):
    window = make_window(fakes.empty_screen())
    window.open_paths(["/train.py", "/a.pth", "/more.ipynb"])
    assert [call.args for call in session.open.mock_calls] == [("/a.pth",), ("/train.py",)]
    window.open_paths(["/more.ipynb"])
    session.open.assert_called_with("/more.ipynb")


@pytest.mark.wide
def test_over_an_open_file_the_window_says_that_a_drop_is_welcome(window):
    enter = drag(QDragEnterEvent, ["/x/best.pth"])
    window.dragEnterEvent(enter)
    assert window._overlay.isVisible()
    assert window._overlay._text == "Drop to open, or with Ctrl to compare"
    asked = drag(QDragMoveEvent, ["/x/best.pth"], Qt.KeyboardModifier.ControlModifier)
    window.dragMoveEvent(asked)
    assert (asked.isAccepted(), asked.dropAction()) == (True, COPY)
    assert window._overlay._text == f"Drop to compare with {PurePath(window.shown.path).name}"
    assert window._overlay.geometry() == window.centralWidget().geometry()
    assert window._overlay.grab().toImage().pixelColor(40, 40).name() != "#000000"
    window.dragLeaveEvent(QDragLeaveEvent())
    assert not window._overlay.isVisible()
    window.show_screen(fakes.failed_screen())
    window.dragMoveEvent(asked)
    assert window._overlay._text == "Drop to open"


def test_the_workspace_is_made_while_a_file_is_read(make_window):
    window = make_window(fakes.empty_screen())
    window.prepare()
    assert window.centralWidget().built_workspace is None
    window.show_screen(replace(fakes.empty_screen(), phase="opening", progress=Progress("reading")))
    window.prepare()
    assert window.centralWidget().built_workspace is not None


def test_what_is_no_file_is_not_taken(window):
    event = drag(QDragEnterEvent, [])
    event.ignore()
    window.dragEnterEvent(event)
    assert not event.isAccepted()
    window.dragLeaveEvent(QDragLeaveEvent())


@pytest.mark.wide
def test_no_part_of_the_window_keeps_a_drop(window):
    for page in ("memory", "tensor", "findings", "code", "file"):
        window.workspace.pages.open_page(page)
    takers = [
        widget for widget in window.findChildren(QWidget) if widget.acceptDrops() and widget.isVisible()
    ]
    assert takers == []
    assert window.acceptDrops()


@pytest.mark.wide
@pytest.mark.parametrize("answer", [[], ["/x/a.pth", "/x/b.pth"]])
def test_the_file_dialog(window, session, qtbot, monkeypatch, answer):
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_args: (answer, ""))
    wanted = []
    window.files_wanted.connect(wanted.append)
    window.actions_by_name["open"].trigger()
    assert [call.args for call in session.open.mock_calls] == [("/x/a.pth",)][: len(answer)]
    assert wanted == ([["/x/b.pth"]] if answer else [])


@pytest.mark.parametrize("answer", ["", "/x/run"])
def test_the_dialog_for_a_folder(window, session, monkeypatch, answer):
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_args: answer)
    window.actions_by_name["open_folder"].trigger()
    assert [call.args for call in session.open.mock_calls] == ([(answer,)] if answer else [])


@pytest.mark.parametrize("answer", ["", "/x/train.py"])
def test_the_dialog_for_a_script(window, session, monkeypatch, answer):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_args: (answer, ""))
    window.actions_by_name["check_script"].trigger()
    assert [call.args for call in session.open_script.mock_calls] == ([(answer,)] if answer else [])


def test_recent_files(make_window, session):
    window = make_window(fakes.empty_screen(("/runs/a&b.pth",)))
    (action,) = window._recent.actions()
    assert "a&&b.pth" in action.text()
    action.trigger()
    session.open.assert_called_once_with("/runs/a&b.pth")
    window.show_screen(fakes.empty_screen())
    assert not window._recent.isEnabled()


# ------------------------------------------------------------------ export


@pytest.mark.wide
def test_the_export_dialog_is_the_sessions_voice(window, session, qtbot, tmp_path):
    target = str(tmp_path / "copy.pth")
    draft = ExportDraft(wish=ExportWish(), kinds=(), destination=target, summary=("x",))
    window.show_screen(replace(READY, export=ExportPage(stage="draft", draft=draft)))
    dialog = window.export_dialog
    assert (dialog.isVisible(), dialog.state) == (True, "draft")
    dialog.export_wanted.emit(target, True)
    session.export.assert_called_once_with(target, overwrite=True)
    running = ExportPage(stage="running", draft=draft, title="Writing", progress=Progress("copying"))
    window.show_screen(replace(READY, export=running))
    assert dialog.state == "running"
    dialog.cancel_wanted.emit()
    session.cancel_export.assert_called_once_with()
    dialog.wish_changed.emit(ExportWish(kind="weights"))
    session.change_export.assert_called_once_with(ExportWish(kind="weights"))
    result = ExportResult(destination=target, lines=("fine",))
    window.show_screen(replace(READY, export=ExportPage(stage="done", draft=draft, result=result)))
    dialog.undo_wanted.emit()
    session.undo_export.assert_called_once_with()
    dialog.receipt_wanted.emit("/r.json")
    session.save_receipt.assert_called_once_with("/r.json")
    assert dialog.state == "result"
    with qtbot.waitSignal(window.files_wanted) as wanted:
        dialog.open_wanted.emit(target)
    assert wanted.args == [[target]]


@pytest.mark.wide
def test_the_export_dialog_stays_until_the_session_has_left_the_export(window, session):
    draft = ExportDraft(wish=ExportWish(), kinds=(), destination="/x.pth", summary=("x",))
    failure = FailurePage(title="t", what="w", where="", remedy="")
    window.show_screen(replace(READY, export=ExportPage(stage="failed", draft=draft, failure=failure)))
    dialog = window.export_dialog
    dialog.back_wanted.emit()
    session.resume_export.assert_called_once_with()
    dialog.close()
    session.end_export.assert_called_once_with()
    assert dialog.isVisible()  # the session decides
    window.show_screen(READY)
    assert not dialog.isVisible()


@pytest.mark.wide
def test_nothing_is_shown_before_the_first_draft(window):
    window.show_screen(replace(READY, export=ExportPage(stage="looking", progress=Progress())))
    assert window._export is None
    window.show_screen(READY)
    assert not window._patience.isActive()


@pytest.mark.wide
def test_an_export_that_takes_long_to_prepare_says_how_far_it_is_and_can_be_left(qtbot, window, session):
    progress = Progress("preparing the export")
    progress.start("preparing the export", 4, is_counted=True)
    progress.advance(3)
    page = ExportPage(stage="looking", title="Preparing the export", progress=progress)
    window.show_screen(replace(READY, export=page))
    assert window._patience.isActive()
    window._patience.timeout.emit()
    dialog = window.export_dialog
    assert dialog.isVisible()
    assert (dialog.state, dialog.windowTitle()) == ("running", "Preparing the export")
    assert dialog.findChild(QProgressBar).value() == 750
    assert not dialog.findChildren(DraftPage)  # which takes a while to make: turns of its own
    qtbot.waitUntil(lambda: len(dialog.findChildren(DraftPage)) == 1)
    button(dialog, "Cancel").click()
    session.end_export.assert_called_once_with()
    session.cancel_export.assert_not_called()
    draft = ExportDraft(wish=ExportWish(), kinds=(), destination="/x.pth", summary=("x",))
    window.show_screen(replace(READY, export=ExportPage(stage="draft", draft=draft)))
    assert (dialog.state, dialog.isVisible()) == ("draft", True)
    window.show_screen(READY)
    assert not dialog.isVisible()


# ------------------------------------------------------------------ files that follow each other


@pytest.mark.wide
def test_links_lead_into_the_file_that_is_shown_when_all_rows_are_equal(make_window):
    """Two files may have equal findings, and different names behind them."""
    about_one = tuple(replace(row, count=1) for row in READY.findings)
    first = replace(READY, findings=about_one)
    renamed = [
        dataclasses.replace(leaf, names=(f"other {leaf.names[0]}", *leaf.names[1:]))
        for leaf in fakes.training_leaves()
    ]
    second = replace(first, tree=fakes.make_tree(renamed, fakes.COLOURS))
    window = make_window(first)
    for page in ("findings", "memory"):
        window.workspace.pages.open_page(page)
    window.workspace.pages.open_page("findings")
    window.show_screen(second)
    links = [
        button.accessibleName()
        for button in window.workspace.pages.page("findings").findChildren(QPushButton)
    ]
    assert any(link.startswith("Select other model / ") for link in links)
    assert not any(link.startswith("Select model / ") for link in links)


@pytest.mark.wide
def test_the_memory_page_takes_its_colors_from_the_file_that_is_shown(make_window):
    window = make_window(READY)
    other = fakes.make_tree(fakes.training_leaves(), {"cpu": -1})
    window.show_page("memory")
    window.show_screen(replace(READY, tree=other, device_map=()))
    card = window.workspace.pages.page("memory").findChild(ChartCard)
    assert card._devices == frozenset({"cpu"})


@pytest.mark.wide
def test_nothing_of_a_closed_file_is_kept(make_window):
    tree = fakes.make_tree(fakes.training_leaves(), fakes.COLOURS)
    window = make_window(replace(READY, tree=tree))
    for page in ("tensor", "findings", "code", "file", "memory"):
        window.workspace.pages.open_page(page)
    count = sys.getrefcount(tree)
    window.show_screen(fakes.empty_screen())
    gc.collect()
    assert sys.getrefcount(tree) < count
    assert not [holder for holder in gc.get_referrers(tree) if holder is not sys._getframe()]


@pytest.mark.wide
def test_what_was_typed_for_a_closed_file_is_not_looked_for_in_the_next(window, session):
    line = window.search.findChild(QLineEdit)
    window.workspace.pages.open_page("findings")
    ask = window.workspace.pages.page("findings").findChild(QPlainTextEdit)
    ask.setPlainText("RuntimeError")
    line.setText("conv")
    window.show_screen(fakes.empty_screen())
    window.show_screen(READY)
    QTest.qWait(400)
    session.search.assert_not_called()
    session.explain_error.assert_not_called()
    assert line.text() == ""


@pytest.mark.wide
def test_a_part_that_fails_is_shown_anew_the_next_time(window, monkeypatch):
    shown = []
    banner = window.workspace.banner
    monkeypatch.setattr(banner, "show_safety", lambda chip: 1 // 0)
    changed = replace(READY, safety=None, device_map=(), branches=())
    with pytest.raises(ZeroDivisionError):
        window.show_screen(changed)
    monkeypatch.setattr(banner, "show_safety", shown.append)
    window.show_screen(changed)
    assert shown == [None]
    assert not window.workspace.device_map.isVisible()


@pytest.mark.wide
def test_names_that_are_no_text_keep_their_bytes(make_window, session):
    path = "/runs/b\udcff\udce9st.pth"
    window = make_window(fakes.empty_screen((path,)))
    window._recent.actions()[0].trigger()
    session.open.assert_called_with(path)
    session.open.reset_mock()
    page_of(window).findChild(RecentRow).click()
    session.open.assert_called_with(path)
    url = QUrl.fromEncoded(b"file:///runs/b%FF%E9st.pth")
    assert path_of_url(url) == path
    choice = Choice(id=path, label="node 7")
    window.show_screen(replace(READY, targets=(*READY.targets, choice), target=path))
    assert window.top_bar._targets.currentText() == "node 7"
    window.top_bar._targets.activated.emit(len(READY.targets))
    session.set_target.assert_called_with(path)


# ------------------------------------------------------------------ layout and theme


@pytest.mark.wide
def test_the_theme_is_chosen_in_the_menu_and_remembered(make_window, theme, qapp, tmp_path):
    settings = Settings()
    window = make_window(READY, settings)
    dark = window._theme_menu.actions()[2]
    dark.trigger()
    assert theme.tokens.name == "dark"
    assert Settings().theme == "dark"
    assert window.workspace.banner._chip.property("icon_ink") == "good"


@pytest.mark.wide
def test_the_layout_is_remembered(make_window):
    settings = Settings()
    first = make_window(READY, settings)
    first.resize(960, 640)
    first.workspace.tree.setColumnHidden(3, True)
    first.close()
    second = make_window(READY, settings)
    assert second.height() == 640
    assert second.workspace.tree.isColumnHidden(3)


def test_first_painted_then_told(make_window, qtbot):
    window = make_window()
    with qtbot.waitSignal(window.painted):
        window.update()
    with qtbot.assertNotEmitted(window.painted):
        window.repaint()


@pytest.mark.wide
def test_the_picture_is_ready_when_the_bars_are(make_window, qtbot):
    window = make_window(READY)
    qtbot.waitUntil(lambda: window.is_drawn)
    window.workspace.pages.open_page("code")
    assert not window.is_drawn  # it is made in turns
    qtbot.waitUntil(lambda: window.is_drawn)


@pytest.mark.wide
def test_a_row_that_the_search_hides_is_current_again_at_its_end(window):
    """A finding may lead to a row that does not match."""
    screen = replace(fakes.ready_screen(), selected=None)
    window.search._only.setChecked(True)
    window.show_screen(replace(screen, query="nothing", matches=()))
    node = screen.tree.tensor_nodes[0]
    window.show_screen(replace(screen, query="nothing", matches=(), selected=node))
    assert window.workspace.tree.current_node() is None
    window.show_screen(replace(screen, selected=node))
    assert window.workspace.tree.current_node() == node


def test_machines_that_were_used_before_are_remembered(make_window):
    window = make_window(fakes.empty_screen(), Settings())
    strange = "/lab/b\udcffx.json"
    window.show_screen(replace(fakes.empty_screen(), profiles=("/lab/node7.json", strange, "2xcuda")))
    assert Settings().profiles == ("/lab/node7.json", strange, "2xcuda")


def test_another_machine_is_described_in_a_dialog_and_the_list_stays_as_it_was(make_window, session):
    targets = (*READY.targets, Choice(id="custom", label="Custom\u2026"))
    window = make_window(replace(READY, targets=targets))
    box = window.top_bar._targets
    before = box.currentText()
    box.setCurrentIndex(len(targets) - 1)
    box.activated.emit(len(targets) - 1)
    assert box.currentText() == before
    session.set_target.assert_not_called()
    dialog = window.findChild(MachineDialog)
    dialog.findChild(QComboBox).setCurrentIndex(0)
    count, memory = dialog.findChildren(QSpinBox)
    count.setValue(2)
    memory.setValue(24)
    button(dialog, "Use this machine").click()
    session.set_target.assert_called_once_with("2xcuda@24gb")
    assert not dialog.isVisible()


def test_a_page_shows_what_it_asked_for_while_it_was_made(window, session, qtbot):
    """A small file is answered at once, in the very turn in which the page asks."""
    page = map_of(sized({"conv.w": 40, "head.w": 80}))
    screen = replace(window.shown, module_map=page, tree=page.areas.tree)
    session.look_at_map.side_effect = lambda: window.show_screen(screen)
    window.show_page("map")
    tabs = window.findChild(PageTabs)
    qtbot.waitUntil(lambda: any(part.is_drawn for part in tabs.findChildren(MapPart)))


def test_what_a_list_says_of_a_machine_is_plain_text(make_window):
    """The path of a Python may look like markup, which Qt would follow to a picture."""
    choice = Choice(id="py", label="node 7", tooltip='<img src="//host/x">')
    window = make_window(replace(READY, targets=(*READY.targets, choice), target="py"))
    box = window.top_bar._targets
    tips = (box.itemData(box.count() - 1, Qt.ItemDataRole.ToolTipRole), box.toolTip())
    assert all("&lt;img" in tip and "<img" not in tip for tip in tips)
    assert box.accessibleDescription() == 'node 7\n<img src="//host/x">'
