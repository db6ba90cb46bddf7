"""The log of a window: what the program did in it, followed while it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column
from inspector.gui.widgets.controls import button_row, code_field, confirm_copied, make_button
from inspector.gui.widgets.labels import plain_label
from inspector.session.log import MOST_LINES, LogLine

_POLL_MS = 500
_SIZE = (720, 420)
_MARKS = {"done": " ", "warning": "!", "error": "x"}
_SPOKEN = {"done": "", "warning": "warning: ", "error": "error: "}
_EMPTY = "Nothing was done in this window yet."


class LogDialog(QDialog):
    """Shows the last lines of `Screen.log`."""

    def __init__(self, theme: Theme, parent: QWidget, log: Callable[[], tuple[LogLine, ...]]) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Log")
        self.resize(*_SIZE)
        self._theme = theme
        self._log = log
        self._shown: tuple[LogLine, ...] | None = None
        self._field = code_field(theme, "What was done in this window")
        self._copy = make_button("Copy all", self._on_copy, icon="copy", theme=theme)
        close = make_button("Close", self.accept, kind="primary")
        said = f"What was done in this window, the last {MOST_LINES:,} steps. Nothing of it is saved."
        column(
            plain_label("Log", "lead"),
            plain_label(said, "muted", wrap=True),
            (self._field, 1),
            button_row(self._copy, close),
            spacing=10,
            margins=(24, 20, 24, 20),
            within=self,
        )
        close.setDefault(True)
        self._timer = QTimer(self, interval=_POLL_MS)
        self._timer.timeout.connect(self.refresh)
        self._timer.start()
        self.refresh()

    def refresh(self) -> None:
        """Show what was done since."""
        log = self._log()
        if log == self._shown:
            return
        self._shown = log
        self._field.setPlainText("\n".join(map(_line, log)) or _EMPTY)
        bar = self._field.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(f"{self._field.toPlainText()}\n")
        confirm_copied(self._copy, self._theme)


def _line(line: LogLine) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(line.at))
    return f"{at}  {_MARKS[line.kind]} {_SPOKEN[line.kind]}{line.text}"
