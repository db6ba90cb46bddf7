"""The cards of the memory page: a chart, and the chart of what loading takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QVBoxLayout

from inspector.gui.pages.memory.bars import BarsView
from inspector.gui.pages.memory.bars_paint import color_of
from inspector.gui.pages.memory.picture import Picture, as_png, as_svg, chart_picture
from inspector.gui.pages.memory.saving import Saved, save_button
from inspector.gui.pages.memory.tables import (
    build_legend,
    build_ranking,
    build_rooms,
    has_rooms,
    is_ranking,
    needs_legend,
)
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import MIDDLE, TOP, column, row
from inspector.gui.widgets.controls import number_field
from inspector.gui.widgets.labels import blocked, clear_layout, named, plain_label
from inspector.report.charts.tables import charts_csv
from inspector.session.screen import Chart, ForecastPage, Loading

_LOADING = "While loading"
_LEAST_PICTURE = 480


class ChartCard(QFrame):
    """One chart with its title and its table; with room above and below for more."""

    query_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._chart: Chart | None = None
        self._devices: frozenset[str] = frozenset()
        self._marks: tuple[str, ...] = ()
        self._title = plain_label("", "strong", wrap=True)
        self.above, self.below = QVBoxLayout(), QVBoxLayout()
        self.bars = BarsView(theme)
        self.bars.query_wanted.connect(self.query_wanted)
        self._table = QVBoxLayout()
        self._head = row((self._title, 1, MIDDLE), spacing=8)
        parts = (self._head, named(QFrame(), "line"), self.above, self.bars, self._table, self.below)
        column(*parts, spacing=8, margins=(0, 0, 0, 8), within=self)
        theme.changed.connect(self._show_table)

    def show_chart(self, chart: Chart, devices: frozenset[str], marks: tuple[str, ...] = ()) -> None:
        """Show another chart; what is not a device gets a color that no device has."""
        is_same = chart == self._chart and devices == self._devices
        self.bars.show_marks(marks)
        if is_same and (marks == self._marks or not is_ranking(chart)):
            return
        self._chart, self._devices, self._marks = chart, devices, marks
        self._title.setText(chart.title)
        self.bars.setHidden(is_ranking(chart))
        self.bars.show_chart(chart, devices)
        self._show_table()

    def offer_saving(self, source: Callable[[], str], whole: Callable[[], Saved]) -> None:
        """Add the button that saves this chart, or the whole page.

        Args:
            source: The path of the checkpoint.
            whole: What can be saved of the page.
        """
        button = save_button(self._theme, lambda: saved_charts((self,), source()), whole)
        self._head.addWidget(button, 0, TOP)

    @property
    def chart(self) -> Chart:
        """The chart that is shown."""
        return self._chart or Chart(title="", bars=())

    def picture(self) -> Picture:
        """Return the chart as a picture, as wide as it is here."""
        width = max(self.width(), _LEAST_PICTURE)
        return chart_picture(self.chart, width, self._theme.tokens, self.font(), self._devices)

    @property
    def theme(self) -> Theme:
        """The theme that it is drawn in."""
        return self._theme

    def _show_table(self) -> None:
        """Show the figures anew."""
        chart = self._chart
        clear_layout(self._table)
        if chart is None:
            return
        if is_ranking(chart):
            self._table.addWidget(build_ranking(self._theme, chart, self._marks, self.query_wanted.emit))
        elif has_rooms(chart):
            self._table.addWidget(build_rooms(chart))
        elif needs_legend(chart):
            self._table.addWidget(
                build_legend(chart, lambda part: color_of(self._theme.tokens, chart, self._devices, part))
            )


def saved_charts(cards: Sequence[ChartCard], source: str, title: str = "") -> Saved:
    """Return what can be saved of some charts."""
    name = title or cards[0].chart.title

    def make(kind: str) -> bytes:
        if kind == "csv":
            return charts_csv(card.chart for card in cards).encode()
        tokens, width = cards[0].theme.tokens, max(*(card.width() for card in cards), _LEAST_PICTURE)
        pictures = [card.picture() for card in cards]
        if kind == "png":
            return as_png(pictures, width, tokens)
        return as_svg(pictures, width, tokens, name)

    return Saved(title=name, source=source, make=make)


class ForecastCard(ChartCard):
    """What loading takes of the target's memory, with its options above and its notes below."""

    loading_chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._ranks = number_field("Number of processes that load the file at once", 1, 1)
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
