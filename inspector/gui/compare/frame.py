"""What the two windows that compare files share: size, theme, the progress of opening, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QLabel, QMainWindow, QProgressBar

from inspector.gui.placing import LEAST, first_size
from inspector.gui.theme.icons import retint
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.progress import POLL_MS, show_fraction
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.progress import Progress


class ComparingFrame(QMainWindow):
    """A window with a page that shows how far the comparison is; its windows build that page."""

    closed = Signal()
    _label: QLabel
    _bar: QProgressBar

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._on_tick)
        self.setMinimumSize(LEAST)
        self.resize(first_size(QGuiApplication.primaryScreen().availableGeometry()))
        theme.changed.connect(self._on_theme_changed)

    @property
    def progress(self) -> Progress | None:
        raise NotImplementedError  # not abstract: Qt's classes have a metaclass of their own

    def _on_tick(self) -> None:
        progress = self.progress
        if progress is not None:
            self._label.setText(progress.label)
            show_fraction(self._bar, progress.fraction)

    def _on_theme_changed(self) -> None:
        retint(self, self._theme.tokens)

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        self._timer.stop()
        event.accept()
        self.closed.emit()
