"""The left part of the workspace: the tree, and the facts of what is selected in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.tree.nothing_found import NothingFound
from inspector.gui.tree.painting import PaintWaiter
from inspector.gui.tree.view import TensorTreeView
from inspector.gui.widgets.boxes import column
from inspector.gui.workspace.strip import FactsStrip
from inspector.overriding import override
from inspector.report.outline.flat import Order

if TYPE_CHECKING:
    from inspector.gui.commands import Commands
    from inspector.session.controller import Session
    from inspector.session.screen import Screen

_LEAST_WIDTH = 320
_SPACING = 6
_MARGIN = 12


class TreePane(QWidget):
    """Lays the tree and its strip out, and connects them."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tree = TensorTreeView(theme, self)
        self.painted = PaintWaiter(self.tree.viewport())
        self.strip = FactsStrip(theme, self)
        self.nothing = NothingFound()
        self.setMinimumWidth(_LEAST_WIDTH)
        self.setFocusProxy(self.tree)
        cell = QGridLayout()
        cell.addWidget(self.tree, 0, 0)
        cell.addWidget(self.nothing, 0, 0, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter)
        column((cell, 1), self.strip, spacing=_SPACING, margins=(0, 0, 0, 0), within=self)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.nothing.fit(self.width() - 2 * _MARGIN)

    def connect_commands(self, commands: Commands) -> None:
        """Connect what the window does."""
        self.tree.node_activated.connect(commands.on_node_activated)
        self.tree.rows_copied.connect(commands.copy)
        self.tree.drag.told.connect(commands.tell)
        self.strip.copy_wanted.connect(commands.copy)
        self.nothing.end_wanted.connect(commands.on_find_end)

    def connect_to(self, session: Session) -> None:
        """Connect what the session decides."""
        self.tree.node_chosen.connect(session.select)
        self.tree.rows_chosen.connect(session.pick)
        self.tree.sort_wanted.connect(lambda column, down: session.list_flat(Order(column, down)))
        self.nothing.query_wanted.connect(session.search)
        self.tree.drag.connect_to(session)

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        """Show a screen, as far as it differs from the last one."""
        if old is None or old.tree is not new.tree:
            self.tree.show_tree(new.tree)
            old = None
        if new.tree is not None and (old is None or old.sparks is not new.sparks):
            self.tree.show_sparks(new.sparks)
        if new.tree is not None and (old is None or old.scalars is not new.scalars):
            self.tree.show_scalars(new.scalars or {})
        if old is None or old.strip is not new.strip:
            self.strip.show_screen(new)
        self.tree.drag.show_taken(new.taken)
        if old is None or old.search is not new.search:
            self.nothing.show_search(new.search)

    def show_found(self, old: Screen | None, new: Screen, *, only: bool) -> None:
        """Show what a search found, as a tree or as a list, and what is selected."""
        found = old is None or old.matches is not new.matches
        if found:
            self.tree.show_matches(new.matches, new.searched, only=only)
        if found or old is None or old.flat is not new.flat:
            found = True
            self.tree.show_flat(*(new.flat or (None, 0)))
        # The end of a search, or of a list, brings back rows that were hidden.
        if found or old is None or old.selected != new.selected:
            self.tree.show_selected(new.selected)

    def forget(self) -> None:
        """Release the file that was shown."""
        self.painted.forget()
        self.tree.drag.connect_to(None)
        self.tree.show_tree(None)
        self.strip.show_strip(None)
        self.nothing.show_search(None)
