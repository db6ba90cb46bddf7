"""The left part of the workspace: the tree, and the facts of what is selected in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.tree.strip import FactsStrip
from inspector.gui.tree.view import TensorTreeView
from inspector.gui.widgets.boxes import column

if TYPE_CHECKING:
    from inspector.gui.commands import Commands
    from inspector.session.controller import Session
    from inspector.session.screen import Screen

_LEAST_WIDTH = 320
_SPACING = 6


class TreePane(QWidget):
    """Lays the tree and its strip out, and connects them."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.tree = TensorTreeView(theme)
        self.strip = FactsStrip(theme)
        self.setMinimumWidth(_LEAST_WIDTH)
        self.setFocusProxy(self.tree)
        column((self.tree, 1), self.strip, spacing=_SPACING, margins=(0, 0, 0, 0), within=self)

    def connect_to(self, commands: Commands, session: Session | None) -> None:
        """Connect what the user does here."""
        self.tree.node_activated.connect(commands.on_node_activated)
        self.strip.copy_wanted.connect(commands.copy)
        if session is not None:
            self.tree.node_chosen.connect(session.select)
            self.tree.rows_chosen.connect(session.pick)

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        """Show a screen, as far as it differs from the last one."""
        if old is None or old.tree is not new.tree:
            self.tree.show_tree(new.tree)
        if old is None or old.strip is not new.strip:
            self.strip.show_screen(new)

    def forget(self) -> None:
        """Release the file that was shown."""
        self.tree.show_tree(None)
        self.strip.show_strip(None)
