"""The window that shows a series of checkpoints: lines over time, and a table with the same figures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelection, QModelIndex, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFrame,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
)

from inspector.gui.charts.lines import Lines
from inspector.gui.charts.saving import KINDS, Saved, save_button
from inspector.gui.charts.view import ChartView, saved_charts
from inspector.gui.compare.frame import ComparingFrame
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.controls import CalmComboBox, make_button
from inspector.gui.widgets.labels import (
    ElidedLabel,
    blocked,
    named,
    plain_label,
)
from inspector.session.comparing.series import FIELDS, figures_csv
from inspector.units import format_count

if TYPE_CHECKING:
    from inspector.session.comparing.series import SeriesScreen, SeriesSession

_MOST_ROWS = 2_000
_HINT = "Select rows to draw them. Ctrl+wheel zooms, a double-click shows all."
_ROW_HEIGHT = 26
_LEAST_CHART = 160
_NUMBERS = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_UNKNOWN = "\u2013"


class SeriesWindow(ComparingFrame):
    """Implements `SeriesView`; `attach` connects it to its session."""

    session: SeriesSession | None
    shown: SeriesScreen | None

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._build_ready()
        self.add_actions(())

    def attach(self, session: SeriesSession) -> None:
        self.session = session
        self._copy.clicked.connect(session.copy_text)

    # `SeriesView`.

    def show_screen(self, screen: SeriesScreen) -> None:
        old = self.shown
        if not self.show_phase(screen, "Comparing a series"):
            return
        if old is None or old.lines != screen.lines:
            self._fill(screen)
        with blocked(self.field):
            self.field.setCurrentIndex(list(FIELDS).index(screen.field))
        self.chart.show_drawing(Lines(screen))
        with blocked(self.log):
            self.log.setChecked(screen.is_log)
        self._note.setText(screen.note)
        self._note.setVisible(bool(screen.note))
        self._status.show_status((" \u2192 ".join(screen.files), format_count(screen.modules, "module")))

    # Building.

    def _build_ready(self) -> None:
        self.field = named(CalmComboBox(), spoken="Figure")
        self.field.addItems(list(FIELDS.values()))
        self.field.currentIndexChanged.connect(self._on_field)
        self.log = QCheckBox("Log scale")
        self.log.toggled.connect(self._on_log)
        self._copy = make_button("Copy as text", icon="copy", theme=self._theme)
        self.chart = ChartView(self._theme)
        self.chart.setMinimumHeight(_LEAST_CHART)
        self.table = _table()
        self.table.selectionModel().selectionChanged.connect(self._on_selection)
        self._note = plain_label("", "muted", wrap=True)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self.chart)
        split.addWidget(self.table)
        split.setChildrenCollapsible(False)
        split.setSizes([360, 300])
        buttons = (self._copy, save_button(self._theme, self._saved, kinds=tuple(KINDS)))
        hint = ElidedLabel(_HINT, "muted")
        head = row(plain_label("Figure"), self.field, self.log, (hint, 1), *buttons, spacing=10)
        column(head, (split, 1), self._note, spacing=8, margins=(12, 10, 12, 6), within=self._ready)

    def _fill(self, screen: SeriesScreen) -> None:
        lines = screen.lines[:_MOST_ROWS]
        with blocked(self.table.selectionModel()):
            self.table.setRowCount(len(lines))
            self.table.setColumnCount(len(screen.files))
            self.table.setHorizontalHeaderLabels(
                [
                    f"{_number(number)}: {name}"
                    for number, name in zip(screen.numbers, screen.files, strict=True)
                ]
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

    def _on_log(self, on: bool) -> None:  # noqa: FBT001  # Qt passes it by position
        if self.session is not None:
            self.session.choose_scale(is_log=on)

    def _on_selection(self, _new: QItemSelection, _old: QItemSelection) -> None:
        if self.session is not None:
            rows: list[QModelIndex] = self.table.selectionModel().selectedRows()
            self.session.choose_lines(tuple(sorted(index.row() for index in rows)))

    def _saved(self) -> Saved:
        given = "" if self.session is None else self.session.given[0]
        field = "" if self.shown is None else FIELDS[self.shown.field]
        csv = None if self.shown is None else partial(figures_csv, self.shown)
        return saved_charts((self.chart,), f"{field} of a series", given, csv)


def _number(number: float | None) -> str:
    return _UNKNOWN if number is None else f"{number:.10g}"


def _table() -> QTableWidget:
    table = named(QTableWidget(), spoken="Figures of the series")
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setTabKeyNavigation(False)
    table.setShowGrid(False)
    table.setCornerButtonEnabled(False)
    table.setFrameShape(QFrame.Shape.NoFrame)
    table.setAlternatingRowColors(False)
    table.horizontalHeader().setDefaultAlignment(_NUMBERS)
    table.horizontalHeader().setHighlightSections(False)
    table.verticalHeader().setHighlightSections(False)
    table.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
    table.setAcceptDrops(False)
    return table
