"""The device map in full: what each device holds, what stays behind, and the rules for parts of the tree."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QWidget

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import ElidedLabel, clear_layout, describe, plain_label
from inspector.gui.widgets.marks import Swatch
from inspector.gui.workspace.pill import Destination
from inspector.units import cut_text

if TYPE_CHECKING:
    from inspector.session.screen import BranchRow, DeviceRow

COLUMNS = 2
_MOST_BRANCHES = 16
_MOST_CHARS = 40


class DeviceCard(QFrame):
    """One device with all that is known of it."""

    mapping_chosen = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._color = -1
        self.setProperty("card", True)
        self._swatch = Swatch(lambda: theme.tokens.device(self._color))
        self._name = ElidedLabel("", "strong")
        self._summary = ElidedLabel("", "small")
        self._note = ElidedLabel("", "small")
        self._arrow = Glyph(theme, "arrow-right", 18, ink="faint")
        self.to = Destination(theme)
        self.to.mapping_chosen.connect(self.mapping_chosen)
        self._name.setBuddy(self.to)
        words = column(self._name, self._summary, self._note, spacing=1)
        parts = (self._swatch, (words, 1), self._arrow, self.to)
        row(*parts, spacing=10, margins=(12, 6, 8, 6), within=self)

    def show_row(self, row: DeviceRow, colors: dict[str, int]) -> None:
        """Show one original device and where it goes."""
        self._color = row.color
        self._swatch.update()
        self._name.setText(row.device)
        self._summary.setText(row.summary)
        self._note.setText(row.note)
        self._note.setVisible(bool(row.note))
        self._arrow.show_glyph("arrow-right", ink="faint" if row.to == row.device else "accent")
        self.to.show_row(row, colors)


class BranchList(QWidget):
    """Shows the rules for parts of the tree as buttons; a click removes one."""

    removed = Signal(object)  # a Signal(str) would lose bytes of names that are not UTF-8

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._column = column(spacing=2, margins=(0, 8, 0, 0), within=self)
        self.setVisible(False)

    def show_branches(self, branches: tuple[BranchRow, ...]) -> None:
        """Show which parts of the tree have a destination of their own in the exported copy."""
        clear_layout(self._column)
        self.setVisible(bool(branches))
        self._column.addWidget(plain_label("Parts of the tree with a destination of their own", "section"))
        for branch in branches[:_MOST_BRANCHES]:
            text = f"{cut_text(branch.label, _MOST_CHARS)} \u2192 {branch.to}"
            remove = partial(self.removed.emit, branch.pattern)
            button = make_button(text, remove, kind="quiet", icon="close", theme=self._theme)
            describe(button, f"{branch.label} \u2192 {branch.to}\nClick to remove this rule.")
            button.setAccessibleName(f"Remove the rule {branch.label} to {branch.to}")
            self._column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        if len(branches) > _MOST_BRANCHES:
            self._column.addWidget(plain_label(f"and {len(branches) - _MOST_BRANCHES} more", "small"))


class MapPanel(QWidget):
    """All devices in two columns, and the rules below them."""

    mapping_chosen = Signal(str, str)
    branch_removed = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._cards: list[DeviceCard] = []
        self._branches = BranchList(theme)
        self._branches.removed.connect(self.branch_removed)
        self._grid = QGridLayout()
        self._grid.setSpacing(8)
        for place in range(COLUMNS):
            self._grid.setColumnStretch(place, 1)
        title = plain_label("Saved on \u2192 goes to", "section")
        column(title, self._grid, self._branches, 1, spacing=8, margins=(14, 12, 14, 14), within=self)

    def show_rows(
        self, rows: tuple[DeviceRow, ...], colors: dict[str, int], branches: tuple[BranchRow, ...]
    ) -> None:
        """Show the map; `colors` are those of the file's devices."""
        self._branches.show_branches(branches)
        if len(rows) != len(self._cards):
            clear_layout(self._grid)
            self._cards = [self._make_card(place) for place in range(len(rows))]
        for card, shown in zip(self._cards, rows, strict=True):
            card.show_row(shown, colors)

    def _make_card(self, place: int) -> DeviceCard:
        card = DeviceCard(self._theme)
        card.mapping_chosen.connect(self.mapping_chosen)
        self._grid.addWidget(card, place // COLUMNS, place % COLUMNS)
        return card
