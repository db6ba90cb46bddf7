"""The window that shows two checkpoints side by side; it decides nothing and copies a `CompareScreen`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QProgressBar,
    QSplitter,
    QStackedWidget,
    QTreeView,
    QWidget,
)

from inspector.gui.compare.facts import FactsPanel
from inspector.gui.compare.frame import ComparingFrame
from inspector.gui.compare.head import CompareHead
from inspector.gui.compare.model import Column, CompareModel
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import CENTER, RIGHT, column, row
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import ElidedLabel, WrappedText, blocked, named, plain_label, sentence
from inspector.gui.widgets.status_line import StatusLine
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.progress import Progress
    from inspector.session.comparing.screen import CompareScreen
    from inspector.session.comparing.session import CompareSession
from inspector.units import cut_text

_WIDTHS = {Column.NAME: 310, Column.WHAT: 96, Column.A: 280, Column.B: 280}
_MOST_UNFOLDED = 2_000
_WIDTH = 640
_COPIED_MS = 2500
_MOST_QUERY = 80
_HINT = "Select a row to see what both files say of it."
_CALM = "Nothing differs."


class CompareWindow(ComparingFrame):
    """Implements `CompareView`; `attach` connects it to its session."""

    file_wanted = Signal(object)  # a list of one path

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.session: CompareSession | None = None
        self.shown: CompareScreen | None = None
        self._build_pages()
        self._build_actions()

    @property
    @override
    def progress(self) -> Progress | None:
        return None if self.shown is None else self.shown.progress

    def attach(self, session: CompareSession) -> None:
        """Connect the window to its session."""
        self.session = session
        self.head.kind_chosen.connect(lambda kind, chosen: session.choose_kind(kind, chosen=chosen))
        self.head.equal_shown.connect(lambda shown: session.show_equal(shown=shown))
        self.head.swap_wanted.connect(session.swap)
        self.head.search_wanted.connect(session.search)
        self.head.copy_wanted.connect(session.copy_text)
        self.facts.measure_wanted.connect(session.measure)
        self.facts.stop_wanted.connect(session.stop_measuring)
        for card, place in zip(self.head.cards, (0, 1), strict=True):
            card.open_wanted.connect(lambda place=place: self.file_wanted.emit([session.paths[place]]))

    # `CompareView`.

    def show_screen(self, screen: CompareScreen) -> None:
        """Show a screen; only what differs from the last one is updated."""
        old, self.shown = self.shown, screen
        self.setWindowTitle(screen.title)
        page = {"opening": self._opening, "ready": self._ready, "failed": self._failed}[screen.phase]
        if self._stack.currentWidget() is not page:
            self._stack.setCurrentWidget(page)
            self._take_focus()
        if screen.phase == "opening":
            self._name.setText(f"Comparing {screen.a.name} with {screen.b.name}")
            self._timer.start()
            self._on_tick()
            return
        self._timer.stop()
        if screen.phase == "failed":
            self._show_failure(screen)
            return
        self._show_ready(old if old is not None and old.phase == "ready" else None, screen)

    def take_text(self, text: str) -> None:
        """Put a text on the clipboard."""
        QGuiApplication.clipboard().setText(text)
        self._status.showMessage("Copied the comparison", _COPIED_MS)

    def _show_ready(self, old: CompareScreen | None, screen: CompareScreen) -> None:
        self.head.show_changes(old, screen)
        if old is None or old.groups is not screen.groups or old.rows is not screen.rows:
            with blocked(self.tree.selectionModel()):
                self._model.show_screen(screen)
            for group in range(min(len(screen.groups), _MOST_UNFOLDED)):
                self.tree.setFirstColumnSpanned(group, QModelIndex(), True)
            if screen.shown <= _MOST_UNFOLDED:
                self.tree.expandAll()
            found = f"Nothing here holds \u201c{cut_text(screen.query, _MOST_QUERY)}\u201d."
            self._nothing.setText(found if screen.query.strip() else _CALM)
            self._list.setCurrentWidget(self.tree if screen.shown else self._calm)
        selected = None if screen.selection is None else screen.selection.row
        if selected != self._model.row_of(self.tree.currentIndex()):
            index = QModelIndex() if selected is None else self._model.index_of(selected)
            with blocked(self.tree.selectionModel()):
                self.tree.setCurrentIndex(index)
        self.facts.show_selection(screen.selection)
        self._show_facts(screen)
        self._status.show_status(("" if screen.selection else _HINT if screen.shown else "", screen.status))

    def _show_facts(self, screen: CompareScreen) -> None:
        """Show what is said of the selected row, which stays in sight; without one, the rows get the room."""
        was_hidden = self.facts.isHidden()
        self.facts.setVisible(screen.shown > 0 and screen.selection is not None)
        if was_hidden and not self.facts.isHidden():
            QTimer.singleShot(0, self.tree, self._show_current)

    def _show_current(self) -> None:
        self.tree.scrollTo(self.tree.currentIndex())

    def _show_failure(self, screen: CompareScreen) -> None:
        failure = screen.failure
        if failure is not None:
            self._title.setText(failure.title)
            self._what.setText(sentence(failure.what))
            self._where.setText(failure.where)
            self._remedy.setText("\n".join(sentence(text) for text in (failure.runs, failure.remedy) if text))

    # Building.

    def _build_pages(self) -> None:
        self._stack = QStackedWidget()
        self._opening, self._failed, self._ready = (
            self._opening_page(),
            self._failed_page(),
            self._ready_page(),
        )
        for page in (self._opening, self._failed, self._ready):
            self._stack.addWidget(page)
        self.setCentralWidget(self._stack)
        self._status = StatusLine()
        self.setStatusBar(self._status)

    def _opening_page(self) -> QWidget:
        page, middle = QWidget(), QWidget()
        self._name = ElidedLabel("", "lead", Qt.TextElideMode.ElideMiddle)
        self._label = ElidedLabel("", "muted")
        self._bar = named(QProgressBar(), spoken="Progress of the comparison")
        self._bar.setTextVisible(False)
        self._cancel = make_button("Cancel", self.close)
        middle.setFixedWidth(_WIDTH)
        column(self._name, self._bar, self._label, (self._cancel, 0, RIGHT), spacing=12, within=middle)
        column(2, row(1, middle, 1), 3, within=page)
        return page

    def _failed_page(self) -> QWidget:
        page, middle = QWidget(), QWidget()
        self._title = plain_label("", "title", wrap=True, selectable=True)
        self._what, self._where, self._remedy = WrappedText(), WrappedText("", "mono"), WrappedText()
        self._again = make_button("Try again", self._on_again, icon="reload", theme=self._theme)
        middle.setFixedWidth(_WIDTH)
        texts = (self._title, self._what, self._where, self._remedy)
        column(*texts, row(self._again, 1), spacing=12, within=middle)
        column(2, row(1, middle, 1), 3, within=page)
        return page

    def _ready_page(self) -> QWidget:
        page = QWidget()
        self.head = CompareHead(self._theme)
        self.facts = FactsPanel(self._theme)
        self._model = CompareModel(self._theme, self)
        self.tree = _tree(self._model)
        self.tree.selectionModel().currentChanged.connect(self._on_current_changed)
        self._calm = QWidget()
        self._nothing = plain_label(_CALM, "lead", wrap=True)
        self._nothing.setAlignment(CENTER)
        column(2, self._nothing, 3, within=self._calm)
        self._list = QStackedWidget()
        self._list.addWidget(self.tree)
        self._list.addWidget(self._calm)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self._list)
        split.addWidget(self.facts)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 1)
        split.setSizes([420, 190])
        split.setChildrenCollapsible(False)
        column(self.head, (split, 1), spacing=8, margins=(12, 10, 12, 6), within=page)
        return page

    def _build_actions(self) -> None:
        menu = self.menuBar().addMenu("&File")
        rows: tuple[tuple[str, str | QKeySequence.StandardKey, Callable[[], object]], ...] = (
            ("&Compare again", "F5", self._on_again),
            ("&Swap A and B", "Ctrl+Shift+D", self.head.swap_wanted.emit),
            ("Copy as &text", "Ctrl+Shift+C", self.head.copy_wanted.emit),
            ("&Find", "Ctrl+F", self._on_find),
            ("Compare &numbers of the row", "Ctrl+N", self.facts.measure_wanted.emit),
            ("C&lose", "Ctrl+W", self.close),
        )
        for text, keys, run in rows:
            action = QAction(text, self)
            action.setShortcut(QKeySequence(keys))
            action.triggered.connect(lambda _=False, run=run: run())
            menu.addAction(action)

    # What the user does.

    def _on_current_changed(self, current: QModelIndex, _: QModelIndex) -> None:
        if self.session is not None:
            self.session.select(self._model.row_of(current))

    def _on_find(self) -> None:
        self.head.search.setFocus()
        self.head.search.selectAll()

    def _on_again(self) -> None:
        if self.session is not None:
            self.session.compare()

    def _take_focus(self) -> None:
        page = self._stack.currentWidget()
        first = self._cancel if page is self._opening else self._again if page is self._failed else self.tree
        first.setFocus()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._take_focus()

    def detach(self) -> None:
        """Release the session and all that is shown: the window is closed."""
        session, self.session = self.session, None
        self.shown = None
        if session is not None:
            session.dispose()
            self._model.show_screen(session.screen)


def _tree(model: CompareModel) -> QTreeView:
    tree = QTreeView()
    tree.setObjectName("comparison")
    tree.setAccessibleName("Differences")
    tree.setModel(model)
    tree.setUniformRowHeights(True)
    tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
    tree.setAllColumnsShowFocus(True)
    tree.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    tree.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    tree.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    tree.setAlternatingRowColors(False)
    tree.setIndentation(14)
    header = tree.header()
    header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
    header.setStretchLastSection(True)
    header.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names of epochs differ at their ends
    for place, width in _WIDTHS.items():
        header.resizeSection(place, width)
    return tree
