"""The device map, always in sight: each original device, what was saved there, and where it goes."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QWidget

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import NO_MARGINS, column, row
from inspector.gui.widgets.cards import frameless_scroll
from inspector.gui.widgets.controls import CalmComboBox, make_button
from inspector.gui.widgets.labels import ElidedLabel, blocked, clear_layout, named, plain_label, plain_tooltip
from inspector.gui.widgets.marks import Swatch, swatch_icon
from inspector.overriding import override
from inspector.session.screen import BranchRow, DeviceRow
from inspector.units import cut_text

_CARD_WIDTH = 300
_CARD_MAX_WIDTH = 440
_TITLE_WIDTH = 128
_ROWS_IN_SIGHT = 2
_HIGH_WINDOW = 700
_MOST_BRANCHES = 4
_MOST_CHARS = 40


class DeviceCard(QFrame):
    """One row of the map."""

    mapping_chosen = Signal(str, str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._device = ""
        self.setProperty("card", True)
        self.setMaximumWidth(_CARD_MAX_WIDTH)
        self._color = -1
        self._swatch = Swatch(lambda: theme.tokens.device(self._color))
        self._name = ElidedLabel("", "strong")
        self._summary = ElidedLabel("", "small")
        self._note = ElidedLabel("", "small")
        self._arrow = Glyph(theme, "arrow-right", 18, ink="faint")
        self._to = CalmComboBox()
        self._to.setMinimumWidth(112)
        self._to.setIconSize(QSize(12, 12))
        self._to.currentTextChanged.connect(self._on_chosen)
        words = column(self._name, self._summary, self._note, spacing=1)
        parts = (self._swatch, (words, 1), self._arrow, self._to)
        row(*parts, spacing=10, margins=(14, 8, 10, 8), within=self)

    def show_row(self, row: DeviceRow, colors: dict[str, int]) -> None:
        """Show one original device and where it goes."""
        self._device = row.device
        self._color = row.color
        self._swatch.update()
        self._name.setText(row.device)
        self._summary.setText(row.summary)
        self._note.setText(row.note)
        self._note.setVisible(bool(row.note))
        self._to.setAccessibleName(f"Where the tensors of {row.device} go")
        self.setToolTip(plain_tooltip(row.note))
        self._arrow.show_glyph("arrow-right", ink="faint" if row.to == row.device else "accent")
        with blocked(self._to):
            self._to.clear()
            for choice in row.choices:
                self._to.addItem(swatch_icon(self._theme, colors.get(choice, -1)), choice)
            self._to.setCurrentText(row.to)

    def _on_chosen(self, text: str) -> None:
        if text:
            self.mapping_chosen.emit(self._device, text)


class BranchList(QWidget):
    """Shows the branches as buttons; a click removes one."""

    removed = Signal(object)  # a Signal(str) would lose bytes of names that are not UTF-8

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._row = row(spacing=8, margins=(2, 0, 0, 0), within=self)
        self.setVisible(False)

    def show_branches(self, branches: tuple[BranchRow, ...]) -> None:
        """Show which parts of the tree have a destination of their own in the exported copy."""
        clear_layout(self._row)
        self.setVisible(bool(branches))
        self._row.addWidget(plain_label("Also in the copy:", "small"))
        for branch in branches[:_MOST_BRANCHES]:
            text = f"{cut_text(branch.label, _MOST_CHARS)} \u2192 {branch.to}"
            remove = partial(self.removed.emit, branch.pattern)
            button = make_button(text, remove, kind="quiet", icon="close", theme=self._theme)
            button.setToolTip(plain_tooltip(f"{branch.label} \u2192 {branch.to}\nClick to remove this rule."))
            button.setAccessibleName(f"Remove the rule {branch.label} to {branch.to}")
            self._row.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        if len(branches) > _MOST_BRANCHES:
            self._row.addWidget(plain_label(f"and {len(branches) - _MOST_BRANCHES} more", "small"))
        self._row.addStretch(1)


class DeviceMapBar(QWidget):
    """All rows of the map side by side, wrapped where the window is narrow."""

    mapping_chosen = Signal(str, str)
    branch_removed = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._branches = BranchList(theme)
        self._branches.removed.connect(self.branch_removed)
        self._shown_branches: tuple[BranchRow, ...] = ()
        self._cards: list[DeviceCard] = []
        self._columns = 0
        self._rows: tuple[DeviceRow, ...] = ()
        self._no_map = ""
        self._colors: dict[str, int] = {}
        theme.changed.connect(self._on_theme_changed)
        self.setAccessibleName("Device map")
        self._grid_holder = named(QWidget(), "scrolled")
        self._grid = QGridLayout(self._grid_holder)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(8)
        self._grid.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self._scroll = frameless_scroll(QScrollArea(), self._grid_holder)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._holder = QWidget()
        column(self._scroll, self._branches, spacing=6, margins=NO_MARGINS, within=self._holder)
        self._title = _build_title()
        self._line = plain_label("", "muted", wrap=True, selectable=True)
        self._line.setContentsMargins(4, 0, 0, 0)
        row(self._title, (self._holder, 1), (self._line, 1), spacing=0, margins=NO_MARGINS, within=self)

    def show_rows(
        self,
        rows: tuple[DeviceRow, ...],
        colors: dict[str, int],
        branches: tuple[BranchRow, ...] = (),
        no_map: str = "",
    ) -> None:
        """Show the map, or in a line why there is none; `colors` are those of the file's devices."""
        self._no_map = no_map
        self._line.setText(no_map)
        self._line.setVisible(bool(no_map))
        for part in (self._title, self._holder):
            part.setHidden(bool(no_map))
        self._rows, self._colors, self._shown_branches = rows, colors, branches
        self._branches.show_branches(branches)
        self.setVisible(bool(rows or no_map))
        if len(rows) != len(self._cards):
            clear_layout(self._grid)
            self._cards = [self._make_card() for _ in rows]
            self._columns = 0
        for card, shown in zip(self._cards, rows, strict=True):
            card.show_row(shown, colors)
        self._arrange()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _on_theme_changed(self) -> None:
        self.show_rows(self._rows, self._colors, self._shown_branches, self._no_map)

    def _make_card(self) -> DeviceCard:
        card = DeviceCard(self._theme)
        card.mapping_chosen.connect(self.mapping_chosen)
        return card

    def _arrange(self) -> None:
        if not self._cards:
            return
        room = self.width() - _TITLE_WIDTH
        columns = max(1, min(len(self._cards), room // _CARD_WIDTH))
        if columns != self._columns:
            self._columns = columns
            for place, card in enumerate(self._cards):
                self._grid.addWidget(card, place // columns, place % columns)
        lines = -(-len(self._cards) // columns)
        height = max(card.sizeHint().height() for card in self._cards)
        for card in self._cards:
            card.setMinimumHeight(height)
        in_sight = _ROWS_IN_SIGHT if self.window().height() >= _HIGH_WINDOW else 1
        self._scroll.setFixedHeight(min(lines, in_sight) * (height + 8) - 8)


def _build_title() -> QWidget:
    holder = QWidget()
    holder.setFixedWidth(_TITLE_WIDTH)
    title, caption = plain_label("Device map", "strong"), plain_label("saved on \u2192 goes to", "small")
    column(title, caption, 1, spacing=1, margins=(4, 8, 0, 0), within=holder)
    return holder
