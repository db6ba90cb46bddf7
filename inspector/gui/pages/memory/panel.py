"""The memory page: what the file's tensors take on each device, and behind a switch the map of modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QStackedWidget, QVBoxLayout, QWidget

from inspector.gui.charts.bars import Bars
from inspector.gui.charts.saving import Saved, save_button
from inspector.gui.charts.view import ChartView, saved_charts
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import MIDDLE, NO_MARGINS, TOP, column, row
from inspector.gui.widgets.cards import ScrollPanel
from inspector.gui.widgets.controls import Switch, number_field
from inspector.gui.widgets.labels import blocked, clear_layout, named, plain_label
from inspector.overriding import override
from inspector.report.charts.bars import Chart
from inspector.report.charts.tables import charts_csv
from inspector.session.screen import ForecastPage, Loading, Screen

if TYPE_CHECKING:
    from inspector.gui.pages.memory.map_panel import MapPart

# The cards of the memory page: a chart, and the chart of what loading takes.

_LOADING = "While loading"


class ChartCard(QFrame):
    """One chart with its title; with room above and below for more."""

    query_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.chart = Chart(title="", bars=())
        self._devices: frozenset[str] = frozenset()
        self._title = plain_label("", "strong", wrap=True)
        self.above, self.below = QVBoxLayout(), QVBoxLayout()
        self.view = ChartView(theme)
        self.view.query_wanted.connect(self.query_wanted)
        self._head = row((self._title, 1, MIDDLE), spacing=8)
        parts = (self._head, named(QFrame(), "line"), self.above, self.view, self.below)
        column(*parts, spacing=8, margins=(0, 0, 0, 8), within=self)

    def show_chart(self, chart: Chart, devices: frozenset[str], marks: tuple[str, ...] = ()) -> None:
        """Show another chart; what is not a device gets a color that no device has."""
        if (chart, devices) != (self.chart, self._devices):
            self.chart, self._devices = chart, devices
            self._title.setText(chart.title)
            self.view.show_drawing(Bars(chart, devices))
            self.view.setVisible(bool(chart.bars))
        self.view.show_marks(marks)

    def offer_saving(self, source: Callable[[], str], whole: Callable[[], Saved]) -> None:
        button = save_button(self._theme, lambda: saved_cards((self,), self.chart.title, source()), whole)
        self._head.addWidget(button, 0, TOP)


def saved_cards(cards: Sequence[ChartCard], title: str, source: str) -> Saved:
    charts = [card.chart for card in cards]
    return saved_charts([card.view for card in cards], title, source, lambda: charts_csv(charts))


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


class BarsPart(ScrollPanel):
    """Shows the charts of a screen."""

    loading_chosen = Signal(object)
    query_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Memory in bars")
        self._forecast: ForecastCard | None = None
        self._page: ForecastPage | None = None
        self._cards: list[ChartCard] = []
        self._all_cards: list[ChartCard] = []
        self._charts: tuple[Chart, ...] = ()
        self._query = self._path = ""

    def show_screen(self, screen: Screen) -> None:
        self._charts, self._page, self._query = screen.charts, screen.forecast, screen.query
        self._path = screen.path
        known = screen.tree.colors if screen.tree else {}
        devices = frozenset(known).union(*(row.choices for row in screen.device_map))
        if not self._charts:
            self._cards, self._all_cards, self._forecast = [], [], None
            self.show_empty("memory", "Nothing takes memory", "This file stores no bytes of tensors.")
            return
        if len(self._cards) != len(self._charts) or (self._forecast is None) != (self._page is None):
            self._make_cards()
        if self._forecast is not None and self._page is not None:
            self._forecast.show_forecast(self._page)
        for card, chart in zip(self._cards, self._charts, strict=True):
            card.show_chart(chart, devices, screen.marks)

    def _make_cards(self) -> None:
        self.clear()
        self._cards = [ChartCard(self.theme) for _ in self._charts]
        self._all_cards, self._forecast = list(self._cards), None
        if self._page is not None:
            self._forecast = ForecastCard(self.theme)
            self._forecast.loading_chosen.connect(self.loading_chosen)
            has_room = len(self._charts) > 1 and self._charts[1].bars[0].capacity_nbytes is not None
            self._all_cards.insert(2 if has_room else 1, self._forecast)
        for card in self._all_cards:
            card.query_wanted.connect(self._on_query_wanted)
            card.offer_saving(lambda: self._path, self.saved_page)
            self.cards.addWidget(card)
        self.cards.addStretch(1)

    @property
    @override
    def is_drawn(self) -> bool:
        return super().is_drawn and all(card.view.is_drawn for card in self._all_cards)

    def saved_page(self) -> Saved:
        return saved_cards([card for card in self._all_cards if card.chart.bars], "Memory", self._path)

    def _on_query_wanted(self, query: str) -> None:
        """Search for what was clicked; a second click ends that search."""
        self.query_wanted.emit("" if query == self._query else query)


class MemoryPanel(QWidget):
    """Shows the bars of a screen, or the map of its modules."""

    map_wanted = Signal()

    def __init__(self, theme: Theme, build_map: Callable[[], MapPart]) -> None:
        """Make the page; its map when it is first looked at."""
        super().__init__()
        self._screen: Screen | None = None
        self._build_map = build_map
        self.switch = Switch(("Bars", "Map of modules"), spoken="Bars or the map of modules")
        self.switch.currentChanged.connect(self._show_part)
        self.bars = BarsPart(theme)
        self.map: MapPart | None = None
        self._head = QWidget()
        row(self.switch, 1, margins=(16, 12, 16, 6), within=self._head)
        self._parts = QStackedWidget()
        self._parts.addWidget(self.bars)
        column(self._head, (self._parts, 1), spacing=0, margins=NO_MARGINS, within=self)

    @property
    def is_drawn(self) -> bool:
        shown = self.bars if self._parts.currentIndex() == 0 else self.map
        return shown is not None and shown.is_drawn

    def show_screen(self, screen: Screen) -> None:
        self._screen = screen
        self._head.setVisible(bool(screen.charts))  # without bytes there is nothing to switch to
        self._show_part()

    def show_part(self, part: str) -> None:
        """Show the map, as the page that was its own did."""
        self.switch.setCurrentIndex(int(part == "map"))

    def _show_part(self) -> None:
        """Bring what is looked at up to date; the map is measured when it is first looked at."""
        screen = self._screen
        if screen is None:
            return
        is_map = bool(screen.charts) and self.switch.currentIndex() == 1
        if is_map and self.map is None:
            self.map = self._build_map()
            self._parts.addWidget(self.map)
        self._parts.setCurrentIndex(int(is_map))
        if not is_map or self.map is None:
            self.bars.show_screen(screen)
        elif screen.module_map is None:
            self.map_wanted.emit()
        else:
            self.map.show_screen(screen)
