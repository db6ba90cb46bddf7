"""The strip below the tree: the facts of what is selected, in sight whatever page is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QToolButton, QWidget

from inspector.gui.theme.icons import draw_icons, name_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.labels import ElidedLabel, describe, named

if TYPE_CHECKING:
    from inspector.session.screen import Screen

_NOTHING = "Nothing selected"
_HINT = "Select a row to see its facts here."
_BETWEEN = "  \u00b7  "


class FactsStrip(QFrame):
    """Two lines: the path with a button that copies it, and the facts."""

    copy_wanted = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._pattern = ""
        named(self, "factsStrip", spoken="Facts of the selection")
        self._title = ElidedLabel("", "strong", Qt.TextElideMode.ElideMiddle)
        self._facts = ElidedLabel("", "muted")
        self._copy = named(QToolButton(), spoken="Copy the path of the selected row")
        describe(self._copy, "Copy the path, as --exclude and path: rules take it")
        self._copy.setProperty("kind", "icon")
        name_icon(self._copy, "copy")
        self._copy.clicked.connect(self._on_copy)
        lines = column(self._title, self._facts, spacing=1)
        row((lines, 1), self._copy, spacing=6, margins=(10, 4, 4, 4), within=self)
        self.show_strip(None)

    def show_screen(self, screen: Screen) -> None:
        """Show the facts of what is selected."""
        self.show_strip(screen)

    def show_strip(self, screen: Screen | None) -> None:
        """Show the strip of a screen, or that there is nothing selected."""
        strip = None if screen is None else screen.strip
        self._pattern = "" if strip is None else strip.pattern
        self._title.setText(_NOTHING if strip is None else strip.title)
        self._facts.setText(_HINT if strip is None else _BETWEEN.join(strip.facts))
        self.setAccessibleDescription("" if strip is None else f"{strip.title}: {', '.join(strip.facts)}")
        self._copy.setEnabled(bool(self._pattern))
        draw_icons((self._copy,), self._theme.tokens)

    def _on_copy(self) -> None:
        self.copy_wanted.emit(self._pattern)
