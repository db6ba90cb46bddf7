"""The field for an error message that is explained for this file."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from inspector.gui.theme.theme import Theme, mono_font
from inspector.gui.widgets.boxes import MIDDLE, NO_MARGINS, column, row
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import blocked, plain_label

_PAUSE_MS = 250
_LINES = 6
_HINT = (
    "Paste a traceback, an error message, or the script that loads this file. "
    "It does not leave this computer."
)


class AskBox(QFrame):
    """A button that opens into a field for the text; the answer is a card below it."""

    asked = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._told = ""
        self._button = make_button("Paste an error\u2026", self.begin, icon="paste", theme=theme)
        self._button.setToolTip(
            "Find out what an error message means for this file, or which line of a script fails "
            "(Ctrl+Shift+V)"
        )
        self._close = make_button("Clear", self._on_closed, kind="quiet")
        self._hint = plain_label("Got an error message, or a script that fails?", "muted", wrap=True)
        self._text = QPlainTextEdit()
        self._text.setAccessibleName("Error message or script")
        self._text.setPlaceholderText(_HINT)
        self._text.setFont(mono_font(theme.base_points * 0.95))
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._text.setTabChangesFocus(True)
        self._text.setFixedHeight(self._text.fontMetrics().lineSpacing() * _LINES + 20)
        self._text.textChanged.connect(self._on_changed)
        self._pause = QTimer(self, interval=_PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self._ask)
        head = row((self._hint, 1, MIDDLE), self._close, self._button, spacing=12)
        column(head, self._text, spacing=10, margins=NO_MARGINS, within=self)
        self._show_open(is_open=False)

    def begin(self) -> None:
        """Open the field, with the text on the clipboard in it if that looks like an error message."""
        self._show_open(is_open=True)
        self._text.setFocus(Qt.FocusReason.OtherFocusReason)
        found = QGuiApplication.clipboard().text()
        if not self._text.toPlainText() and ("Error" in found or "torch.load(" in found):
            self._text.setPlainText(found)
            self._text.moveCursor(QTextCursor.MoveOperation.End)  # a traceback ends with the error

    def show_text(self, text: str) -> None:
        """Show what is being explained."""
        told, self._told = self._told, text
        if text:
            self._show_open(is_open=True)
        elif told and told == self._text.toPlainText():  # withdrawn, and not by emptying the field
            self._show_open(is_open=False)
        if self._pause.isActive() or text == self._text.toPlainText():
            return  # the user is typing, and is answered after the pause
        with blocked(self._text):
            self._text.setPlainText(text)

    def _show_open(self, *, is_open: bool) -> None:
        self._text.setVisible(is_open)
        self._close.setVisible(is_open)
        self._button.setVisible(not is_open)

    def _on_changed(self) -> None:
        self._pause.start()

    def _ask(self) -> None:
        self.asked.emit(self._text.toPlainText())

    def _on_closed(self) -> None:
        self._pause.stop()
        with blocked(self._text):
            self._text.setPlainText("")
        self._show_open(is_open=False)
        self.asked.emit("")
