"""What the pages are made of: cards that scroll, and what stands there when there is nothing to show."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import clear_layout, named, plain_label


class ScrollPanel(QScrollArea):
    """A page whose cards stand one above the other and scroll when there are too many."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self.theme = theme
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = named(QWidget(), "scrolled")
        self.cards = QVBoxLayout(holder)
        self.cards.setContentsMargins(16, 16, 16, 16)
        self.cards.setSpacing(12)
        self.setWidget(holder)

    def clear(self) -> None:
        """Remove all cards."""
        clear_layout(self.cards)

    def show_empty(self, icon: str, title: str, text: str) -> None:
        """Say that there is nothing to show, and why."""
        self.clear()
        self.cards.addStretch(2)
        self.cards.addWidget(Glyph(self.theme, icon, 40), 0, Qt.AlignmentFlag.AlignHCenter)
        for words, role in ((title, "strong"), (text, "muted")):
            label = plain_label(words, role, wrap=True)
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            self.cards.addWidget(label)
        self.cards.addStretch(3)
