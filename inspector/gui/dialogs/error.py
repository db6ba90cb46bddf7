"""The dialog that shows unexpected errors."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import TOP, column, row
from inspector.gui.widgets.controls import button_row, code_field, confirm_copied, make_button
from inspector.gui.widgets.labels import plain_label
from inspector.gui.widgets.marks import ToneGlyph
from inspector.units import format_count

_SIZE = (720, 460)
_TITLE = "Something unexpected happened"
_WORDS = (
    "This is a bug in Checkpoint Inspector, not a problem with your file. The window keeps running, but your "
    "last action may not have taken effect. Please report it with the text below; nothing was sent anywhere."
)


class ErrorDialog(QDialog):
    """Shows one error, and those that follow while it is open."""

    def __init__(self, theme: Theme, text: str) -> None:
        # No parent: the window that is in front may be a dialog that closes in the next moment.
        super().__init__()
        self._theme = theme
        self._more = 0
        self.setWindowTitle(_TITLE)
        self.setWindowModality(Qt.WindowModality.ApplicationModal)  # also in front of a dialog that is open
        self.resize(*_SIZE)
        self._text = code_field(theme, "Error report", 0.95)
        self._text.setPlainText(text)
        self._count = plain_label("", "small")
        self._count.hide()
        self._copy = make_button("Copy", self._on_copy, icon="copy", theme=theme)
        words = column(
            plain_label(_TITLE, "lead", wrap=True), plain_label(_WORDS, "muted", wrap=True), spacing=4
        )
        head = row((ToneGlyph(theme, 40, "bad"), 0, TOP), (words, 1), spacing=16)
        close = make_button("Close", self.accept, kind="primary")
        close.setDefault(True)
        parts = (head, (self._text, 1), self._count, button_row(self._copy, close))
        column(*parts, spacing=12, margins=(24, 24, 24, 20), within=self)

    def add(self, text: str) -> None:
        self._text.appendPlainText(f"\n{text}")
        self.count()

    def count(self) -> None:
        self._more += 1
        self._count.setText(f"{format_count(self._more, 'more error')} since then.")
        self._count.show()

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text.toPlainText())
        confirm_copied(self._copy, self._theme)
