"""The menus whose entries are not actions of the table: recent files and the theme."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from inspector.gui.actions import ACTIONS
from inspector.gui.settings import Settings
from inspector.gui.theme.icons import draw_icons
from inspector.gui.theme.motion import set_still
from inspector.gui.theme.theme import MODES, Theme
from inspector.report.colors import device_name
from inspector.units import cut_text, escape_text

if TYPE_CHECKING:
    from inspector.gui.commands import Commands
    from inspector.gui.tree.view import TensorTreeView
    from inspector.report.tree import Node
    from inspector.session.controller import Session
    from inspector.session.screen import Screen


_NAMES = {
    "system": "Follow the &system",
    "light": "&Light",
    "dark": "&Dark",
    "contrast-light": "&High contrast, light",
    "contrast-dark": "High &contrast, dark",
}


class RecentMenu(QMenu):
    """Recent files."""

    path_wanted = Signal(object)  # a Signal(str) would lose bytes of names that are not UTF-8

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Open rece&nt", parent)
        self._paths: tuple[str, ...] = ()
        self.triggered.connect(self._on_triggered)

    def show_recent(self, paths: tuple[str, ...]) -> None:
        self.clear()
        self._paths = paths
        self.setEnabled(bool(paths))
        for number, path in enumerate(paths):
            place = PurePath(escape_text(path))
            text = f"{cut_text(place.name, 60)}    {cut_text(place.parent.name, 30)}/"
            self.addAction(text.replace("&", "&&")).setData(number)

    def _on_triggered(self, action: QAction) -> None:
        self.path_wanted.emit(self._paths[int(action.data())])


class ThemeMenu(QMenu):
    """Light, dark, both with high contrast, or what the system prefers; and whether anything moves."""

    def __init__(self, parent: QWidget, theme: Theme, settings: Settings) -> None:
        super().__init__("T&heme", parent)
        self._theme = theme
        self._settings = settings
        group = QActionGroup(self)
        for mode in MODES:
            action = self.addAction(_NAMES[mode])
            action.setCheckable(True)
            action.setData(mode)
            action.setChecked(mode == theme.mode)
            group.addAction(action)
        self.addSeparator()
        still = self.addAction("&Reduce motion")
        still.setCheckable(True)
        still.setChecked(settings.is_still)
        still.toggled.connect(self._on_still_toggled)
        self.triggered.connect(self._on_triggered)

    def _on_still_toggled(self, still: bool) -> None:  # noqa: FBT001  # Qt passes it by position
        set_still(still=still)
        self._settings.keep_still(still=still)

    def _on_triggered(self, action: QAction) -> None:
        mode = action.data()
        if mode is None:
            return
        self._theme.set_mode(mode)
        self._settings.keep_theme(mode)


_BOUND = "Leave &out of the export (not an item of a tuple alone)"
MOST_MAPPED = 64
"""Each row that is mapped is a rule, and each tensor is asked for each."""


def build_tree_menu(
    made: Mapping[str, QAction], theme: Theme, tree: TensorTreeView, commands: Commands
) -> QMenu:
    """Make the menu: what copies, what the row is asked, what is done with its tensors, and folding."""
    menu = QMenu(tree)
    menu.setAccessibleName("Actions on rows of the tree")
    screen, session, nodes = commands.shown, commands.session, tuple(tree.selected_nodes())
    rows = [] if screen is None or screen.tree is None else [screen.tree.nodes[node] for node in nodes]
    without = {"expand"} if rows and not any(row.children for row in rows) else set()
    without |= {"copy_expression"} if rows and rows[0].kind != "tensor" else set()
    listed = [action for action in ACTIONS if action.in_tree and action.id not in without]
    listed.sort(key=lambda action: action.in_tree)
    for action in (action for action in listed if action.menu != "&View"):
        menu.addAction(made[action.id])
    if screen is not None and session is not None and rows:
        _add_copy(menu, session, commands, nodes)
        if rows[0].kind == "tensor" and screen.selected == nodes[0]:
            _add_alone(menu, screen, commands)
        _add_questions(menu, session, commands, nodes[0], rows[0])
        _add_export(menu, session, screen, nodes, has_tensors=any(row.devices for row in rows))
    menu.addSeparator()
    for action in (action for action in listed if action.menu == "&View"):
        menu.addAction(made[action.id])
    draw_icons(menu.actions(), theme.tokens)
    menu.aboutToHide.connect(menu.deleteLater)
    return menu


def _add_copy(menu: QMenu, session: Session, commands: Commands, nodes: tuple[int, ...]) -> None:
    _add(menu, "Copy as &JSON", lambda: commands.copy(session.nodes_json(nodes)))


def _add_alone(menu: QMenu, screen: Screen, commands: Commands) -> None:
    """Add what is done with the selected tensor alone."""
    code = _add(menu, "Copy co&de for this tensor", commands.on_copy_tensor_code)
    code.setEnabled(not screen.values.no_code)
    save = _add(menu, "&Save as .npy or .safetensors\u2026", commands.on_save_tensor)
    save.setEnabled(bool(screen.values.forms))


def _add_questions(menu: QMenu, session: Session, commands: Commands, node: int, row: Node) -> None:
    if not row.devices:
        return
    menu.addSeparator()

    def turn_to(page: str) -> None:
        session.select(node)
        commands.on_page(page)

    if row.kind == "tensor":
        _add(menu, "Look at its &values", partial(turn_to, "values"))
    if row.nbytes:
        _add(menu, "Show i&n the map of modules", partial(turn_to, "map"))
    if row.kind == "tensor":
        _add(menu, "Show tensors that &share its storage", partial(session.search_sharing, node))
    device = row.devices[0][0]
    _add(menu, f"&Filter by {_label(device)}", partial(session.search_device, node))


def _add_export(
    menu: QMenu, session: Session, screen: Screen, nodes: tuple[int, ...], *, has_tensors: bool
) -> None:
    menu.addSeparator()
    if screen.can_export:
        text, can = "Leave &out of the export\u2026", session.can_leave_out(nodes)
        without = _add(menu, text if can else _BOUND, partial(session.begin_export_without, nodes))
        without.setEnabled(can)
    if screen.map_choices and has_tensors:
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
