"""The window without a mouse and without sight: what Tab reaches, and what a screen reader says."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QMenu, QWidget

from inspector.gui.app import Program
from inspector.gui.pages.registry import PAGES, page_keys
from inspector.gui.pages.tabs import PageTabs
from inspector.gui.settings import Settings
from inspector.gui.workspace.banner import BannerFrame
from inspector.gui.workspace.map_panel import Destination
from inspector.records import replace
from inspector.resources import demo_path
from inspector.session.screen import Choice
from tests.gui import fakes
from tests.gui.hearing import Role, complaints, heard, name_of

READY = fakes.ready_screen()
DEVICES = (Choice(id="cuda:1", label="cuda:1 NVIDIA H100"), Choice(id="", label="any device"))
LETTER = re.compile(r"(?<!&)&(?!&)(.)")
MOST_TABS = 60


def tab_stops(window: QWidget) -> list[QWidget]:
    """Press Tab until the focus is back where it was; return what had it."""
    found: list[QWidget] = []
    for _ in range(MOST_TABS):
        focused = window.focusWidget() or window
        if focused in found:
            break
        found.append(focused)
        QTest.keyClick(focused, Qt.Key.Key_Tab)
    return found


def double_letters(texts: list[str]) -> list[str]:
    letters = Counter(found[1].lower() for text in texts if (found := LETTER.search(text)))
    return [letter for letter, count in letters.items() if count > 1]


def test_everything_that_is_heard_has_a_name_and_no_markup(window):
    window.resize(1280, 800)
    window.show_screen(replace(READY, devices=DEVICES, wanted="cuda:1", selected=READY.tree.tensor_nodes[3]))
    found = []
    for page in PAGES:
        window.show_page(page.id, at_once=True)
        QApplication.processEvents()
        found += [f"{page.id}: {line}" for line in complaints(window)]
    window.workspace.banner.open_details()
    found += complaints(window.workspace.banner._dropdown)
    window.workspace.device_map._dropdown.open()
    found += complaints(window.workspace.device_map._dropdown)
    assert found == []


@pytest.mark.wide
def test_the_other_phases_and_the_dialogs_are_heard_as_well(make_window):
    window = make_window(fakes.empty_screen(("/home/ada/<b>runs</b>/best.pth",)))
    found = complaints(window)
    window.show_screen(fakes.failed_screen())
    found += complaints(window)
    for name in ("shortcuts", "about"):
        window.actions_by_name[name].trigger()
        dialog = QApplication.activeModalWidget()
        found += complaints(dialog)
        dialog.close()
    assert found == []


def test_the_verdict_is_heard_in_full(window):
    border = next(each for each in heard(window) if isinstance(each.object(), BannerFrame))
    assert name_of(border).startswith("Verdict, Problem: torch.load stops")
    roles = {each.role() for each in heard(window)}
    assert {Role.Tree, Role.PageTabList, Role.ComboBox, Role.Button, Role.ButtonMenu} <= roles


def test_tab_reaches_every_control_in_the_order_of_the_screen(window, qtbot):
    window.resize(1280, 800)
    qtbot.waitUntil(window.isActiveWindow)
    window.workspace.tree.setFocus()
    stops = tab_stops(window)
    kinds = [type(stop) for stop in stops]
    for kind in (BannerFrame, Destination, type(window.workspace.tree)):
        assert kind in kinds, kind
    shown = [
        each
        for each in window.findChildren(QWidget)
        if each.focusPolicy() & Qt.FocusPolicy.TabFocus and each.isVisible() and each.isEnabled()
        if each.window() is window and each.focusProxy() is None
    ]
    missed = [each for each in shown if each not in stops and not isinstance(each.parent(), QLabel)]
    assert [(type(each).__name__, each.accessibleName()) for each in missed] == []
    banner = kinds.index(BannerFrame)
    names = [stop.accessibleName() or getattr(stop, "text", str)() for stop in stops[banner : banner + 5]]
    assert names[1:] == [
        "Details of the verdict",
        READY.banner.action,
        "Copy loading code",
        "Safety: Weights only",
    ]
    pill = kinds.index(Destination)
    assert banner < pill
    assert kinds[pill : pill + 3] == [Destination] * 3


def test_letters_are_unique_in_each_menu_and_window(window):
    menus = {"the bar": [action.text() for action in window.menuBar().actions()]}
    for menu in window.findChildren(QMenu):
        menu.aboutToShow.emit()
        menus[menu.title()] = [action.text() for action in menu.actions()]
    assert len(menus) > 5
    bar = menus["the bar"]
    buttons = [each.text() for each in window.findChildren(QAbstractButton) if not each.isHidden()]
    labels = [each.text() for each in window.findChildren(QLabel) if each.buddy() is not None]
    menus["the window"] = [*bar, *buttons, *labels]
    assert {name: double for name, texts in menus.items() if (double := double_letters(texts))} == {}


@pytest.mark.wide
def test_a_file_is_inspected_with_the_keyboard_alone(window, session, qtbot):
    qtbot.waitUntil(window.isActiveWindow)
    tree = window.workspace.tree
    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    line = QApplication.focusWidget()
    assert line.accessibleName() == "Search the tree"
    qtbot.keyClicks(line, "conv1")
    qtbot.keyClick(line, Qt.Key.Key_Return)
    session.search.assert_called_with("conv1")
    qtbot.keyClick(line, Qt.Key.Key_Escape)
    qtbot.waitUntil(tree.hasFocus)
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Right, Qt.Key.Key_Down):
        qtbot.keyClick(tree, key)
    assert session.select.called
    row = session.select.call_args.args[0]
    assert READY.tree.nodes[row].name
    for page, key in zip(PAGES, page_keys(PAGES), strict=True):
        QTest.keySequence(QApplication.focusWidget(), QKeySequence(key))
        assert window.findChild(PageTabs).current_id == page.id


@pytest.mark.wide
def test_the_code_is_copied_with_the_keyboard_alone(window, qtbot):
    qtbot.waitUntil(window.isActiveWindow)
    QGuiApplication.clipboard().clear()
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    qtbot.keyClick(window.workspace.tree, Qt.Key.Key_C, both)
    assert QGuiApplication.clipboard().text() == fakes.CODE
    QGuiApplication.clipboard().clear()
    window.workspace.tree.setFocus()
    button = next(stop for stop in tab_stops(window) if stop.accessibleName() == "Copy loading code")
    button.setFocus()
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert QGuiApplication.clipboard().text() == fakes.CODE
    assert button.text() in ("Copied", "")


def type_and_export(dialog: QWidget, wanted: Path, qtbot) -> None:
    stops = tab_stops(dialog)
    line = next(stop for stop in stops if stop.accessibleName() == "Destination")
    line.setFocus()
    QTest.keyClick(line, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(line, str(wanted))
    export = next(stop for stop in stops if getattr(stop, "text", str)().startswith("Export"))
    qtbot.waitUntil(export.isEnabled)
    export.setFocus()
    QTest.keyClick(export, Qt.Key.Key_Space)


@pytest.mark.wide
def test_a_copy_is_exported_with_the_keyboard_alone(qapp, qtbot, tmp_path):
    """The real program from Tab to Tab: the map, the dialog, the destination, and the copy on the disk."""
    source, wanted = Path(shutil.copy(demo_path(), tmp_path / "best.pth")), tmp_path / "mine.pth"
    program = Program(qapp, Settings(fresh=True), "light")
    window = program.open_window(str(source))
    qtbot.waitUntil(lambda: window.shown is not None and window.shown.phase == "ready" and window.is_drawn)
    window.resize(1280, 800)
    pill = next(stop for stop in tab_stops(window) if isinstance(stop, Destination))
    QTest.keyClick(pill, Qt.Key.Key_Home)
    assert window.shown.device_map[0].to == window.shown.device_map[0].choices[0]
    QTest.keyClick(pill, Qt.Key.Key_End)
    assert window.shown.device_map[0].to == "cpu"
    QTest.keyClick(window.tree, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: window.export_dialog.isVisible() and window.shown.export.stage == "draft")
    dialog = window.export_dialog
    assert complaints(dialog) == []
    type_and_export(dialog, wanted, qtbot)
    qtbot.waitUntil(lambda: window.shown.export.stage in ("done", "failed"))
    assert window.shown.export.stage == "done"
    assert complaints(dialog) == []
    assert wanted.stat().st_size > source.stat().st_size // 2
    QTest.keyClick(dialog.focusWidget() or dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not dialog.isVisible())
    window.close()
    qtbot.waitUntil(lambda: not program._leaving)
    program._theme.setParent(None)
    program.setParent(None)


def test_no_tab_moves_when_another_is_chosen(window, qtbot):
    tabs = window.findChild(PageTabs)
    bar = tabs.tabBar()
    sizes = []
    places = [place for place, page in enumerate(PAGES) if not page.is_behind]
    for place in places:
        tabs.setCurrentIndex(place)
        sizes.append([bar.tabRect(other).width() for other in places])
    assert all(max(widths) - min(widths) <= 2 for widths in zip(*sizes, strict=True)), sizes
