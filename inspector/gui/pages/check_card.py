"""The check whether the bytes of the file are as they were saved: its button, its progress, its result."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QProgressBar

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import TOP, column
from inspector.gui.widgets.cards import card_row, fill_lines
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import focus_kept, named, plain_label
from inspector.gui.widgets.progress import POLL_MS, show_fraction
from inspector.session.screen import CheckPage

_ICONS = {"good": "check", "bad": "tone-bad", "warning": "tone-warning", "neutral": "arrow-right"}


class CheckCard(QFrame):
    """Shows a `CheckPage`."""

    check_wanted = Signal()
    cancel_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._page = CheckPage()
        self._hint = plain_label("", "muted", wrap=True)
        self._label = plain_label("", "muted")
        self._bar = named(QProgressBar(), spoken="Progress of the check")
        self._bar.setTextVisible(False)
        self._lines = column(spacing=6)
        self._check = make_button("Check every byte", self.check_wanted, icon="shield", theme=theme)
        self._cancel = make_button("Cancel", self.cancel_wanted)
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._on_tick)
        words = column(self._hint, self._label, self._bar, self._lines, spacing=6)
        card_row(self, (words, 1), (self._check, 0, TOP), (self._cancel, 0, TOP))
        self.show_check(self._page)

    def show_check(self, page: CheckPage) -> None:
        """Show the progress of a check, or what it found."""
        self._page = page
        runs = page.progress is not None
        self._hint.setText(page.hint)
        self._hint.setVisible(not runs and not page.lines)
        self._label.setVisible(runs)
        self._bar.setVisible(runs)
        with focus_kept(self._check, self._cancel):
            self._check.setVisible(not runs)
            self._cancel.setVisible(runs)
        fill_lines(self._theme, self._lines, page.lines, _ICONS[page.tone], page.tone)
        if runs:
            self._on_tick()
            self._timer.start()
        else:
            self._timer.stop()

    def _on_tick(self) -> None:
        progress = self._page.progress
        if progress is not None:
            self._label.setText(progress.label)
            show_fraction(self._bar, progress.fraction)
