"""What loading takes of the target's memory, for as many processes as one likes."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QSpinBox, QVBoxLayout

from inspector.gui.pages.chart_card import ChartCard
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import blocked, clear_layout, plain_label
from inspector.session.screen import Chart, ForecastPage, Loading

_TITLE = "While loading"


class ForecastCard(ChartCard):
    """A chart with its conditions above it and its remarks below."""

    loading_chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._ranks = QSpinBox()
        self._ranks.setMinimum(1)
        self._ranks.setAccessibleName("How many processes load the file at once")
        self._ranks.valueChanged.connect(self._on_chosen)
        self._mmap = QCheckBox("mmap=True")
        self._mmap.setToolTip("Map the file rather than read it: only what is used is fetched")
        self._mmap.toggled.connect(self._on_chosen)
        self._notes = QVBoxLayout()
        self._notes.setSpacing(2)
        label = plain_label("Processes", "muted")
        label.setBuddy(self._ranks)
        row = QHBoxLayout()
        row.setSpacing(10)
        for widget in (label, self._ranks, self._mmap):
            row.addWidget(widget)
        row.addStretch(1)
        self.above.addLayout(row)
        self.below.addLayout(self._notes)

    def show_forecast(self, page: ForecastPage) -> None:
        """Show a forecast and what it was made for."""
        with blocked(self._ranks, self._mmap):
            self._ranks.setMaximum(page.most_ranks)
            self._ranks.setValue(page.loading.ranks)
            self._mmap.setChecked(page.loading.mmap)
        self._mmap.setVisible(page.can_map)
        self.show_chart(page.chart or Chart(title=_TITLE, bars=()), frozenset())
        clear_layout(self._notes)
        for note in page.notes:
            self._notes.addWidget(plain_label(note, "warning" if page.is_tight else "muted", wrap=True))

    def _on_chosen(self) -> None:
        self.loading_chosen.emit(Loading(ranks=self._ranks.value(), mmap=self._mmap.isChecked()))
