"""The three states of the export dialog."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.failure_page import POLL_MS, sentence, show_fraction
from inspector.gui.icons import Glyph, set_icon
from inspector.gui.labels import ElidedLabel, clear_layout, named, plain_label
from inspector.gui.rate import Rate
from inspector.gui.theme import Theme
from inspector.progress import Progress
from inspector.session.screen import ExportDraft, FailurePage


def _button_row(*buttons: QPushButton) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(8)
    row.addStretch(1)
    for button in buttons:
        button.setAutoDefault(False)
        row.addWidget(button)
    return row


def _fill_lines(theme: Theme, layout: QVBoxLayout, lines: tuple[str, ...], icon: str, ink: str) -> None:
    clear_layout(layout)
    for line in lines:
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(Glyph(theme, icon, 18, ink=ink), 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(plain_label(line, wrap=True, selectable=True), 1)
        layout.addWidget(holder)


def _page_column(page: QWidget) -> QVBoxLayout:
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    return column


class DraftPage(QWidget):
    """Asks for the destination and tells what will change."""

    export_wanted = Signal(str, bool)
    browse_wanted = Signal()
    closed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._lines = QVBoxLayout()
        self._lines.setSpacing(6)
        self._path = named(QLineEdit(), spoken="Destination")
        self._path.textChanged.connect(self.refresh)
        self._browse = QPushButton("Browse\u2026")
        self._browse.clicked.connect(self.browse_wanted)
        self._size = plain_label("", "small")
        self._note = plain_label("", "warning", wrap=True)
        self._overwrite = QCheckBox("Replace the existing file")
        self._overwrite.toggled.connect(self.refresh)
        self._export = QPushButton("Export")
        self._export.setProperty("kind", "primary")
        set_icon(self._export, "export", theme.tokens, "on_accent")
        self._export.clicked.connect(self._on_export)
        cancel = QPushButton("Cancel")
        cancel.clicked.connect(self.closed)
        column = _page_column(self)
        column.addWidget(plain_label("Export a fixed copy", "lead"))
        column.addWidget(plain_label("The file itself stays as it is.", "muted"))
        column.addSpacing(8)
        column.addWidget(plain_label("What the copy changes", "section"))
        column.addLayout(self._lines)
        column.addSpacing(8)
        column.addLayout(self._build_destination())
        column.addStretch(1)
        column.addSpacing(8)
        column.addLayout(_button_row(cancel, self._export))

    @property
    def destination(self) -> str:
        """The path that stands in the field."""
        return str(self._path.text()).strip()

    def show_draft(self, draft: ExportDraft) -> None:
        """Start from a draft."""
        _fill_lines(self._theme, self._lines, draft.summary, "arrow-right", "accent")
        self._size.setText(f"Size of the copy: {draft.size}" if draft.size else "")
        self._overwrite.setChecked(False)
        self.show_destination(draft.destination)

    def show_destination(self, path: str) -> None:
        """Put a path in the field."""
        self._path.setText(path)
        self._path.setCursorPosition(len(path))
        self.refresh()

    def refresh(self) -> None:
        """Look at the destination again: is there such a folder, is there a file already?"""
        path = Path(self.destination)
        exists = bool(self.destination) and path.is_file()
        self._overwrite.setVisible(exists)
        self._note.setText(_note_on(self.destination, path))
        self._note.setVisible(bool(self._note.text()))
        good = bool(self.destination) and path.parent.is_dir() and not path.is_dir()
        self._export.setEnabled(good and (not exists or self._overwrite.isChecked()))

    def _build_destination(self) -> QVBoxLayout:
        label = plain_label("Destination", "section")
        label.setBuddy(self._path)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._path, 1)
        row.addWidget(self._browse)
        column = QVBoxLayout()
        column.setSpacing(6)
        column.addWidget(label)
        column.addLayout(row)
        for part in (self._size, self._note, self._overwrite):
            column.addWidget(part)
        return column

    def _on_export(self) -> None:
        overwrite = self._overwrite.isVisible() and self._overwrite.isChecked()
        self.export_wanted.emit(self.destination, overwrite)


def _note_on(text: str, path: Path) -> str:
    if not text:
        return "Say where the copy shall go."
    if path.is_dir():
        return "This is a folder. Add a file name."
    if path.is_file():
        return "There is a file of this name already."
    return "" if path.parent.is_dir() else "There is no such folder."


class RunningPage(QWidget):
    """Shows how far the export is, ten times a second."""

    cancel_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._work: Progress | None = None
        self._rate = Rate()
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._on_tick)
        self._label = plain_label("", "muted", wrap=True)
        self._bar = named(QProgressBar(), spoken="Progress of the export")
        self._bar.setTextVisible(False)
        self._figures = plain_label("", "small")
        self._cancel = QPushButton("Cancel")
        self._cancel.clicked.connect(self.cancel)
        column = _page_column(self)
        column.addWidget(plain_label("Writing the copy", "lead"))
        column.addWidget(self._label)
        column.addSpacing(16)
        column.addWidget(self._bar)
        column.addWidget(self._figures)
        column.addStretch(1)
        column.addSpacing(16)
        column.addLayout(_button_row(self._cancel))

    def follow(self, progress: Progress) -> None:
        """Follow a piece of work."""
        self._work, self._rate = progress, Rate()
        self._cancel.setEnabled(True)
        self._on_tick()
        self._timer.start()

    def stop(self) -> None:
        """End it."""
        self._timer.stop()
        self._work = None

    def cancel(self) -> None:
        """Ask for the work to stop, once."""
        if self._cancel.isEnabled():
            self._cancel.setEnabled(False)
            self._label.setText("Stopping\u2026")
            self.cancel_wanted.emit()

    def _on_tick(self) -> None:
        if self._work is None:
            return
        if self._cancel.isEnabled():
            self._label.setText(self._work.label)
        self._figures.setText(self._rate.describe(self._work))
        show_fraction(self._bar, self._work.fraction)


class ResultPage(QWidget):
    """Tells how the export ended."""

    folder_wanted = Signal(str)
    open_wanted = Signal(str)
    back_wanted = Signal()
    closed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._destination = ""
        self._glyph = Glyph(theme, "tone-good", 40, ink="on_fill", fill="good_fill")
        self._title = plain_label("", "lead", wrap=True, selectable=True)
        self._path = ElidedLabel("", "small", Qt.TextElideMode.ElideMiddle)
        self._lines = QVBoxLayout()
        self._lines.setSpacing(6)
        self._close = self._make_button("Close", self.closed, kind="primary")
        self._folder = self._make_button("Show in folder", icon="folder")
        self._folder.clicked.connect(self._on_folder)
        self._open = self._make_button("Open the copy", icon="open")
        self._open.clicked.connect(self._on_open)
        self._back = self._make_button("Back", self.back_wanted)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._title)
        words.addWidget(self._path)
        head = QHBoxLayout()
        head.setSpacing(16)
        head.addWidget(self._glyph, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)
        column = _page_column(self)
        column.addLayout(head)
        column.addSpacing(8)
        column.addLayout(self._lines)
        column.addStretch(1)
        column.addSpacing(16)
        column.addLayout(_button_row(self._back, self._open, self._folder, self._close))

    def show_done(self, destination: str, lines: tuple[str, ...]) -> None:
        """Tell that the copy stands and what its verification said."""
        self._destination = destination
        self._glyph.show_glyph("tone-good", ink="on_fill", fill="good_fill")
        self._title.setText("The copy is ready")
        self._path.setText(destination)
        _fill_lines(self._theme, self._lines, lines, "check", "good")
        self._offer(copy=True)

    def show_failed(self, failure: FailurePage, *, cancelled: bool) -> None:
        """Tell that there is no copy."""
        tone = "neutral" if cancelled else "bad"
        self._glyph.show_glyph(f"tone-{tone}", ink="on_fill", fill=f"{tone}_fill")
        self._title.setText(failure.title)
        self._path.setText(failure.where)
        lines = tuple(sentence(line) for line in (failure.what, failure.remedy) if line)
        _fill_lines(self._theme, self._lines, lines, "arrow-right", "faint")
        self._offer(copy=False)

    def _offer(self, *, copy: bool) -> None:
        self._path.setVisible(bool(self._path.text()))
        self._folder.setVisible(copy)
        self._open.setVisible(copy)
        self._back.setVisible(not copy)

    def _make_button(
        self, text: str, clicked: object = None, *, kind: str = "", icon: str = ""
    ) -> QPushButton:
        button = QPushButton(text)
        button.setProperty("kind", kind)
        if icon:
            set_icon(button, icon, self._theme.tokens)
        if clicked is not None:
            button.clicked.connect(clicked)
        return button

    def _on_folder(self) -> None:
        self.folder_wanted.emit(self._destination)

    def _on_open(self) -> None:
        self.open_wanted.emit(self._destination)
