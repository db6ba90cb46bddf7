"""What both files say of the selected row, and by how much its numbers differ."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QGridLayout, QProgressBar, QScrollArea, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import TOP, column, row
from inspector.gui.widgets.cards import frameless_scroll
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import WrappedText, clear_layout, named, plain_label
from inspector.gui.widgets.progress import POLL_MS, show_fraction
from inspector.session.comparing.screen import Selection

_ASK = "Compare numbers"


class FactsPanel(QScrollArea):
    """Shows a `Selection`."""

    measure_wanted = Signal()
    stop_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setAccessibleName("Facts of the selected row")
        self._selection: Selection | None = None
        self._title = WrappedText("", "lead")
        self._detail = WrappedText()
        self._table = QGridLayout()
        self._table.setHorizontalSpacing(16)
        self._table.setVerticalSpacing(3)
        self._table.setColumnStretch(1, 1)
        self._table.setColumnStretch(2, 1)
        self._numbers = WrappedText("", "strong")
        self._failure = plain_label("", "bad", wrap=True, selectable=True)
        self._bar = named(QProgressBar(), spoken="Progress of comparing numbers")
        self._bar.setTextVisible(False)
        self._measure = make_button(_ASK, self.measure_wanted, icon="tensor", theme=theme)
        self._stop = make_button("Cancel", self.stop_wanted)
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._on_tick)
        content = named(QWidget(), "scrolled")
        buttons = row((self._bar, 1), self._measure, self._stop, spacing=8)
        head = row((column(self._title, self._detail, spacing=2), 1), buttons, spacing=12)
        column(
            head,
            self._numbers,
            self._failure,
            self._table,
            1,
            spacing=6,
            margins=(14, 8, 14, 8),
            within=content,
        )
        frameless_scroll(self, content)
        self.show_selection(None)

    def show_selection(self, selection: Selection | None) -> None:
        """Show what is selected."""
        is_same = _shown_of(selection) == _shown_of(self._selection)
        self._selection = selection
        shown = selection or Selection(row=0, title="", detail="", facts=())
        if not is_same:
            self._title.setText(shown.title)
            self._detail.setText(shown.detail)
            self._fill_table(shown)
        for part in (self._title, self._detail):
            part.setVisible(selection is not None)
        self._numbers.setText(f"Numbers: {shown.numbers}")
        self._numbers.setVisible(bool(shown.numbers))
        self._failure.setText(shown.failure)
        self._failure.setVisible(bool(shown.failure))
        runs = shown.measuring is not None
        self._measure.setVisible(shown.can_measure and not runs and not shown.numbers)
        self._bar.setVisible(runs)
        self._stop.setVisible(runs)
        if runs:
            self._on_tick()
            self._timer.start()
        else:
            self._timer.stop()

    def _fill_table(self, selection: Selection) -> None:
        clear_layout(self._table)
        for place, title in enumerate(("", "A", "B") if selection.facts else ()):
            self._table.addWidget(plain_label(title, "section"), 0, place)
        for line, fact in enumerate(selection.facts, 1):
            mark = "\u2260 " if fact.differs else ""
            role = "strong" if fact.differs else ""
            self._table.addWidget(plain_label(f"{mark}{fact.label}", role or "muted"), line, 0, TOP)
            for place, text in enumerate((fact.a, fact.b), 1):
                cell = named(WrappedText(text, role), spoken=f"{fact.label} in {'AB'[place - 1]}")
                self._table.addWidget(cell, line, place)

    def _on_tick(self) -> None:
        if self._selection is not None and self._selection.measuring is not None:
            show_fraction(self._bar, self._selection.measuring.fraction)


def _shown_of(selection: Selection | None) -> tuple[object, ...] | None:
    """Return what is written of a selection, which takes longer than the progress of its numbers."""
    return None if selection is None else (selection.title, selection.detail, selection.facts)
