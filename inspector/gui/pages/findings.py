"""The findings page: what a pasted error means, what was found in the file, and how the GPUs are doing."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Signal

from inspector.gui.pages.ask_box import AskBox
from inspector.gui.pages.finding_card import FindingCard
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column
from inspector.gui.widgets.cards import ScrollPanel, add_empty_state
from inspector.gui.widgets.labels import clear_layout, plain_label
from inspector.session.screen import FindingRow, Screen
from inspector.units import format_count

_MOST_CARDS = 200


class FindingsPanel(ScrollPanel):
    """Shows the findings as cards, worst first, below the field for an error message."""

    node_wanted = Signal(int)
    fix_wanted = Signal(object)
    open_wanted = Signal(object)
    error_pasted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Findings")
        self._ask = AskBox(theme)
        self._ask.asked.connect(self.error_pasted)
        self._list = column(spacing=12)
        self.cards.addWidget(self._ask)
        self.cards.addLayout(self._list, 1)

    def begin_error(self) -> None:
        """Ask for an error message."""
        self._ask.begin()
        self.verticalScrollBar().setValue(0)

    def show_screen(self, screen: Screen) -> None:
        """Show the findings of a screen."""
        self._ask.show_text(screen.error_text)
        clear_layout(self._list)
        self.fill(self._add_all(screen))

    def _add_all(self, screen: Screen) -> Iterator[None]:
        """Add card by card."""
        if screen.explanation is not None:
            self._add(screen.explanation, screen)
        ails = any(card.tone in {"bad", "warning"} for card in screen.doctor)
        if ails:
            self._add_doctor(screen)
        if screen.explanation is not None or ails:
            self._add_heading("In this file")
        for card in screen.findings[:_MOST_CARDS]:
            self._add(card, screen)
            yield
        left = len(screen.findings) - _MOST_CARDS
        if left > 0:
            self._list.addWidget(
                plain_label(f"{format_count(left, 'more finding')} of the same kinds.", "muted")
            )
        if not screen.findings:
            self._add_nothing()
        if screen.doctor and not ails:
            self._add_doctor(screen)
        self._list.addStretch(1)

    def _add_doctor(self, screen: Screen) -> None:
        self._add_heading("GPUs on the target")
        for card in screen.doctor:
            self._add(card, screen)

    def _add(self, row: FindingRow, screen: Screen) -> None:
        card = FindingCard(self.theme, row, screen.tree)
        card.node_wanted.connect(self.node_wanted)
        card.fix_wanted.connect(self.fix_wanted)
        card.open_wanted.connect(self.open_wanted)
        self._list.addWidget(card)

    def _add_heading(self, text: str) -> None:
        label = plain_label(text, "strong")
        label.setContentsMargins(2, 6, 0, 0)
        self._list.addWidget(label)

    def _add_nothing(self) -> None:
        self._list.addSpacing(24)
        text = "No problems were found in this file for this target."
        add_empty_state(self.theme, self._list, "check", "Nothing to report", text)
