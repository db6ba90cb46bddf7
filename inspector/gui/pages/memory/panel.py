"""The memory page: what the file's tensors take on each device, before and after the map."""

from __future__ import annotations

from PySide6.QtCore import Signal

from inspector.gui.charts.saving import Saved
from inspector.gui.pages.memory.card import ChartCard, ForecastCard, saved_cards
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.cards import ScrollPanel
from inspector.overriding import override
from inspector.session.screen import Chart, ForecastPage, Screen


class MemoryPanel(ScrollPanel):
    """Shows the charts of a screen."""

    loading_chosen = Signal(object)
    query_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Memory")
        self._forecast: ForecastCard | None = None
        self._page: ForecastPage | None = None
        self._cards: list[ChartCard] = []
        self._all_cards: list[ChartCard] = []
        self._charts: tuple[Chart, ...] = ()
        self._query = self._path = ""

    def show_screen(self, screen: Screen) -> None:
        """Show the charts of a screen."""
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
        """Make the cards anew; the forecast is below the charts of the devices."""
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
        """Return what can be saved of the whole page."""
        return saved_cards([card for card in self._all_cards if card.chart.bars], "Memory", self._path)

    def _on_query_wanted(self, query: str) -> None:
        """Search for what was clicked; a second click ends that search."""
        self.query_wanted.emit("" if query == self._query else query)
