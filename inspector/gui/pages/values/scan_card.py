"""The scan of all tensors: its button, its progress, and what it found."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QProgressBar

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import NO_MARGINS, TOP, column, row
from inspector.gui.widgets.cards import card_row
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import PathButton, clear_layout, focus_kept, named, plain_label
from inspector.gui.widgets.progress import POLL_MS, Rate, show_fraction
from inspector.session.values.page import ScanPage, ScanRow

_UNASKED = (
    "Reading all tensors shows which hold NaN, infinities or huge numbers, and which weights are zeros or "
    "constant."
)
_MOST_SHOWN = 100


class ScanCard(QFrame):
    """Shows a `ScanPage`."""

    scan_wanted = Signal()
    cancel_wanted = Signal()
    node_chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._page = ScanPage()
        self._rate = Rate()
        self._title = plain_label("All tensors", "strong")
        self._text = plain_label(_UNASKED, "muted", wrap=True, selectable=True)
        self._bar = named(QProgressBar(), spoken="Progress of the scan")
        self._bar.setTextVisible(False)
        self._rows = column(spacing=2)
        self._note = plain_label("", "muted", wrap=True)
        self._scan = make_button("Scan all tensors", self.scan_wanted, icon="search", theme=theme)
        self._cancel = make_button("Cancel", self.cancel_wanted)
        self._cancel.setAccessibleName("Cancel the scan")
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._on_tick)
        head = row(self._title, 1, self._scan, self._cancel, spacing=8)
        words = column(head, self._text, self._bar, self._rows, self._note, spacing=6)
        card_row(self, (words, 1))
        self.show_scan(self._page)

    def show_scan(self, page: ScanPage) -> None:
        """Show the progress of a scan, or what it found."""
        runs = page.progress is not None
        if page.rows != self._page.rows or page.sentence != self._page.sentence:
            self._fill(page)
        self._page = page
        self._text.setText(page.sentence or _UNASKED)
        self._note.setText(page.note)
        self._note.setVisible(bool(page.note))
        self._bar.setVisible(runs)
        self._scan.setText("Scan again" if page.sentence else "Scan all tensors")
        with focus_kept(self._scan, self._cancel):
            self._scan.setVisible(not runs)
            self._cancel.setVisible(runs)
        if runs:
            self._on_tick()
            self._timer.start()
        else:
            self._timer.stop()

    def _fill(self, page: ScanPage) -> None:
        clear_layout(self._rows)
        for line in page.rows[:_MOST_SHOWN]:
            self._rows.addWidget(self._build_row(line))
        hidden = page.more + max(0, len(page.rows) - _MOST_SHOWN)
        if hidden:
            self._rows.addWidget(plain_label(f"and {hidden:,} more: stats --scan lists all", "muted"))

    def _build_row(self, line: ScanRow) -> QFrame:
        holder = QFrame()
        link = PathButton(line.path, partial(self.node_chosen.emit, line.node))
        link.setAccessibleName(line.path)
        link.setAccessibleDescription(line.words)
        words = plain_label(line.words, "muted", wrap=True)
        words.setContentsMargins(0, 4, 0, 0)  # as a button has it
        row((link, 0, TOP), (words, 1, TOP), spacing=10, margins=NO_MARGINS, within=holder)
        return holder

    def _on_tick(self) -> None:
        progress = self._page.progress
        if progress is not None:
            self._text.setText(self._rate.describe(progress) or progress.label)
            show_fraction(self._bar, progress.fraction)
