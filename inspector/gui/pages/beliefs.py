"""The page of beliefs: what people take for granted about checkpoints, and what this file says to it."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Signal

from inspector.gui.pages.finding_card import FindingCard
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.cards import ScrollPanel
from inspector.gui.widgets.labels import plain_label
from inspector.report.words.beliefs import ABOUT
from inspector.session.screen import Screen


class BeliefsPanel(ScrollPanel):
    """Shows a card for each belief; the answers are worked out when the page is first looked at."""

    answers_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Beliefs")

    def show_screen(self, screen: Screen) -> None:
        """Show the answers of a screen, or ask for them."""
        if not screen.beliefs:
            self.answers_wanted.emit()
            return
        self.clear()
        self.cards.addWidget(plain_label(ABOUT, "muted", wrap=True))
        self.fill(self._add_cards(screen))

    def _add_cards(self, screen: Screen) -> Iterator[None]:
        for row in screen.beliefs:
            self.cards.addWidget(FindingCard(self.theme, row, None))
            yield
        self.cards.addStretch(1)
