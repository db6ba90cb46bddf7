"""The cards of the memory page: a chart, and the chart of what loading takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QCheckBox, QFrame, QSpinBox, QVBoxLayout

from inspector.gui.pages.memory.tables import build_legend, build_ranking, is_ranking
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.labels import blocked, clear_layout, named, plain_label
from inspector.session.screen import Chart, ForecastPage, Loading, Segment

if TYPE_CHECKING:
    from inspector.gui.pages.memory.bars import ChartView


_LOADING = "While loading"


class ChartCard(QFrame):
    """One chart with its title and its table; with room above and below for more."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._by_device = True
        self._chart: Chart | None = None
        self._view: ChartView | None = None
        self._title = plain_label("", "strong", wrap=True)
        self.above, self.below = QVBoxLayout(), QVBoxLayout()
        self._bars = QVBoxLayout()
        self._table = QVBoxLayout()
        parts = (self._title, named(QFrame(), "line"), self.above, self._bars, self._table, self.below)
        column(*parts, spacing=8, margins=(0, 0, 0, 8), within=self)

    def show_chart(self, chart: Chart, devices: frozenset[str]) -> None:
        """Show another chart; what is not a device gets a color that no device has."""
        self._chart = chart
        self._by_device = all(part.label in devices for bar in chart.bars for part in bar.segments)
        self._title.setText(chart.title)
        clear_layout(self._table)
        if is_ranking(chart):
            self._table.addWidget(build_ranking(self._theme, chart))
        else:
            self._table.addWidget(build_legend(chart, self._color_of))
        if self._view is not None:
            self._view.setHidden(is_ranking(chart))
            self._view.show_chart(chart)

    def draw(self) -> None:
        """Add the stacked bars; imports the drawing module."""
        from inspector.gui.pages.memory.bars import ChartView

        if self._view is None and self._chart is not None and not is_ranking(self._chart):
            self._view = ChartView(self._theme, self._chart, self._color_of)
            self._bars.addWidget(self._view)

    def _color_of(self, part: Segment) -> QColor:
        tokens = self._theme.tokens
        return tokens.device(part.color) if self._by_device else tokens.shade(part.color)


class ForecastCard(ChartCard):
    """What loading takes of the target's memory, with its options above and its notes below."""

    loading_chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._ranks = QSpinBox()
        self._ranks.setMinimum(1)
        self._ranks.setAccessibleName("Number of processes that load the file at once")
        self._ranks.valueChanged.connect(self._on_chosen)
        self._mmap = QCheckBox("mmap=True")
        self._mmap.setToolTip("Map the file instead of reading it: only what is used is read")
        self._mmap.toggled.connect(self._on_chosen)
        self._notes = column(spacing=2)
        label = plain_label("Processes", "muted")
        label.setBuddy(self._ranks)
        self.above.addLayout(row(label, self._ranks, self._mmap, 1, spacing=10))
        self.below.addLayout(self._notes)

    def show_forecast(self, page: ForecastPage) -> None:
        """Show a forecast and the options it was made for."""
        with blocked(self._ranks, self._mmap):
            self._ranks.setMaximum(page.most_ranks)
            self._ranks.setValue(page.loading.ranks)
            self._mmap.setChecked(page.loading.mmap)
        self._mmap.setVisible(page.can_map)
        self.show_chart(page.chart or Chart(title=_LOADING, bars=()), frozenset())
        clear_layout(self._notes)
        for note in page.notes:
            self._notes.addWidget(plain_label(note, "warning" if page.is_tight else "muted", wrap=True))

    def _on_chosen(self) -> None:
        self.loading_chosen.emit(Loading(ranks=self._ranks.value(), mmap=self._mmap.isChecked()))
