"""The page of a folder in the real window, with its real session."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtTest import QTest

from inspector.gui.main_window import MainWindow
from inspector.gui.settings import Settings
from inspector.gui.start import folder as module
from inspector.gui.start.folder import FolderPageWidget
from inspector.session import folder as listing
from inspector.session.controller import Session
from tests.builders.states import T, save_zip
from tests.gui.looking import colors_in
from tests.unit.session.documents import AtOnce


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def window(qtbot, theme, runner: AtOnce, tmp_path: Path):
    save_zip(tmp_path / "e2.pth", {"w": T([1.0] * 40, device="cuda:0"), "v": T([1.0] * 20)})
    save_zip(tmp_path / "e10.pth", {"w": T([1.0])})
    (tmp_path / "page.pth").write_text("<!DOCTYPE html>")
    (tmp_path / "gone.pth").symlink_to("nowhere")
    window = MainWindow(theme, Settings(fresh=True))
    window.attach(Session(window, runner))
    qtbot.addWidget(window)
    window.show()
    window.session.open(str(tmp_path))
    yield window
    window.detach()


@pytest.fixture
def page(window: MainWindow) -> FolderPageWidget:
    return window._stack.folder_page


def select(page: FolderPageWidget, *places: int) -> None:
    page.table.clearSelection()
    flags = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
    for place in places:
        page.table.selectionModel().select(page.table.model().index(place, 0), flags)


def texts(page: FolderPageWidget, column: int = 0) -> list[str]:
    model = page.table.model()
    return [model.index(row, column).data() for row in range(model.rowCount())]


def test_a_row_says_what_it_is_by_text_and_by_color(window, page, theme) -> None:
    assert window._stack.currentWidget() is page
    assert texts(page) == ["e2.pth", "e10.pth", "gone.pth", "page.pth"]
    assert texts(page, 1) == ["cuda:0, cpu", "cpu", "", ""]
    assert texts(page, 2)[0].startswith("Does not load: saved on cuda:0")
    assert texts(page, 3)[3] == "15 B"
    spoken = page.table.model().index(1, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.startswith("e10.pth, Good: Loads, cpu, ")
    inks = colors_in(page.grab().toImage())
    assert {theme.tokens.device(0).name(), theme.tokens.device(-1).name()} <= inks
    assert {theme.tokens.color(f"{tone}_fill").name() for tone in ("good", "bad")} <= inks


def test_buttons_are_for_what_is_selected(page, qtbot, tmp_path: Path) -> None:
    buttons = page._open, page._compare, page._series
    assert [one.isEnabled() for one in buttons] == [False, False, True]  # all of the folder as a series
    for places, enabled in (
        ((0,), [True, False, False]),
        ((0, 1), [True, True, True]),
        ((0, 1, 3), [True, False, True]),
        ((2,), [False, False, True]),  # a link that leads nowhere is nothing to open
    ):
        select(page, *places)
        assert [one.isEnabled() for one in buttons] == enabled, places

    select(page, 1, 0)
    both = [str(tmp_path / name) for name in ("e2.pth", "e10.pth")]
    with qtbot.waitSignal(page.comparison_wanted) as wanted:
        page._compare.click()
    assert wanted.args == [both]
    with qtbot.waitSignal(page.series_wanted) as wanted:
        page._series.click()
    assert wanted.args == [tuple(both)]
    with qtbot.waitSignal(page.files_wanted) as wanted:
        page._open.click()
    assert wanted.args == [both]
    select(page)
    with qtbot.waitSignal(page.series_wanted) as wanted:
        page._series.click()
    assert wanted.args == [(*both, str(tmp_path / "page.pth"))]


def test_keys_and_the_menu(window, page, qtbot, tmp_path: Path) -> None:
    assert page.table.hasFocus() or window._stack.currentWidget().first_focus is page.table
    select(page, 1)
    with qtbot.waitSignal(window.files_wanted) as wanted:
        QTest.keyClick(page.table, Qt.Key.Key_Return)
    assert wanted.args == [[str(tmp_path / "e10.pth")]]
    select(page, 0, 1)
    assert window.actions_by_name["compare"].isEnabled()
    with qtbot.waitSignal(window.comparison_wanted):
        window.actions_by_name["compare"].trigger()
    assert window.actions_by_name["reload"].isEnabled()
    assert not window.actions_by_name["export"].isEnabled()
    QTest.keyClick(page.table, Qt.Key.Key_F5)
    window.actions_by_name["close"].trigger()
    assert window.shown.phase == "empty"


def test_a_click_on_a_title_sorts_and_what_is_selected_stays_so(page) -> None:
    select(page, 0)
    page.table.header().setSortIndicator(3, Qt.SortOrder.DescendingOrder)
    assert texts(page) == ["e2.pth", "e10.pth", "page.pth", "gone.pth"]
    page.table.header().setSortIndicator(0, Qt.SortOrder.DescendingOrder)
    assert texts(page) == ["page.pth", "gone.pth", "e10.pth", "e2.pth"]
    assert [index.row() for index in page.table.selectionModel().selectedRows()] == [3]
    assert page._open.isEnabled()


def test_rows_fill_in_while_the_rest_is_read(window, page, runner, monkeypatch) -> None:
    monkeypatch.setattr(listing, "_BATCH_S", -1.0)
    runner.waits = True
    window.session.reload()
    runner.go_on()
    assert texts(page, 2)[:2] == ["\u2026", "\u2026"]
    assert page._stop.isVisible()
    runner.go_on()
    assert texts(page, 2)[0] != "\u2026"
    assert page._reading.text() == "1 of 4 read"
    page._stop.click()
    assert not page._stop.isVisible()
    assert texts(page, 2)[1] == "\u2026"


def test_the_model_is_one(page, qtmodeltester) -> None:
    qtmodeltester.check(module.FolderModel())
    qtmodeltester.check(page.table.model())
