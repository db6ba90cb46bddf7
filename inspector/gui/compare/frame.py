"""What the two windows that compare share: the pages of opening and of failing, the theme, and their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QCloseEvent, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QMainWindow, QStackedWidget, QWidget

from inspector.gui.placing import LEAST, first_size
from inspector.gui.theme.icons import retint
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import RIGHT, column, row
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import ElidedLabel, StatusLine, WrappedText, plain_label, sentence
from inspector.gui.widgets.progress import ProgressBar
from inspector.overriding import override
from inspector.progress import Progress

_WIDTH = 640
Rows = Iterable[tuple[str, str, Callable[[], object]]]


class ComparingFrame(QMainWindow):
    """A window with a page for each phase of its screen; the page of what is compared is the subclass's."""

    closed = Signal()
    session: Any = None
    shown: Any = None

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setMinimumSize(LEAST)
        self.resize(first_size(QGuiApplication.primaryScreen().availableGeometry()))
        theme.changed.connect(self._on_theme_changed)
        self._stack = QStackedWidget()
        self._opening, self._failed, self._ready = QWidget(), QWidget(), QWidget()
        for page in (self._opening, self._failed, self._ready):
            self._stack.addWidget(page)
        self._name = ElidedLabel("", "lead", Qt.TextElideMode.ElideMiddle)
        self._label = ElidedLabel("", "muted")
        self._bar = ProgressBar("Progress of the comparison")
        self._bar.looked.connect(self._on_looked)
        self._cancel = make_button("Cancel", self.close)
        _fill(self._opening, self._name, self._bar, self._label, (self._cancel, 0, RIGHT))
        self._title = plain_label("", "title", wrap=True, selectable=True)
        self._what, self._where, self._remedy = WrappedText(), WrappedText("", "mono"), WrappedText()
        self._again = make_button("Try again", self._on_again, icon="reload", theme=theme)
        _fill(self._failed, self._title, self._what, self._where, self._remedy, row(self._again, 1))
        self.setCentralWidget(self._stack)
        self._status = StatusLine()
        self.setStatusBar(self._status)

    def add_actions(self, rows: Rows) -> None:
        """Fill the menu of the window, with the keys of its entries."""
        menu = self.menuBar().addMenu("&File")
        for text, keys, run in (
            ("&Compare again", "F5", self._on_again),
            *rows,
            ("C&lose", "Ctrl+W", self.close),
        ):
            action = QAction(text, self)
            action.setShortcut(QKeySequence(keys))
            action.triggered.connect(lambda _=False, run=run: run())
            menu.addAction(action)

    def show_phase(self, screen: Any, name: str) -> bool:  # noqa: ANN401 - of either window
        """Show the page of a screen's phase; return whether there is something to compare."""
        self.shown = screen
        self.setWindowTitle(screen.title)
        page = {"opening": self._opening, "ready": self._ready, "failed": self._failed}[screen.phase]
        if self._stack.currentWidget() is not page:
            self._stack.setCurrentWidget(page)
            self.take_focus()
        if screen.phase == "opening":
            self._name.setText(name)
        self._bar.follow(screen.progress if screen.phase == "opening" else None)
        failure = screen.failure
        if screen.phase == "failed" and failure is not None:
            self._title.setText(failure.title)
            self._what.setText(sentence(failure.what))
            self._where.setText(failure.where)
            self._remedy.setText("\n".join(sentence(text) for text in (failure.runs, failure.remedy) if text))
        return page is self._ready

    def take_focus(self) -> None:
        """Focus what is used first on the page that is shown."""
        page = self._stack.currentWidget()
        if page is not self._ready:
            (self._cancel if page is self._opening else self._again).setFocus()

    def take_text(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)

    def detach(self) -> None:
        """Release the session and all that is shown: the window is closed."""
        session, self.session, self.shown = self.session, None, None
        if session is not None:
            session.dispose()

    def _on_again(self) -> None:
        if self.session is not None:
            self.session.compare()

    def _on_looked(self, progress: Progress) -> None:
        self._label.setText(progress.label)

    def _on_theme_changed(self) -> None:
        retint(self, self._theme.tokens)

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        self._bar.follow(None)
        event.accept()
        self.closed.emit()


def _fill(page: QWidget, *parts: Any) -> None:  # noqa: ANN401 - what `column` takes
    middle = QWidget()
    middle.setFixedWidth(_WIDTH)
    column(*parts, spacing=12, within=middle)
    column(2, row(1, middle, 1), 3, within=page)
