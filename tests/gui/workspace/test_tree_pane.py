from __future__ import annotations

from unittest.mock import create_autospec

from PySide6.QtCore import Qt

from inspector.gui.commands import Commands
from inspector.gui.workspace.workspace import TreePane
from inspector.records import replace
from inspector.report.outline.flat import FlatRows, Order
from tests.gui import fakes
from tests.gui.asked import AskedSession
from tests.gui.looking import shown
from tests.gui.tree.test_model import find


def test_what_is_selected_in_the_tree_is_told_and_shown_below_it(qtbot, theme) -> None:
    pane, session = TreePane(theme), AskedSession()
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


def test_a_list_takes_the_place_of_the_tree_and_gives_it_back(qtbot, theme) -> None:
    pane, session = TreePane(theme), AskedSession()
    qtbot.addWidget(pane)
    pane.connect_to(session)
    screen = fakes.ready_screen()
    pane.show_changes(None, screen)
    pane.show_found(None, screen, only=True)
    pane.resize(720, 500)
    pane.show()
    node, other = (find(screen.tree, "model", "fc", name) for name in ("weight", "bias"))
    listed = replace(screen, selected=node, flat=FlatRows((other, node), 2))
    pane.show_changes(screen, listed)
    pane.show_found(screen, listed, only=True)
    model = pane.tree.model()
    shown_paths = [model.index(row, 0).data() for row in range(model.rowCount())]
    assert shown_paths == ["model.fc.bias", "model.fc.weight"]
    assert pane.tree.current_node() == node
    pane.tree.viewport().grab()
    pane.tree.header().setSortIndicator(4, Qt.SortOrder.DescendingOrder)
    session.list_flat.assert_called_once_with(Order(4, descending=True))
    pane.show_found(listed, screen, only=True)
    model = pane.tree.model()
    assert model.rowCount() == len(screen.tree.nodes[0].children)
    assert pane.tree.isExpanded(model.index_of(find(screen.tree, "model")))
