"""One device of the map as a pill, and the list of destinations that is edited in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QFrame, QSizePolicy

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import row
from inspector.gui.widgets.controls import CalmComboBox
from inspector.gui.widgets.labels import ElidedLabel, blocked, describe
from inspector.gui.widgets.marks import Swatch, swatch_icon
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.session.screen import DeviceRow

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
        """Show where a device goes, and where it could go."""
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
        """Show one original device and where it goes."""
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
        """Show what the device holds, or leave it to the tooltip."""
        self._summary.setVisible(visible)
