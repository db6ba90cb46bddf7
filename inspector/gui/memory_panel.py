"""The memory page: what the file's tensors take, device by device, before and after the map.

The bars need pyqtgraph, which takes longer to import than the window takes to paint: it is fetched in a thread
after the first paint. Until then the cards show their titles and tables, which say the same in figures.
"""

from __future__ import annotations

import sys
from importlib import import_module
from threading import Thread

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QVBoxLayout, QWidget

from inspector.gui.device_map import Swatch
from inspector.gui.labels import ElidedLabel, plain_label
from inspector.gui.overriding import override
from inspector.gui.panels import ScrollPanel
from inspector.gui.theme import Theme
from inspector.session.screen import Chart, Screen
from inspector.units import format_nbytes

_CHARTS = "inspector.gui.charts"
_AFTER_PAINT_MS = 30
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class ChartLoader(QObject):
    """Imports the module that draws, away from the main thread."""

    loaded = Signal()

    def start(self) -> None:
        """Begin, once; `loaded` comes on the main thread."""
        if _CHARTS in sys.modules:
            self.loaded.emit()
        else:
            Thread(target=self._load, name="chart-loader", daemon=True).start()

    def _load(self) -> None:
        import_module(_CHARTS)
        self.loaded.emit()


class ChartCard(QFrame):
    """One chart with its title and its table."""

    def __init__(self, theme: Theme, chart: Chart) -> None:
        super().__init__()
        self._theme, self._chart = theme, chart
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 8)
        self._column.setSpacing(8)
        self._column.addWidget(plain_label(chart.title, "strong"))
        self._column.addWidget(QFrame(objectName="line"))
        self._column.addWidget(build_table(theme, chart))

    def draw(self) -> None:
        """Put the bars in; the drawing module must be there."""
        from inspector.gui.charts import ChartView

        self._column.insertWidget(2, ChartView(self._theme, self._chart))


def build_table(theme: Theme, chart: Chart) -> QWidget:
    """Build the legend, which is a table of the same figures: one line a colour, one column a bar."""
    holder = QWidget()
    grid = QGridLayout(holder)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(12)
    grid.setVerticalSpacing(5)
    grid.setColumnStretch(1, 1)
    colours = {part.label: part.colour for bar in chart.bars for part in bar.segments}
    if len(chart.bars) > 1:
        for column, bar in enumerate(chart.bars, start=2):
            grid.addWidget(plain_label(bar.label, "small"), 0, column, _RIGHT)
    for line, (label, colour) in enumerate(colours.items(), start=1):
        grid.addWidget(Swatch(theme, colour, 10), line, 0)
        grid.addWidget(ElidedLabel(label), line, 1)
        for column, bar in enumerate(chart.bars, start=2):
            nbytes = sum(part.nbytes for part in bar.segments if part.label == label)
            text = format_nbytes(nbytes) if nbytes else "\u2013"
            cell = plain_label(text, "" if nbytes else "faint")
            cell.setMinimumWidth(72)
            cell.setAlignment(_RIGHT)
            grid.addWidget(cell, line, column)
    return holder


class MemoryPanel(ScrollPanel):
    """Shows the charts of a screen."""

    drawn = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Memory")
        self._cards: list[ChartCard] = []
        self._charts: tuple[Chart, ...] = ()
        self._ready = False
        self._asked = False
        self._loader = ChartLoader(self)
        self._loader.loaded.connect(self._on_loaded, Qt.ConnectionType.QueuedConnection)
        theme.changed.connect(self._on_theme_changed)

    @property
    def is_drawn(self) -> bool:
        """Whether the bars are in, or there are none."""
        return self._ready or not self._cards

    def show_screen(self, screen: Screen) -> None:
        """Show the charts of a screen."""
        self._charts = screen.charts
        self._build()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._asked:
            self._asked = True
            QTimer.singleShot(_AFTER_PAINT_MS, self._loader.start)

    def _build(self) -> None:
        place = self.verticalScrollBar().value()
        self._cards = []
        if not self._charts:
            self.show_empty("memory", "No tensors", "This file holds nothing that takes memory.")
            return
        self.clear()
        for chart in self._charts:
            card = ChartCard(self.theme, chart)
            self._cards.append(card)
            self.cards.addWidget(card)
        self.cards.addStretch(1)
        if self._ready:
            self._draw()
        self.verticalScrollBar().setValue(place)

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
