"""Writing the fixed copy: where to, then how far, then whether it was verified."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDialog, QFileDialog, QPushButton, QVBoxLayout, QWidget

from inspector.gui.export_draft import DraftPage
from inspector.gui.export_pages import ResultPage, RunningPage
from inspector.gui.reveal import show_in_folder
from inspector.gui.theme import Theme
from inspector.overriding import override
from inspector.progress import Progress
from inspector.session.screen import ExportDraft, ExportResult, FailurePage

_WIDTH = 640


class ExportDialog(QDialog):
    """Goes through three states: the draft, the running export, the result."""

    export_wanted = Signal(str, bool)
    cancel_wanted = Signal()
    open_wanted = Signal(str)
    wish_changed = Signal(object)
    undo_wanted = Signal()
    receipt_wanted = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Export a fixed copy")
        self.setModal(True)
        self.setAcceptDrops(False)
        self.setMinimumWidth(_WIDTH)
        self._running = False
        self._draft = DraftPage(theme)
        self._draft.browse_wanted.connect(self._on_browse)
        self._draft.export_wanted.connect(self.export_wanted)
        self._draft.wish_changed.connect(self.wish_changed)
        self._draft.closed.connect(self.reject)
        self._progress = RunningPage()
        self._progress.cancel_wanted.connect(self.cancel_wanted)
        self._result = ResultPage(theme)
        self._result.closed.connect(self.accept)
        self._result.back_wanted.connect(self._on_back)
        self._result.folder_wanted.connect(self._on_folder)
        self._result.open_wanted.connect(self._on_open)
        self._result.undo_wanted.connect(self.undo_wanted)
        self._result.receipt_wanted.connect(self._on_receipt)
        self._pages: tuple[QWidget, ...] = (self._draft, self._progress, self._result)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 24, 24, 20)
        for page in self._pages:
            column.addWidget(page)

    @property
    def state(self) -> str:
        """Which state is shown: `draft`, `running` or `result`."""
        shown = [not page.isHidden() for page in self._pages]
        return ("draft", "running", "result")[shown.index(True)]

    def show_draft(self, draft: ExportDraft) -> None:
        """Show a draft: the first, or one that answers a change of the last."""
        changed = self.isVisible() and self.state == "draft"
        self._draft.show_draft(draft, fresh=not changed)
        if changed:
            self.adjustSize()
        else:
            self._turn_to(self._draft)

    def show_running(self, progress: Progress) -> None:
        """Follow a running export."""
        self._running = True
        self._progress.follow(progress)
        self._turn_to(self._progress)

    def show_done(self, result: ExportResult) -> None:
        """Tell what was written."""
        self._end()
        self._result.show_done(result)
        self._turn_to(self._result)

    def show_failed(self, failure: FailurePage, *, cancelled: bool) -> None:
        """Tell that there is no copy."""
        self._end()
        self._result.show_failed(failure, cancelled=cancelled)
        self._turn_to(self._result)

    @override
    def reject(self) -> None:
        """Escape and the close button stop a running export first; its end is then shown."""
        if self._running:
            self._progress.cancel()
        else:
            super().reject()

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        if self._running:
            event.ignore()
            self._progress.cancel()
        else:
            super().closeEvent(event)

    def _turn_to(self, page: QWidget) -> None:
        for other in self._pages:  # no stack: that would be as high as the highest of them
            other.setVisible(other is page)
        for button in page.findChildren(QPushButton):
            if button.property("kind") == "primary":
                button.setDefault(True)
                button.setFocus(Qt.FocusReason.OtherFocusReason)
        self.adjustSize()

    def _end(self) -> None:
        self._running = False
        self._progress.stop()

    def _on_browse(self) -> None:
        # The dialog asks about overwriting itself, in its own words.
        path, _ = QFileDialog.getSaveFileName(
            self,
            "Export a fixed copy to",
            self._draft.destination,
            options=QFileDialog.Option.DontConfirmOverwrite,
        )
        if path:
            self._draft.show_destination(path)

    def _on_receipt(self) -> None:
        proposed = f"{self._draft.destination}.receipt.json"
        path, _ = QFileDialog.getSaveFileName(self, "Save the receipt", proposed, "JSON (*.json)")
        if path:
            self.receipt_wanted.emit(path)

    def _on_back(self) -> None:
        self._draft.refresh()
        self._turn_to(self._draft)

    def _on_folder(self, path: str) -> None:
        show_in_folder(Path(path))

    def _on_open(self, path: str) -> None:
        self.accept()
        self.open_wanted.emit(path)
