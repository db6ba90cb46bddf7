from __future__ import annotations

from unittest.mock import create_autospec

from PySide6.QtCore import Qt

from inspector.gui.commands import Commands
from inspector.gui.workspace.tree_pane import TreePane
from inspector.records import replace
from inspector.session.controller import Session
from tests.gui import fakes
from tests.gui.looking import shown
from tests.gui.tree.test_model import find


def test_what_is_selected_in_the_tree_is_told_and_shown_below_it(qtbot, theme) -> None:
    pane, session = TreePane(theme), create_autospec(Session, instance=True)
    commands = create_autospec(Commands, instance=True)
    qtbot.addWidget(pane)
    pane.connect_commands(commands)
    pane.connect_to(session)
    screen = fakes.ready_screen()
    pane.show_changes(None, screen)
    pane.resize(720, 500)
    pane.show()
    node = find(screen.tree, "model", "conv1", "weight")
    pane.tree.setCurrentIndex(pane.tree.model().index_of(node))
    session.select.assert_called_with(node)
    qtbot.keyClick(pane.tree, Qt.Key.Key_Return)
    commands.on_node_activated.assert_called_once_with(node)
    pane.tree.selectAll()
    qtbot.waitUntil(lambda: session.pick.called and session.pick.call_args.args[0] != ())
    later = replace(screen, strip=fakes.make_strip(screen.tree, node))
    pane.show_changes(screen, later)
    assert "model.conv1.weight" in shown(pane.strip)
    pane.strip.copy_wanted.emit("model")
    commands.copy.assert_called_once_with("model")
    pane.forget()
    assert "Nothing selected" in shown(pane.strip)
    assert pane.tree.model().rowCount() == 0
