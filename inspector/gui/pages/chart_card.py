"""A chart on a page: its title, its bars as soon as they can be drawn, and its figures as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QFrame, QVBoxLayout

from inspector.gui.pages.chart_tables import build_legend, build_ranking, is_ranking
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import clear_layout, named, plain_label
from inspector.session.screen import Chart, Segment

if TYPE_CHECKING:
    from inspector.gui.pages.charts import ChartView


class ChartCard(QFrame):
    """One chart with its title and its table; there is room above and below for more."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._by_device = True
        self._chart: Chart | None = None
        self._view: ChartView | None = None
        self._title = plain_label("", "strong")
        self.above, self.below = QVBoxLayout(), QVBoxLayout()
        self._bars = QVBoxLayout()
        self._table = QVBoxLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(8)
        column.addWidget(self._title)
        column.addWidget(named(QFrame(), "line"))
        for part in (self.above, self._bars, self._table, self.below):
            column.addLayout(part)

    def show_chart(self, chart: Chart, devices: frozenset[str]) -> None:
        """Show another chart; what is no device gets colours that no device has."""
        self._chart = chart
        self._by_device = all(part.label in devices for bar in chart.bars for part in bar.segments)
        self._title.setText(chart.title)
        clear_layout(self._table)
        if is_ranking(chart):
            self._table.addWidget(build_ranking(self._theme, chart))
        else:
            self._table.addWidget(build_legend(chart, self._colour_of))
        if self._view is not None:
            self._view.setHidden(is_ranking(chart))
            self._view.show_chart(chart)

    def draw(self) -> None:
        """Put stacked bars in; the drawing module must be there."""
        from inspector.gui.pages.charts import ChartView

        if self._view is None and self._chart is not None and not is_ranking(self._chart):
            self._view = ChartView(self._theme, self._chart, self._colour_of)
            self._bars.addWidget(self._view)

    def _colour_of(self, part: Segment) -> QColor:
        tokens = self._theme.tokens
        return tokens.device(part.colour) if self._by_device else tokens.shade(part.colour)
