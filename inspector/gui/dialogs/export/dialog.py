"""Writing the fixed copy: where to, then how far, then whether it was verified."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDialog, QFileDialog, QPushButton, QVBoxLayout, QWidget

from inspector.gui.dialogs.export.pages import ResultPage, RunningPage
from inspector.gui.tasks import Turns
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.notice import show_notice
from inspector.gui.widgets.reveal import show_in_folder
from inspector.overriding import override
from inspector.records import replace
from inspector.session.export.page import ExportPage
from inspector.session.screen import FailurePage
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.gui.dialogs.export.draft import DraftPage
    from inspector.session.controller import Session

_WIDTH = 592
_TITLE = "Export a fixed copy"
_NO_FOLDER = FailurePage(
    title="The folder was not opened",
    what="no file manager answered",
    where="",
    remedy="open it in a file manager of your own",
)


class ExportDialog(QDialog):
    """Copies an `ExportPage`: the draft, the running export, the result. It closes when there is none."""

    export_wanted = Signal(object, bool)  # a path in a Signal(str) would lose the bytes that are no UTF-8
    cancel_wanted = Signal()
    back_wanted = Signal()
    ended = Signal()
    open_wanted = Signal(object)
    wish_changed = Signal(object)
    look_wanted = Signal(object)
    rows_chosen = Signal(object, bool)
    search_wanted = Signal(str)
    undo_wanted = Signal()
    receipt_wanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setModal(True)
        self.setAcceptDrops(False)
        self._page: ExportPage | None = None
        self._theme = theme
        self._progress = RunningPage()
        self._progress.cancel_wanted.connect(self.reject)
        self._pages: list[QWidget] = []
        self._turns = Turns(self)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(24, 24, 24, 20)
        self._add(self._progress)

    def _add(self, page: QWidget) -> None:
        page.setMinimumWidth(_WIDTH)
        page.hide()
        self._pages.append(page)
        self._column.addWidget(page)

    @cached_property
    def _draft(self) -> DraftPage:
        """The page of a draft; made when it is first needed, or while a draft is prepared."""
        from inspector.gui.dialogs.export.draft import DraftPage

        page = DraftPage(self._theme)
        page.browse_wanted.connect(self._on_browse)
        page.export_wanted.connect(self.export_wanted)
        page.wish_changed.connect(self.wish_changed)
        page.look_wanted.connect(self.look_wanted)
        page.rows_chosen.connect(self.rows_chosen)
        page.search_wanted.connect(self.search_wanted)
        page.closed.connect(self.reject)
        self._add(page)
        return page

    @cached_property
    def _result(self) -> ResultPage:
        """The page of how an export ended; made when the first one has."""
        page = ResultPage(self._theme)
        page.closed.connect(self.reject)
        page.back_wanted.connect(self.back_wanted)
        page.folder_wanted.connect(self._on_folder)
        page.open_wanted.connect(self._on_open)
        page.undo_wanted.connect(self.undo_wanted)
        page.receipt_wanted.connect(self._on_receipt)
        self._add(page)
        return page

    def _prepare(self) -> Iterator[None]:
        """Make the page of the draft that is being prepared, in turns of its own."""
        yield
        import_module(f"{__package__}.draft")
        yield
        self._draft  # noqa: B018 - it is made when it is asked for

    def connect_to(self, session: Session) -> None:
        """Ask a session for what is wanted here."""
        self.wish_changed.connect(session.change_export)
        self.look_wanted.connect(session.look_at_destination)
        self.rows_chosen.connect(session.choose_rows)
        self.search_wanted.connect(session.search_export)
        self.export_wanted.connect(session.export)
        self.cancel_wanted.connect(session.cancel_export)
        self.back_wanted.connect(session.resume_export)
        self.undo_wanted.connect(session.undo_export)
        self.receipt_wanted.connect(session.save_receipt)
        self.ended.connect(session.end_export)

    @property
    def state(self) -> str:
        """Which state is shown: `draft`, `running` or `result`."""
        shown = next(page for page in self._pages if not page.isHidden())
        return (
            "running" if shown is self._progress else "result" if isinstance(shown, ResultPage) else "draft"
        )

    def show_page(self, page: ExportPage | None) -> None:
        """Show how far an export is; None closes the dialog."""
        old, self._page = self._page, page
        if page is None:
            self._turns.stop()
            self._progress.stop()
            self.hide()
        elif page != old:
            self._show_stage(page, old)
            self.open()

    def _show_stage(self, page: ExportPage, old: ExportPage | None) -> None:
        told = page.result or page.failure
        self.setWindowTitle(page.title or (told.title if told is not None else _TITLE))
        is_preparing = page.stage == "looking" and page.draft is None
        if is_preparing:
            self._turns.begin(self._prepare())
        if page.stage == "running" or is_preparing:
            self._progress.follow(page)
        else:
            self._progress.stop()
        if page.stage in {"draft", "looking"} and page.draft is not None:
            self._draft.show_draft(page, page.draft, fresh=old is None or old.draft is None)
        if page.result is not None:
            self._result.show_done(page.result)
        elif page.failure is not None:
            self._result.show_failed(
                page.failure, cancelled=page.cancelled, can_go_back=page.draft is not None
            )
        if page.stage == "running" or is_preparing:
            self._turn_to(self._progress)
        else:
            self._turn_to(self._draft if page.stage in {"draft", "looking"} else self._result)

    @override
    def reject(self) -> None:
        """Stop a running export at Escape and the close button, so that its end is shown; else leave."""
        if self._page is not None and self._page.stage == "running":
            self.cancel_wanted.emit()
        else:
            self.ended.emit()

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        event.ignore()  # it closes when the session has left the export
        self.reject()

    def _turn_to(self, page: QWidget) -> None:
        if self.isVisible() and not page.isHidden():
            self._fit()
            return
        for other in self._pages:  # no stack: that would be as high as the highest of them
            other.setVisible(other is page)
        for button in page.findChildren(QPushButton):
            if button.property("kind") == "primary":
                button.setDefault(True)
                button.setFocus(Qt.FocusReason.OtherFocusReason)
        self._fit()

    def _fit(self) -> None:
        """Take the size of what is shown, as far as the screen has it; `adjustSize` takes two thirds."""
        layout, screen = self._column, self.screen().availableSize()
        margins = layout.contentsMargins()
        if "_draft" in self.__dict__:
            self._draft.fit(screen.width() - margins.left() - margins.right())
        layout.activate()
        wanted = layout.totalSizeHint()
        width = min(wanted.width(), screen.width())
        height = max(layout.totalHeightForWidth(width), wanted.height())
        self.resize(width, min(height, screen.height()))

    def _on_browse(self) -> None:
        # The dialog asks about overwriting itself, in its own words.
        path, _ = QFileDialog.getSaveFileName(
            self,
            "Name of the new folder" if self._draft.makes_folder else "Export a fixed copy to",
            self._draft.destination,
            options=QFileDialog.Option.DontConfirmOverwrite,
        )
        if path:
            self._draft.choose_destination(path)

    def _on_receipt(self) -> None:
        result = self._page.result if self._page is not None else None
        proposed = f"{result.destination if result is not None else ''}.receipt.json"
        path, _ = QFileDialog.getSaveFileName(self, "Save the receipt", proposed, "JSON (*.json)")
        if path:
            self.receipt_wanted.emit(path)

    def _on_folder(self, path: str) -> None:
        if not show_in_folder(Path(path), self._say_no_folder):
            self._say_no_folder()

    def _say_no_folder(self) -> None:
        path = self._page.result.destination if self._page is not None and self._page.result else ""
        show_notice(self, replace(_NO_FOLDER, where=escape_text(path)))

    def _on_open(self, path: str) -> None:
        self.ended.emit()
        self.open_wanted.emit(path)
