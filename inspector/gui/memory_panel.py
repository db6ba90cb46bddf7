"""The memory page: what the file's tensors take, device by device, before and after the map.

The bars need numpy and pyqtgraph, which take longer to import than the window to paint: they are fetched
after the first paint. Until then the cards show their titles and tables, which say the same in figures.
"""

from __future__ import annotations

from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QColor, QShowEvent
from PySide6.QtWidgets import QFrame, QVBoxLayout

from inspector.gui.chart_tables import build_legend, build_ranking, is_ranking
from inspector.gui.labels import clear_layout, named, plain_label
from inspector.gui.panels import ScrollPanel
from inspector.gui.theme import Theme
from inspector.overriding import override
from inspector.session.screen import Chart, Screen, Segment

if TYPE_CHECKING:
    from inspector.gui.charts import ChartView

_HEAVY = "numpy"
_AFTER_PAINT_MS = 30
_LOOK_MS = 15


class ChartLoader(QObject):
    """Imports numpy away from the main thread; what is left of the import of pyqtgraph is short then.

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
        """Begin, once; `loaded` comes when numpy is there.

        The thread is no daemon, since an import must not meet the end of the interpreter.
        """
        self._thread = Thread(target=import_module, args=(_HEAVY,), name="chart-loader")
        self._thread.start()
        self._timer.start()

    def _on_tick(self) -> None:
        if self._thread is not None and not self._thread.is_alive():
            self._timer.stop()
            self.loaded.emit()


class ChartCard(QFrame):
    """One chart with its title and its table."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._by_device = True
        self._chart: Chart | None = None
        self._view: ChartView | None = None
        self._title = plain_label("", "strong")
        self._bars = QVBoxLayout()
        self._table = QVBoxLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(8)
        column.addWidget(self._title)
        column.addWidget(named(QFrame(), "line"))
        column.addLayout(self._bars)
        column.addLayout(self._table)

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
        from inspector.gui.charts import ChartView

        if self._view is None and self._chart is not None and not is_ranking(self._chart):
            self._view = ChartView(self._theme, self._chart, self._colour_of)
            self._bars.addWidget(self._view)

    def _colour_of(self, part: Segment) -> QColor:
        tokens = self._theme.tokens
        return tokens.device(part.colour) if self._by_device else tokens.shade(part.colour)


class MemoryPanel(ScrollPanel):
    """Shows the charts of a screen."""

    drawn = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Memory")
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
        """Whether the bars are in, or there are none."""
        return self._ready or not self._cards

    def show_screen(self, screen: Screen) -> None:
        """Show the charts of a screen."""
        self._charts = screen.charts
        known = screen.tree.colours if screen.tree else {}
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
            self._cards = []
            self.show_empty("memory", "No tensors", "This file holds nothing that takes memory.")
            return
        if len(self._cards) != len(self._charts):
            self.clear()
            self._cards = [ChartCard(self.theme) for _ in self._charts]
            for card in self._cards:
                self.cards.addWidget(card)
            self.cards.addStretch(1)
        for card, chart in zip(self._cards, self._charts, strict=True):
            card.show_chart(chart, self._devices)
        if self._ready:
            self._draw()

    def _draw(self) -> None:
        for card in self._cards:
            card.draw()
        self.drawn.emit()

    def _on_loaded(self) -> None:
        if not self._ready:
            self._ready = True
            self._draw()

    def _on_theme_changed(self) -> None:
        self._build()
