"""The export dialog while it writes, and afterwards."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.cards import fill_lines, page_column
from inspector.gui.widgets.controls import button_row, make_button
from inspector.gui.widgets.labels import ElidedLabel, named, plain_label, sentence
from inspector.gui.widgets.marks import ToneGlyph
from inspector.gui.widgets.progress import POLL_MS, Rate, show_fraction
from inspector.progress import Progress
from inspector.session.export.page import ExportPage, ExportResult
from inspector.session.screen import FailurePage
from inspector.units import escape_text


class RunningPage(QWidget):
    """Shows how far the export is, ten times a second."""

    cancel_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._work: Progress | None = None
        self._is_stopping = False
        self._rate = Rate()
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._on_tick)
        self._label = plain_label("", "muted", wrap=True)
        self._bar = named(QProgressBar(), spoken="Progress of the export")
        self._bar.setTextVisible(False)
        self._figures = plain_label("", "small")
        self._cancel = QPushButton("Cancel")
        self._cancel.clicked.connect(self.cancel_wanted)
        self._title = plain_label("", "lead")
        column = page_column(self)
        column.addWidget(self._title)
        column.addWidget(self._label)
        column.addSpacing(16)
        column.addWidget(self._bar)
        column.addWidget(self._figures)
        column.addStretch(1)
        column.addSpacing(16)
        column.addLayout(button_row(self._cancel))

    def follow(self, page: ExportPage) -> None:
        """Follow a running export."""
        if page.progress is not self._work:
            self._work, self._rate = page.progress, Rate()
        self._is_stopping = page.stopping
        self._title.setText(page.title)
        self._cancel.setEnabled(not page.stopping)
        self._on_tick()
        self._timer.start()

    def stop(self) -> None:
        """End it."""
        self._timer.stop()
        self._work = None

    def _on_tick(self) -> None:
        if self._work is None:
            return
        self._label.setText("Stopping\u2026" if self._is_stopping else self._work.label)
        self._figures.setText(self._rate.describe(self._work))
        show_fraction(self._bar, self._work.fraction)


class ResultPage(QWidget):
    """Shows how the export ended."""

    folder_wanted = Signal(object)  # a path in a Signal(str) would lose the bytes that are no UTF-8
    open_wanted = Signal(object)
    back_wanted = Signal()
    undo_wanted = Signal()
    receipt_wanted = Signal()
    closed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._destination = ""
        self._glyph = ToneGlyph(theme, 40, "good")
        self._title = plain_label("", "lead", wrap=True, selectable=True)
        self._path = ElidedLabel("", "small", Qt.TextElideMode.ElideMiddle)
        self._lines, self._omissions, self._warnings = QVBoxLayout(), QVBoxLayout(), QVBoxLayout()
        for lines in (self._lines, self._omissions, self._warnings):
            lines.setSpacing(6)
        self._undo = make_button("Undo", self.undo_wanted)
        self._receipt = make_button("Save receipt\u2026", self.receipt_wanted)
        self._close = make_button("Close", self.closed, kind="primary")
        self._folder = make_button("Show in folder", self._on_folder, icon="folder", theme=theme)
        self._open = make_button("Open the copy", self._on_open, icon="open", theme=theme)
        self._back = make_button("Back", self.back_wanted)
        self._lay_out()

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._title)
        words.addWidget(self._path)
        head = QHBoxLayout()
        head.setSpacing(16)
        head.addWidget(self._glyph, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)
        column = page_column(self)
        column.addLayout(head)
        column.addSpacing(8)
        column.addLayout(self._lines)
        column.addLayout(self._omissions)
        column.addLayout(self._warnings)
        column.addStretch(1)
        column.addSpacing(16)
        row = (self._back, self._undo, self._receipt, self._open, self._folder, self._close)
        column.addLayout(button_row(*row))

    def show_done(self, result: ExportResult) -> None:
        """Show what was written and how it was checked."""
        self._destination = result.destination
        self._glyph.show_tone("warning" if result.warnings else "good")
        self._title.setText(result.title)
        self._path.setText(escape_text(result.destination))
        fill_lines(self._theme, self._lines, result.lines, "check", "good")
        fill_lines(self._theme, self._omissions, result.omissions, "tone-warning", "warning")
        fill_lines(self._theme, self._warnings, result.warnings, "tone-warning", "warning")
        self._offer(copy=True)
        self._undo.setVisible(result.can_undo)
        self._receipt.setVisible(result.has_receipt)
        self._open.setVisible(result.is_copy)

    def show_failed(self, failure: FailurePage, *, cancelled: bool, can_go_back: bool) -> None:
        """Report that nothing was written, and lead back to the draft if there is one."""
        self._glyph.show_tone("neutral" if cancelled else "bad")
        self._title.setText(failure.title)
        self._path.setText(failure.where)
        lines = tuple(sentence(line) for line in (failure.what, failure.remedy) if line)
        fill_lines(self._theme, self._lines, lines, "arrow-right", "faint")
        for layout in (self._omissions, self._warnings):
            fill_lines(self._theme, layout, (), "", "")
        self._offer(copy=False)
        self._back.setVisible(can_go_back)

    def _offer(self, *, copy: bool) -> None:
        self._path.setVisible(bool(self._path.text()))
        self._folder.setVisible(copy)
        self._open.setVisible(copy)
        for button in (self._undo, self._receipt):
            button.setVisible(False)
        self._back.setVisible(False)

    def _on_folder(self) -> None:
        self.folder_wanted.emit(self._destination)

    def _on_open(self) -> None:
        self.open_wanted.emit(self._destination)
