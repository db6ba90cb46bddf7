"""Unexpected errors: shown once, as text that can be copied, while the window keeps running.

What a slot or a thread raises is caught by no one: it would go to a terminal that most users never see.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication, QMainWindow

from inspector.gui.theme.theme import Theme
from inspector.records import dataclass
from inspector.units import cut_text

if TYPE_CHECKING:
    from inspector.gui.dialogs.error import ErrorDialog

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]
_MOST_CHARS = 20_000
_MOST_SHOWN = 20
_MESSAGE_MS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """One error.

    Attributes:
        key: What identifies it: its type and the line that raised it.
    """

    key: tuple[str, str, int]
    title: str
    text: str


class UnexpectedErrors(QObject):
    """Handles what slots and threads raise, and shows each different error once."""

    _happened = Signal(object)

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._known: set[tuple[str, str, int]] = set()
        self._dialog: ErrorDialog | None = None
        self._before: tuple[Hook, Callable[[threading.ExceptHookArgs], object]] | None = None
        self._happened.connect(self._on_happened, Qt.ConnectionType.QueuedConnection)

    def install(self) -> None:
        """Handle all errors from now on."""
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self._take
        threading.excepthook = self._take_from_thread

    def remove(self) -> None:
        """Restore the hooks that were installed before."""
        if self._before is not None:
            sys.excepthook, threading.excepthook = self._before
            self._before = None

    def _take(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if self._before is not None:
            self._before[0](kind, error, trace)  # the terminal, if there is one, shows it as before
        if issubclass(kind, Exception):
            self._happened.emit(report_of(kind, error, trace))

    def _take_from_thread(self, raised: threading.ExceptHookArgs) -> None:
        if self._before is not None:
            self._before[1](raised)
        if issubclass(raised.exc_type, Exception) and raised.exc_value is not None:
            self._happened.emit(report_of(raised.exc_type, raised.exc_value, raised.exc_traceback))

    def _on_happened(self, report: ErrorReport) -> None:
        shown = self._dialog
        if report.key in self._known or len(self._known) >= _MOST_SHOWN:
            if shown is not None:
                shown.count()
            _show_message(f"Again: {cut_text(report.title, 100)}")
            return
        self._known.add(report.key)
        if shown is not None:
            shown.add(report.text)
            return
        from inspector.gui.dialogs.error import ErrorDialog

        dialog = self._dialog = ErrorDialog(self._theme, report.text)
        dialog.finished.connect(self._on_closed)
        dialog.open()

    def _on_closed(self) -> None:
        dialog, self._dialog = self._dialog, None
        if dialog is not None:
            dialog.deleteLater()


def report_of(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> ErrorReport:
    """Return the report of an error, with what is needed to fix it."""
    import platform
    import traceback

    import PySide6

    from inspector import __version__

    frames = traceback.extract_tb(trace)
    place = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
    program = f"Checkpoint Inspector {__version__}, Python {platform.python_version()}"
    system = f"PySide6 {PySide6.__version__}, {platform.platform()}"
    text = "".join(traceback.format_exception(kind, error, trace))
    title = "".join(traceback.format_exception_only(kind, error)).strip()
    return ErrorReport(
        key=(kind.__name__, *place), title=title, text=f"{program}\n{system}\n\n{_cut_middle(text)}".rstrip()
    )


def _cut_middle(text: str) -> str:
    """Cut what is very long: the beginning shows where, and the end shows what."""
    if len(text) <= _MOST_CHARS:
        return text
    half = _MOST_CHARS // 2
    return f"{text[:half]}\n...\n{text[-half:]}"


def _show_message(text: str) -> None:
    for window in QApplication.topLevelWidgets():
        if isinstance(window, QMainWindow):
            window.statusBar().showMessage(text, _MESSAGE_MS)
