"""The window that shows a series of checkpoints: lines over time, and a table with the same figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelection, QModelIndex, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QProgressBar,
    QSplitter,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from inspector.gui.charts.lines import Lines
from inspector.gui.charts.saving import PICTURES, Saved, save_button
from inspector.gui.charts.view import ChartView, saved_charts
from inspector.gui.compare.frame import ComparingFrame
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import RIGHT, column, row
from inspector.gui.widgets.controls import CalmComboBox, make_button
from inspector.gui.widgets.labels import (
    ElidedLabel,
    StatusLine,
    WrappedText,
    blocked,
    named,
    plain_label,
    sentence,
)
from inspector.overriding import override
from inspector.session.comparing.series import FIELDS
from inspector.units import format_count

if TYPE_CHECKING:
    from inspector.progress import Progress
    from inspector.session.comparing.series import SeriesScreen, SeriesSession

_WIDTH = 640
_MOST_ROWS = 2_000
_HINT = "Select rows to draw them; without a selection, the modules that change most are drawn."
_ROW_HEIGHT = 26
_LEAST_CHART = 160
_NUMBERS = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_UNKNOWN = "\u2013"


class SeriesWindow(ComparingFrame):
    """Implements `SeriesView`; `attach` connects it to its session."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.session: SeriesSession | None = None
        self.shown: SeriesScreen | None = None
        self._stack = QStackedWidget()
        self._pages = {"opening": self._opening(), "failed": self._failed(), "ready": self._ready()}
        for page in self._pages.values():
            self._stack.addWidget(page)
        self.setCentralWidget(self._stack)
        self._status = StatusLine()
        self.setStatusBar(self._status)
        self._build_actions()

    @property
    @override
    def progress(self) -> Progress | None:
        return None if self.shown is None else self.shown.progress

    def attach(self, session: SeriesSession) -> None:
        self.session = session
        self._copy.clicked.connect(session.copy_text)
        self._again.clicked.connect(session.compare)

    # `SeriesView`.

    def show_screen(self, screen: SeriesScreen) -> None:
        old, self.shown = self.shown, screen
        self.setWindowTitle(screen.title)
        self._stack.setCurrentWidget(self._pages[screen.phase])
        if screen.phase == "opening":
            self._timer.start()
            return
        self._timer.stop()
        if screen.failure is not None:
            failure = screen.failure
            self._title.setText(failure.title)
            self._what.setText(sentence(failure.what))
            self._where.setText(failure.where)
            self._remedy.setText(sentence(failure.remedy))
            return
        if old is None or old.lines != screen.lines:
            self._fill(screen)
        with blocked(self.field):
            self.field.setCurrentIndex(list(FIELDS).index(screen.field))
        self.chart.show_drawing(Lines(screen))
        self._note.setText(screen.note)
        self._note.setVisible(bool(screen.note))
        self._status.show_status((" \u2192 ".join(screen.files), format_count(screen.modules, "module")))

    def take_text(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)

    def detach(self) -> None:
        session, self.session = self.session, None
        self.shown = None
        if session is not None:
            session.dispose()

    # Building.

    def _opening(self) -> QWidget:
        page, middle = QWidget(), QWidget()
        self._label = ElidedLabel("", "muted")
        self._bar = named(QProgressBar(), spoken="Progress of the comparison")
        self._bar.setTextVisible(False)
        cancel = make_button("Cancel", self.close)
        middle.setFixedWidth(_WIDTH)
        column(
            plain_label("Comparing a series", "lead"),
            self._bar,
            self._label,
            (cancel, 0, RIGHT),
            spacing=12,
            within=middle,
        )
        column(2, row(1, middle, 1), 3, within=page)
        return page

    def _failed(self) -> QWidget:
        page, middle = QWidget(), QWidget()
        self._title = plain_label("", "title", wrap=True, selectable=True)
        self._what, self._where, self._remedy = WrappedText(), WrappedText("", "mono"), WrappedText()
        self._again = make_button("Try again", icon="reload", theme=self._theme)
        middle.setFixedWidth(_WIDTH)
        texts = (self._title, self._what, self._where, self._remedy)
        column(*texts, row(self._again, 1), spacing=12, within=middle)
        column(2, row(1, middle, 1), 3, within=page)
        return page

    def _ready(self) -> QWidget:
        page = QWidget()
        self.field = named(CalmComboBox(), spoken="Figure")
        self.field.addItems(list(FIELDS.values()))
        self.field.currentIndexChanged.connect(self._on_field)
        self._copy = make_button("Copy as text", icon="copy", theme=self._theme)
        self.chart = ChartView(self._theme)
        self.chart.setMinimumHeight(_LEAST_CHART)
        self.table = named(QTableWidget(), spoken="Figures of the series")
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setTabKeyNavigation(False)
        self.table.setShowGrid(False)
        self.table.setCornerButtonEnabled(False)
        self.table.setFrameShape(QFrame.Shape.NoFrame)
        self.table.setAlternatingRowColors(False)
        self.table.horizontalHeader().setDefaultAlignment(_NUMBERS)
        self.table.horizontalHeader().setHighlightSections(False)
        self.table.verticalHeader().setHighlightSections(False)
        self.table.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        self.table.setAcceptDrops(False)
        self.table.selectionModel().selectionChanged.connect(self._on_selection)
        self._note = plain_label("", "muted", wrap=True)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self.chart)
        split.addWidget(self.table)
        split.setChildrenCollapsible(False)
        split.setSizes([360, 300])
        buttons = (self._copy, save_button(self._theme, self._saved, kinds=PICTURES))
        head = row(plain_label("Figure"), self.field, plain_label(_HINT, "muted"), 1, *buttons, spacing=10)
        column(head, (split, 1), self._note, spacing=8, margins=(12, 10, 12, 6), within=page)
        return page

    def _build_actions(self) -> None:
        menu = self.menuBar().addMenu("&File")
        for text, keys, run in (("&Compare again", "F5", self._on_again), ("C&lose", "Ctrl+W", self.close)):
            action = QAction(text, self)
            action.setShortcut(QKeySequence(keys))
            action.triggered.connect(run)
            menu.addAction(action)

    def _fill(self, screen: SeriesScreen) -> None:
        lines = screen.lines[:_MOST_ROWS]
        with blocked(self.table.selectionModel()):
            self.table.setRowCount(len(lines))
            self.table.setColumnCount(len(screen.files))
            self.table.setHorizontalHeaderLabels(
                [f"{place}: {name}" for place, name in enumerate(screen.files, 1)]
            )
            self.table.setVerticalHeaderLabels([line.name for line in lines])
            for place, line in enumerate(lines):
                for file, (value, marked) in enumerate(zip(line.values, line.marked, strict=True)):
                    text = _UNKNOWN if value is None else f"{value:.6g}{'*' if marked else ''}"
                    item = QTableWidgetItem(text)
                    item.setTextAlignment(_NUMBERS)
                    self.table.setItem(place, file, item)
        self.table.resizeColumnsToContents()

    # What the user does.

    def _on_field(self, place: int) -> None:
        if self.session is not None:
            self.session.choose_field(list(FIELDS)[place])

    def _on_selection(self, _new: QItemSelection, _old: QItemSelection) -> None:
        if self.session is not None:
            rows: list[QModelIndex] = self.table.selectionModel().selectedRows()
            self.session.choose_lines(tuple(sorted(index.row() for index in rows)))

    def _saved(self) -> Saved:
        given = "" if self.session is None else self.session.given[0]
        field = "" if self.shown is None else FIELDS[self.shown.field]
        return saved_charts((self.chart,), f"{field} of a series", given)

    def _on_again(self) -> None:
        if self.session is not None:
            self.session.compare()
