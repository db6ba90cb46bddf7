"""The context menu of the tree: what can be done with the row below the pointer, or the selected ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from inspector.gui.actions import ACTIONS
from inspector.gui.theme.icons import draw_icons
from inspector.gui.theme.theme import Theme
from inspector.gui.tree.view import TensorTreeView
from inspector.report.colors import device_name

if TYPE_CHECKING:
    from inspector.gui.commands import Commands
    from inspector.session.controller import Session
    from inspector.session.screen import Screen

_BOUND = "Leave &out of the export (not an item of a tuple alone)"
MOST_MAPPED = 64
"""Each row that is mapped is a rule, and each tensor is asked for each."""


def build_tree_menu(
    made: Mapping[str, QAction], theme: Theme, tree: TensorTreeView, commands: Commands
) -> QMenu:
    """Make the menu: what copies, what the row is asked, what is done with its tensors, and folding."""
    menu = QMenu(tree)
    menu.setAccessibleName("Actions on rows of the tree")
    listed = sorted((action for action in ACTIONS if action.in_tree), key=lambda action: action.in_tree)
    for action in (action for action in listed if action.menu != "&View"):
        menu.addAction(made[action.id])
    screen, session, nodes = commands.shown, commands.session, tuple(tree.selected_nodes())
    if screen is not None and session is not None and nodes:
        _add_copy(menu, session, commands, nodes)
        _add_questions(menu, session, screen, nodes[0])
        _add_export(menu, session, screen, nodes)
    menu.addSeparator()
    for action in (action for action in listed if action.menu == "&View"):
        menu.addAction(made[action.id])
    draw_icons(menu.actions(), theme.tokens)
    menu.aboutToHide.connect(menu.deleteLater)
    return menu


def _add_copy(menu: QMenu, session: Session, commands: Commands, nodes: tuple[int, ...]) -> None:
    _add(menu, "Copy as &JSON", lambda: commands.copy(session.nodes_json(nodes)))


def _add_questions(menu: QMenu, session: Session, screen: Screen, node: int) -> None:
    row = None if screen.tree is None else screen.tree.nodes[node]
    if row is None or not row.devices:
        return
    menu.addSeparator()
    if row.kind == "tensor":
        _add(menu, "Show tensors that &share its storage", partial(session.search_sharing, node))
    device = row.devices[0][0]
    _add(menu, f"&Filter by {_label(device)}", partial(session.search_device, node))


def _add_export(menu: QMenu, session: Session, screen: Screen, nodes: tuple[int, ...]) -> None:
    """Add what is decided for the tensors of rows: where they go, and whether they are exported."""
    menu.addSeparator()
    if screen.can_export:
        text, can = "Leave &out of the export\u2026", session.can_leave_out(nodes)
        without = _add(menu, text if can else _BOUND, partial(session.begin_export_without, nodes))
        without.setEnabled(can)
    if screen.map_choices:
        below = menu.addMenu("&Map to a device")
        below.setEnabled(len(nodes) <= MOST_MAPPED)
        for device in screen.map_choices:
            _add(below, _label(device), partial(session.map_branches, nodes, device))


def _label(device: str) -> str:
    """Return the name of a device as the text of an action, in which an ampersand marks a letter."""
    return device_name(device).replace("&", "&&")


def _add(menu: QMenu, text: str, run: Callable[[], object]) -> QAction:
    action = menu.addAction(text)
    action.triggered.connect(lambda *_checked: run())
    return action
