"""The memory page: what the file's tensors take on each device, before and after the map.

The bars need numpy and pyqtgraph, which take longer to import than the window to paint: they are imported
after the first paint. Until then the cards show their titles and tables, which have the same figures.
"""

from __future__ import annotations

from importlib import import_module
from threading import Thread

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QShowEvent

from inspector.gui.pages.memory.card import ChartCard, ForecastCard
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.cards import ScrollPanel
from inspector.overriding import override
from inspector.session.screen import Chart, ForecastPage, Screen

_HEAVY = "numpy"
_AFTER_PAINT_MS = 30
_LOOK_MS = 15


class ChartLoader(QObject):
    """Imports numpy in a thread, so that little of the import of pyqtgraph is left for the main thread.

    WORKAROUND: pyqtgraph itself must not be imported in a thread. It makes classes of Qt's, and PySide enters
    them in a table that it reads without the interpreter's lock whenever an event reaches an object of the
    main thread (PySide::MetaObjectBuilder::update, PepType_SOTP): one start in some hundreds crashed.
    """

    loaded = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._thread: Thread | None = None
        self._timer = QTimer(self, interval=_LOOK_MS)
        self._timer.timeout.connect(self._on_tick)

    def start(self) -> None:
        """Start importing, once; `loaded` is emitted when numpy is there.

        Not a daemon thread: the interpreter must not end during an import.
        """
        self._thread = Thread(target=import_module, args=(_HEAVY,), name="chart-loader")
        self._thread.start()
        self._timer.start()

    def _on_tick(self) -> None:
        if self._thread is not None and not self._thread.is_alive():
            self._timer.stop()
            self.loaded.emit()


class MemoryPanel(ScrollPanel):
    """Shows the charts of a screen."""

    drawn = Signal()
    loading_chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Memory")
        self._forecast: ForecastCard | None = None
        self._page: ForecastPage | None = None
        self._cards: list[ChartCard] = []
        self._charts: tuple[Chart, ...] = ()
        self._devices: frozenset[str] = frozenset()
        self._ready = False
        self._asked = False
        self._loader = ChartLoader(self)
        self._loader.loaded.connect(self._on_loaded)
        theme.changed.connect(self._on_theme_changed)

    @property
    def is_drawn(self) -> bool:
        """Whether the bars are drawn, or there are none."""
        return self._ready or not self._cards

    def show_screen(self, screen: Screen) -> None:
        """Show the charts of a screen."""
        self._charts, self._page = screen.charts, screen.forecast
        known = screen.tree.colors if screen.tree else {}
        self._devices = frozenset(known).union(*(row.choices for row in screen.device_map))
        self._build()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._asked:
            self._asked = True
            QTimer.singleShot(_AFTER_PAINT_MS, self._loader.start)

    def _build(self) -> None:
        if not self._charts:
            self._cards, self._forecast = [], None
            self.show_empty("memory", "No tensors", "Nothing in this file takes memory.")
            return
        if len(self._cards) != len(self._charts) or (self._forecast is None) != (self._page is None):
            self._make_cards()
        if self._forecast is not None and self._page is not None:
            self._forecast.show_forecast(self._page)
        for card, chart in zip(self._cards, self._charts, strict=True):
            card.show_chart(chart, self._devices)
        if self._ready:
            self._draw()

    def _make_cards(self) -> None:
        """Make the cards anew; the forecast is below the chart of the devices."""
        self.clear()
        self._cards = [ChartCard(self.theme) for _ in self._charts]
        for card in self._cards:
            self.cards.addWidget(card)
        self._forecast = None
        if self._page is not None:
            self._forecast = ForecastCard(self.theme)
            self._forecast.loading_chosen.connect(self.loading_chosen)
            self.cards.insertWidget(1, self._forecast)
        self.cards.addStretch(1)

    def _draw(self) -> None:
        for card in (*self._cards, *([self._forecast] if self._forecast else [])):
            card.draw()
        self.drawn.emit()

    def _on_loaded(self) -> None:
        if not self._ready:
            self._ready = True
            self._draw()

    def _on_theme_changed(self) -> None:
        self._build()
