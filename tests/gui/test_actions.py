from __future__ import annotations

import platform
import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QLabel, QMenu, QPlainTextEdit, QPushButton, QWidget

from inspector.gui import actions, main_window
from inspector.gui import menus as menu
from inspector.gui.actions import ACTIONS, Action, is_usable
from inspector.gui.commands import _KINDS
from inspector.gui.dialogs import help as diagnostics
from inspector.gui.dialogs.help import HelpDialog
from inspector.gui.main_window import MainWindow
from inspector.gui.pages.registry import PAGES
from inspector.gui.settings import Settings
from inspector.gui.theme.theme import ZOOMS
from inspector.gui.toolbar import ActionButton
from inspector.gui.tree.model import Column
from inspector.model.findings import Fix
from inspector.records import replace
from inspector.resources import resource_path
from inspector.session.log import LogLine
from inspector.session.screen import FindingRow
from tests.gui import fakes
from tests.gui.looking import said

BY_ID = {action.id: action for action in ACTIONS}
READY = fakes.ready_screen()
# The habits to honour; a change here is a change of what people have learned.
KEYS = {
    "open": "Ctrl+O",
    "open_folder": "Ctrl+Shift+O",
    "reload": "F5",
    "export": "Ctrl+E",
    "close": "Ctrl+W",
    "quit": "Ctrl+Q",
    "copy_rows": "Ctrl+C",
    "copy_code": "Ctrl+Shift+C",
    "find": "Ctrl+F",
    "find_next": "F3",
    "find_previous": "Shift+F3",
    "find_end": "Esc",
    "flat": "Ctrl+L",
    "back": "Alt+Left",
    "forward": "Alt+Right",
    "expand": "Ctrl++",
    "collapse": "Ctrl+-",
    "page_overview": "Ctrl+1",
    "page_memory": "Ctrl+2",
    "page_tensor": "Ctrl+3",
    "page_findings": "Ctrl+4",
    "page_code": "Ctrl+5",
    "page_file": "Ctrl+I",
    "shortcuts": "F1",
}


ALWAYS = {
    "series",
    "open",
    "open_folder",
    "demo",
    "close",
    "quit",
    "shortcuts",
    "about",
    "log",
    "diagnostics",
    "palette",
    "larger",
    "smaller",
    "normal_text",
}
EDITS = {"undo_map", "redo_map"}
SEARCHING = {"find_next", "find_previous", "find_end"}
GOING = {"back", "forward"}


def texts_of(menu):
    return [action.text() for action in menu.actions()]


@pytest.mark.wide
def test_an_action_added_to_the_table_is_in_its_menu_with_its_key_and_runs_once(
    make_window, monkeypatch, qtbot
):
    calls = []
    fake = Action("fake", "&Edit", "Fa&ke\u2026", calls.append, ("Ctrl+K",), "spark", "ready", 2, in_tree=9)
    for module in (actions, main_window, menu):
        monkeypatch.setattr(module, "ACTIONS", (*ACTIONS, fake))
    window = make_window(fakes.empty_screen())
    made = window.actions_by_name["fake"]
    assert not made.isEnabled()
    window.show_screen(READY)
    assert made.isEnabled()
    assert made.shortcut() == QKeySequence("Ctrl+K")
    assert texts_of(window._menus["&Edit"])[-1] == "Fa&ke\u2026"
    made_menu = menu.build_tree_menu(window.actions_by_name, window._theme, window.tree, window._commands)
    assert "Fa&ke\u2026" in texts_of(made_menu)
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window.tree, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert calls == [window._commands]
    dialog = HelpDialog(window)
    assert {"Ctrl+K", "Fake"} <= set(said(dialog))
    assert dialog.size().boundedTo(dialog.screen().availableSize()) == dialog.size()  # the rest scrolls
    dialog.close()


@pytest.mark.wide
def test_tooltips_name_the_keys_of_the_table(window):
    for page in PAGES:
        window.show_page(page.id, at_once=True)
    keys = {key.toString() for action in window.actions_by_name.values() for key in action.shortcuts()}
    told = {
        found[1]: widget.toolTip()
        for widget in window.findChildren(QWidget)
        if (found := re.search(r"\(((?:Ctrl|Shift|F\d|Esc)[^)]*)\)", widget.toolTip()))
    }
    assert len(told) >= 7
    assert {key: tip for key, tip in told.items() if key not in keys} == {}


@pytest.mark.wide
def test_the_toolbar_and_the_menu_of_the_tree_are_made_from_the_table(window, qtbot):
    buttons = window.top_bar.findChildren(ActionButton)
    assert [(button.text(), button.toolTip()) for button in buttons] == [
        ("Open", "Open (Ctrl+O)"),
        ("Reload", "Reload (F5)"),
    ]
    window.workspace.tree.menu_wanted.emit(QPoint(5, 5))
    shown = window.workspace.tree.findChildren(QMenu)[-1]
    qtbot.waitUntil(shown.isVisible)
    names = [action.objectName() for action in shown.actions() if action.objectName()]
    assert names == ["copy_path", "copy_expression", "copy_rows", "expand", "collapse"]
    shown.close()


@pytest.mark.wide
def test_the_keys_are_the_agreed_ones(window):
    assert {name: window.actions_by_name[name].shortcut().toString() for name in KEYS} == KEYS


@pytest.mark.wide
def test_no_key_has_two_meanings(window):
    keys = Counter(
        sequence.toString() for action in window.actions_by_name.values() for sequence in action.shortcuts()
    )
    assert max(keys.values()) == 1
    assert "" not in keys
    assert QKeySequence("Ctrl+O").toString() in keys


def test_no_menu_has_a_letter_twice():
    letters = Counter((row.menu, row.text[row.text.index("&") + 1].lower()) for row in ACTIONS)
    assert {letter: count for letter, count in letters.items() if count > 1} == {}


def test_every_named_icon_exists():
    named = {row.icon for row in ACTIONS if row.icon}
    assert [icon for icon in sorted(named) if not resource_path(f"icons/{icon}.svg").is_file()] == []


@pytest.mark.wide
@pytest.mark.parametrize(
    ("screen", "usable"),
    [
        (fakes.empty_screen(), {*ALWAYS, "paste_error"}),
        (fakes.failed_screen(), {*ALWAYS, "reload"}),
        (READY, set(BY_ID) - EDITS - GOING - SEARCHING - {"undo"}),
        (replace(READY, can_undo=True), set(BY_ID) - EDITS - GOING - SEARCHING),
        (replace(READY, matches=()), set(BY_ID) - EDITS - GOING - SEARCHING - {"undo"} | {"find_end"}),
        (replace(READY, matches=(3, 4)), set(BY_ID) - EDITS - GOING - {"undo"}),
        (replace(READY, can_go=(True, False)), set(BY_ID) - EDITS - SEARCHING - {"undo", "forward"}),
        (replace(READY, can_go=(False, True)), set(BY_ID) - EDITS - SEARCHING - {"undo", "back"}),
        (
            replace(READY, can_export=False, code=None),
            set(BY_ID) - EDITS - GOING - SEARCHING - {"export", "copy_code", "copy_command", "undo"},
        ),
    ],
)
def test_what_cannot_be_done_is_not_offered(window, screen, usable):
    assert {row.id for row in ACTIONS if is_usable(row, screen)} == usable
    window.show_screen(screen)
    assert {name for name, action in window.actions_by_name.items() if action.isEnabled()} == usable


@pytest.mark.wide
def test_the_help_lists_every_key(window, qapp):
    window.actions_by_name["shortcuts"].trigger()
    dialog = qapp.activeModalWidget()
    words = [label.text() for label in dialog.findChildren(QLabel)]
    for keys in KEYS.values():
        assert keys in words
    assert "device:cuda:1" in words
    dialog.close()


@pytest.mark.wide
def test_about_makes_the_promise(window, qapp):
    window.actions_by_name["about"].trigger()
    dialog = qapp.activeModalWidget()
    assert any("nothing is uploaded" in label.text() for label in dialog.findChildren(QLabel))
    dialog.close()


def test_a_window_without_a_session_does_nothing_wrong(theme, qtbot):
    window = MainWindow(theme, Settings(fresh=True))
    qtbot.addWidget(window)
    for name in ("demo", "reload", "export", "undo", "find_next", "copy_code"):
        BY_ID[name].run(window._commands)
    for fix in (Fix(rule="*=cpu"), Fix(recovers=True)):
        window._commands.on_fix_wanted(FindingRow(id="x", tone="bad", title="t", detail="d", fix=fix))


def test_every_kind_of_checkpoint_is_in_the_dialog_of_files():
    patterns = _KINDS.split()
    names = (
        *("a.pth", "a.pt.gz", "a.safetensors", "a.joblib", "a.pkl", "a.gguf", "a.pt2"),
        *("__0_0.distcp", ".metadata", "model.safetensors.index.json"),
    )
    missing = [name for name in names if not any(fnmatchcase(name, pattern) for pattern in patterns)]
    assert not missing


def test_undo_and_redo_say_what_they_do(window, session):
    made = window.actions_by_name
    assert (made["undo_map"].text(), made["undo_map"].isEnabled()) == ("&Undo", False)
    window.show_screen(replace(READY, edits=("map a&b to cpu", "map cuda:1 to cpu")))
    assert made["undo_map"].text() == "&Undo map a&&b to cpu"
    assert made["redo_map"].text() == "Re&do map cuda:1 to cpu"
    made["undo_map"].trigger()
    made["redo_map"].trigger()
    session.undo_map.assert_called_once_with()
    session.redo_map.assert_called_once_with()


def test_about_says_versions_and_licenses_and_copies_no_paths(window, qapp, monkeypatch):
    monkeypatch.setattr(diagnostics, "version", version)
    window.actions_by_name["about"].trigger()
    dialog = qapp.activeModalWidget()
    words = "\n".join(label.text() for label in dialog.findChildren(QLabel))
    for text in ("Apache License 2.0", "LGPL 3.0", "9.9", "not installed", platform.python_version()):
        assert text in words
    next(each for each in dialog.findChildren(QPushButton) if "diagnostics" in each.text()).click()
    copied = qapp.clipboard().text()
    dialog.close()
    window.actions_by_name["diagnostics"].trigger()
    assert qapp.clipboard().text() == copied
    assert "PyTorch: not installed" in copied
    assert f"Findings: {READY.findings[0].id}" in copied
    for private in (READY.path, READY.title.partition(" - ")[0], str(Path.home()), platform.node()):
        assert private not in copied
    window.show_screen(fakes.empty_screen())
    window.actions_by_name["diagnostics"].trigger()
    assert "Window: empty" in qapp.clipboard().text()
    window.shown = None
    assert "Window:" not in diagnostics.diagnostics(window, None, window._theme)


def version(name: str) -> str:
    if name != "numpy":
        raise diagnostics.PackageNotFoundError
    return "9.9"


def test_the_log_is_followed_while_it_is_shown(window, qapp):
    window.actions_by_name["log"].trigger()
    dialog = qapp.activeModalWidget()
    field = dialog.findChild(QPlainTextEdit)
    assert field.toPlainText() == "Nothing was done in this window yet."
    lines = (LogLine(at=0.0, kind="done", text="Opened"), LogLine(at=1.0, kind="error", text="lost"))
    window.show_screen(replace(READY, log=lines))
    dialog.refresh()
    dialog.refresh()
    first, second = field.toPlainText().splitlines()
    assert first.endswith("   Opened")
    assert second.endswith(" x error: lost")
    next(each for each in dialog.findChildren(QPushButton) if "Copy" in each.text()).click()
    assert qapp.clipboard().text() == f"{field.toPlainText()}\n"
    dialog.close()
    window.shown = None
    window.actions_by_name["log"].trigger()
    qapp.activeModalWidget().close()


def test_text_grows_in_all_windows_and_columns_follow(window, theme, qtbot):
    made, tree = window.actions_by_name, window.tree
    first, wide = theme.base_points, tree.header().sectionSize(Column.SIZE)
    try:
        for _ in range(20):
            made["larger"].trigger()
        assert (theme.zoom, theme.base_points) == (ZOOMS[-1], first * 2)
        qtbot.waitUntil(lambda: tree.header().sectionSize(Column.SIZE) > wide)
        qtbot.waitUntil(lambda: window.statusBar().currentMessage() == "Text at 200 %")
        for _ in range(20):
            made["smaller"].trigger()
        assert theme.zoom == ZOOMS[0]
    finally:
        made["normal_text"].trigger()
    assert theme.base_points == first
    qtbot.waitUntil(lambda: tree.header().sectionSize(Column.SIZE) == wide)


def test_the_map_is_copied_as_a_command(window, session, qapp):
    session.map_command.return_value = "checkpoint-inspector remap a.pth -o b.pth"
    window.actions_by_name["copy_command"].trigger()
    assert qapp.clipboard().text() == "checkpoint-inspector remap a.pth -o b.pth"
    session.map_command.return_value = ""
    window.actions_by_name["copy_command"].trigger()
    assert window.statusBar().currentMessage() == "The map changes no device"
    assert qapp.clipboard().text() == "checkpoint-inspector remap a.pth -o b.pth"


def test_a_change_in_place_can_be_undone_from_the_line_at_the_bottom(window, session):
    undo = window._status.undo
    assert not undo.isVisible()
    window.show_screen(replace(READY, can_undo=True))
    assert undo.isVisible()
    undo.click()
    session.undo_export.assert_called_once_with()
    window.show_screen(replace(fakes.failed_screen(), can_undo=True))
    assert not undo.isVisible()
