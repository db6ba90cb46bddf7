"""The device map in full: what each device holds, what stays behind, and the rules for parts of the tree."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QSizePolicy, QWidget

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.controls import CalmComboBox, make_button
from inspector.gui.widgets.labels import ElidedLabel, blocked, clear_layout, describe, plain_label
from inspector.gui.widgets.marks import Swatch, swatch_icon
from inspector.overriding import override
from inspector.units import cut_text

if TYPE_CHECKING:
    from inspector.session.screen import BranchRow, DeviceRow


# One device of the map as a pill, and the list of destinations that is edited in it.

_MOST_NAME = 120
_MOST_TEXT = 120
_CHROME = 54
"""What stands beside the text of a list: the swatch, the arrow and the room around them."""


class Destination(CalmComboBox):
    """The list of where the tensors of one device can go."""

    mapping_chosen = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._device = ""
        self.setProperty("slim", True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setIconSize(QSize(12, 12))
        self.currentTextChanged.connect(self._on_chosen)

    def show_row(self, row: DeviceRow, colors: dict[str, int]) -> None:
        self._device = row.device
        self.setAccessibleName(f"Where the tensors of {row.device} go")
        said = f"{row.summary}; {row.note}" if row.note else row.summary
        describe(self, said)
        with blocked(self):
            self.clear()
            for choice in row.choices:
                self.addItem(swatch_icon(self._theme, colors.get(choice, -1)), choice)
            self.setCurrentText(row.to)
        self.updateGeometry()

    @override
    def sizeHint(self) -> QSize:
        """Return the size for the current text: sixteen lists as wide as their longest entry do not fit."""
        text = self.fontMetrics().horizontalAdvance(self.currentText())
        return QSize(min(text, _MOST_TEXT) + _CHROME, super().sizeHint().height())

    @override
    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    @override
    def showPopup(self) -> None:
        self.view().setMinimumWidth(max(self.width(), self.view().sizeHintForColumn(0) + _CHROME))
        super().showPopup()

    def _on_chosen(self, text: str) -> None:
        if text:
            self.mapping_chosen.emit(self._device, text)


class Pill(QFrame):
    """A device and where it goes, in one line; what it holds where there is room, else in the tooltip."""

    mapping_chosen = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._color = -1
        self.setProperty("pill", True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._swatch = Swatch(lambda: theme.tokens.device(self._color))
        self._name = ElidedLabel("", "strong")
        self._name.setMaximumWidth(_MOST_NAME)
        self._summary = ElidedLabel("", "small")
        self._mark = Glyph(theme, "tone-warning", 14, ink="warning")
        self._arrow = Glyph(theme, "arrow-right", 14, ink="faint")
        self.to = Destination(theme)
        self.to.mapping_chosen.connect(self.mapping_chosen)
        self._name.setBuddy(self.to)  # on Linux, the name of a list is that of its label
        parts = (self._swatch, self._name, self._summary, self._arrow, self._mark, self.to)
        row(*parts, spacing=5, margins=(9, 0, 2, 0), within=self)

    def show_row(self, row: DeviceRow, colors: dict[str, int]) -> None:
        self._color = row.color
        self._swatch.update()
        self._name.setText(row.device)
        self._summary.setText(row.summary)
        self._mark.setVisible(row.is_missing)
        self._arrow.show_glyph("arrow-right", ink="faint" if row.to == row.device else "accent")
        self.to.show_row(row, colors)
        said = f"{row.device}: {row.summary}" + (f"; {row.note}" if row.note else "")
        describe(self, said)

    def show_summary(self, *, visible: bool) -> None:
        self._summary.setVisible(visible)


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
