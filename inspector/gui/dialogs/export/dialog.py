"""Writing the fixed copy: where to, then how far, then whether it was verified."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Qt, QUrl, Signal
from PySide6.QtGui import QCloseEvent, QDesktopServices
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QPushButton,
    QWidget,
)

from inspector.child import SAFE_FOLDER, find_program
from inspector.gui.tasks import Turns
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import NO_MARGINS, TOP, Gap, column, row
from inspector.gui.widgets.cards import fill_lines
from inspector.gui.widgets.controls import button_row, make_button, show_notice
from inspector.gui.widgets.labels import ElidedLabel, plain_label, sentence
from inspector.gui.widgets.marks import ToneGlyph
from inspector.gui.widgets.progress import ProgressBar, Rate
from inspector.overriding import override
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.export.page import ExportPage, ExportResult
from inspector.session.screen import FailurePage
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.gui.dialogs.export.draft import DraftPage
    from inspector.session.controller import Session

# The export dialog while it writes, and afterwards.


class RunningPage(QWidget):
    """Shows how far the export is, ten times a second."""

    cancel_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._work: Progress | None = None
        self._is_stopping = False
        self._rate = Rate()
        self._label = plain_label("", "muted", wrap=True)
        self._bar = ProgressBar("Progress of the export")
        self._bar.looked.connect(self._on_looked)
        self._figures = plain_label("", "small")
        self._cancel = QPushButton("Cancel")
        self._cancel.clicked.connect(self.cancel_wanted)
        self._title = plain_label("", "lead")
        column(
            self._title,
            self._label,
            Gap(16),
            self._bar,
            self._figures,
            1,
            Gap(16),
            button_row(self._cancel),
            spacing=8,
            margins=NO_MARGINS,
            within=self,
        )

    def follow(self, page: ExportPage) -> None:
        if page.progress is not self._work:
            self._work, self._rate = page.progress, Rate()
        self._is_stopping = page.stopping
        self._title.setText(page.title)
        self._cancel.setEnabled(not page.stopping)
        self._bar.follow(self._work)

    def stop(self) -> None:
        self._bar.follow(None)
        self._work = None

    def _on_looked(self, work: Progress) -> None:
        self._label.setText("Stopping\u2026" if self._is_stopping else work.label)
        self._figures.setText(self._rate.describe(work))


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
        self._lines, self._omissions, self._warnings = (column(spacing=6) for _ in range(3))
        self._undo = make_button("Undo", self.undo_wanted)
        self._receipt = make_button("Save receipt\u2026", self.receipt_wanted)
        self._close = make_button("Close", self.closed, kind="primary")
        self._folder = make_button("Show in folder", self._on_folder, icon="folder", theme=theme)
        self._open = make_button("Open the copy", self._on_open, icon="open", theme=theme)
        self._back = make_button("Back", self.back_wanted)
        self._lay_out()

    def _lay_out(self) -> None:
        words = column(self._title, self._path, spacing=2)
        buttons = (self._back, self._undo, self._receipt, self._open, self._folder, self._close)
        column(
            row((self._glyph, 0, TOP), (words, 1), spacing=16),
            Gap(8),
            self._lines,
            self._omissions,
            self._warnings,
            1,
            Gap(16),
            button_row(*buttons),
            spacing=8,
            margins=NO_MARGINS,
            within=self,
        )

    def show_done(self, result: ExportResult) -> None:
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


# Show a file in the desktop's file manager, selected where the desktop can do that.

_TIMEOUT_MS = 10_000


def show_in_folder(path: Path, failed: Callable[[], None] = lambda: None) -> bool:
    """Open the folder of a file; return whether that worked, as far as it is known at once.

    The file manager may be starting: its answer is not waited for. Where it has none, the folder is opened,
    and where that fails too, `failed` is called.
    """
    if sys.platform == "win32":
        return _start(["explorer", "/select,", str(path)])
    if sys.platform == "darwin":
        return _start(["open", "-R", str(path)])
    return _ask_file_manager(path, failed) or _open_folder(path)


def _open_folder(path: Path) -> bool:
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent)))


def _start(command: list[str]) -> bool:
    program = find_program(command[0])
    if program is None:
        return False
    try:
        # A fixed program, the path is its own argument.
        subprocess.Popen([program, *command[1:]], cwd=SAFE_FOLDER)  # noqa: S603
    except OSError:
        return False
    return True


def _ask_file_manager(path: Path, failed: Callable[[], None]) -> bool:
    """Ask over D-Bus, see https://www.freedesktop.org/wiki/Specifications/file-manager-interface/."""
    from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusPendingCallWatcher

    bus = QDBusConnection.sessionBus()
    if not bus.isConnected():
        return False
    name = "org.freedesktop.FileManager1"
    call = QDBusMessage.createMethodCall(name, "/org/freedesktop/FileManager1", name, "ShowItems")
    call.setArguments([[path.as_uri()], ""])  # with all bytes of a name that is no UTF-8
    watcher = QDBusPendingCallWatcher(bus.asyncCall(call, timeout=_TIMEOUT_MS), QCoreApplication.instance())

    def answered() -> None:
        watcher.deleteLater()
        if watcher.isError() and not _open_folder(path):
            failed()

    watcher.finished.connect(answered)
    return True


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
        self._column = column(margins=(24, 24, 24, 20), within=self)
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
        yield
        import_module(f"{__package__}.draft")
        yield
        self._draft  # noqa: B018 - it is made when it is asked for

    def connect_to(self, session: Session) -> None:
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
            was_hidden = not self.isVisible()
            self.open()
            if was_hidden:
                self._fit()  # again: texts that came while it was hidden had not been measured

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
