"""What the states of the export dialog are made of."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import clear_layout, plain_label


def button_row(*buttons: QPushButton) -> QHBoxLayout:
    """Lay buttons out at the right."""
    row = QHBoxLayout()
    row.setSpacing(8)
    row.addStretch(1)
    for button in buttons:
        button.setAutoDefault(False)
        row.addWidget(button)
    return row


def fill_lines(theme: Theme, layout: QVBoxLayout, lines: tuple[str, ...], icon: str, ink: str) -> None:
    """Fill a layout with sentences, an icon before each."""
    clear_layout(layout)
    for line in lines:
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(Glyph(theme, icon, 18, ink=ink), 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(plain_label(line, wrap=True, selectable=True), 1)
        layout.addWidget(holder)
        holder.setVisible(layout.parentWidget() is not None)  # now: the dialog is about to take its size


def page_column(page: QWidget) -> QVBoxLayout:
    """Make the column that a page of the dialog stands in."""
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    return column
