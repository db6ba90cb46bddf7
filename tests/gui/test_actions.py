from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QLabel

from inspector.gui.actions import COMMANDS, MENUS, is_usable, key_text
from inspector.gui.commands import Commands
from inspector.gui.export_slots import ExportSlots
from inspector.records import replace
from inspector.resources import resource_path
from inspector.session.screen import ExportWish, Fix, Loading
from tests.gui import fakes

BY_ID = {command.id: command for command in COMMANDS}
READY = fakes.ready_screen()
# The habits to honour; a change here is a change of what people have learned.
KEYS = {
    "open": "Ctrl+O",
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
    "expand": "Ctrl++",
    "collapse": "Ctrl+-",
    "page_memory": "Ctrl+1",
    "page_tensor": "Ctrl+2",
    "page_findings": "Ctrl+3",
    "page_code": "Ctrl+4",
    "page_file": "Ctrl+5",
    "shortcuts": "F1",
}


SEARCHING = {"find_next", "find_previous", "find_end"}


def test_every_command_has_a_handler_and_every_handler_a_command(window):
    assert set(window._commands.handlers()) == set(BY_ID)
    assert set(window.actions_by_name) == set(BY_ID)


@pytest.mark.parametrize(("command", "keys"), KEYS.items())
def test_the_keys_are_the_agreed_ones(qapp, command, keys):
    assert key_text(BY_ID[command]) == keys


def test_no_key_has_two_meanings(window):
    keys = Counter(
        sequence.toString() for action in window.actions_by_name.values() for sequence in action.shortcuts()
    )
    assert max(keys.values()) == 1
    assert "" not in keys
    assert QKeySequence("Ctrl+O").toString() in keys


@pytest.mark.parametrize("menu", MENUS)
def test_no_menu_has_a_letter_twice(menu):
    letters = Counter(
        command.text[command.text.index("&") + 1].lower() for command in COMMANDS if command.menu == menu
    )
    assert max(letters.values()) == 1


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.id)
def test_every_named_icon_exists(command):
    if command.icon:
        assert resource_path(f"icons/{command.icon}.svg").is_file()


@pytest.mark.parametrize(
    ("screen", "usable"),
    [
        (fakes.empty_screen(), {"open", "demo", "close", "quit", "shortcuts", "about"}),
        (fakes.failed_screen(), {"open", "demo", "close", "quit", "shortcuts", "about", "reload"}),
        (READY, set(BY_ID) - SEARCHING - {"undo"}),
        (replace(READY, can_undo=True), set(BY_ID) - SEARCHING),
        (replace(READY, matches=()), set(BY_ID) - SEARCHING - {"undo"} | {"find_end"}),
        (replace(READY, matches=(3, 4)), set(BY_ID) - {"undo"}),
        (
            replace(READY, can_export=False, code=None),
            set(BY_ID) - SEARCHING - {"export", "copy_code", "undo"},
        ),
    ],
)
def test_what_cannot_be_done_is_not_offered(window, screen, usable):
    assert {command.id for command in COMMANDS if is_usable(command, screen)} == usable
    window.show_screen(screen)
    assert {name for name, action in window.actions_by_name.items() if action.isEnabled()} == usable


def test_the_help_lists_every_key(window, qapp):
    window.actions_by_name["shortcuts"].trigger()
    dialog = qapp.activeModalWidget()
    words = [label.text() for label in dialog.findChildren(QLabel)]
    for keys in KEYS.values():
        assert keys in words
    assert "device:cuda:1" in words
    dialog.close()


def test_about_makes_the_promise(window, qapp):
    window.actions_by_name["about"].trigger()
    dialog = qapp.activeModalWidget()
    assert any("nothing is uploaded" in label.text() for label in dialog.findChildren(QLabel))
    dialog.close()


def test_a_window_without_a_session_does_nothing_wrong(qtbot, theme):
    class Bare(QDialog):
        session = None
        shown = None

    bare = Bare()
    qtbot.addWidget(bare)
    commands = Commands(bare, theme)
    for act in (
        commands.on_demo,
        commands.on_reload,
        commands.on_export,
        commands.on_cancel,
        commands.on_undo,
        commands.on_find_next,
        commands.on_copy_code,
    ):
        act()
    commands.on_query_changed("x")
    commands.on_target_chosen("cpu")
    commands.on_mapping_chosen("cuda:0", "cpu")
    commands.on_style_chosen("plain")
    commands.on_node_chosen(1)
    commands.on_branch_removed("a/**")
    commands.on_machine_file("/x.json")
    commands.on_fix_wanted(Fix(rule="*=cpu"))
    commands.on_error_pasted("RuntimeError")
    commands.on_loading_chosen(Loading())
    slots = ExportSlots(bare)
    slots.on_export_to("/x", overwrite=False)
    slots.on_changed(ExportWish())
    slots.on_receipt("/x")
    for act in (slots.on_undone, slots.on_cancel, commands.on_check_cancelled):
        act()
