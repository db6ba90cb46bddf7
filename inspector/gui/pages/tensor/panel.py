"""The tensor page: facts of the selected row, figures of its values, and its elements behind a switch."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QFrame, QStackedWidget, QWidget

from inspector.gui.charts.saving import PICTURES, Saved, save_button
from inspector.gui.charts.values import Histogram
from inspector.gui.charts.view import ChartView, saved_charts
from inspector.gui.pages.facts import build_group
from inspector.gui.pages.tensor.elements import ElementsPart
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import LEFT, MIDDLE, NO_MARGINS, TOP, TOP_LEFT, column, row
from inspector.gui.widgets.cards import ScrollPanel, add_empty_state, card_row
from inspector.gui.widgets.controls import CalmComboBox, Switch, confirm_copied, make_button
from inspector.gui.widgets.labels import (
    ElidedLabel,
    PathButton,
    blocked,
    clear_layout,
    describe,
    focus_kept,
    named,
    plain_label,
)
from inspector.gui.widgets.progress import ProgressBar, Rate
from inspector.overriding import override
from inspector.progress import Progress
from inspector.report.details import FactGroup
from inspector.session.screen import Screen
from inspector.session.values.page import ScanPage, ScanRow, ValuesPage

# The scan of all tensors: its button, its progress, and what it found.

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
        self._bar = ProgressBar("Progress of the scan")
        self._bar.looked.connect(self._on_looked)
        self._rows = column(spacing=2)
        self._note = plain_label("", "muted", wrap=True)
        self._scan = make_button("Scan all tensors", self.scan_wanted, icon="search", theme=theme)
        self._cancel = make_button("Cancel", self.cancel_wanted)
        self._cancel.setAccessibleName("Cancel the scan")
        head = row(self._title, 1, self._scan, self._cancel, spacing=8)
        words = column(head, self._text, self._bar, self._rows, self._note, spacing=6)
        card_row(self, (words, 1))
        self.show_scan(self._page)

    def show_scan(self, page: ScanPage) -> None:
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
        self._bar.follow(page.progress)

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

    def _on_looked(self, progress: Progress) -> None:
        self._text.setText(self._rate.describe(progress) or progress.label)


_CAPTION_WIDTH = 136
_LEAST_KIND = 96
_EMPTY = ("tensor", "Nothing selected", "Select a row in the tree to see its facts and values.")


class SummaryPart(ScrollPanel):
    """The facts of the selected row around the figures and the histogram of its values."""

    compute_wanted = Signal()
    cancel_wanted = Signal()
    rank_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Facts and values")
        self._page: ValuesPage | None = None
        self._groups: tuple[FactGroup, ...] | None = None
        self._path = ""
        self._rate = Rate()
        self.scan = ScanCard(theme)
        self._facts = [column(spacing=12), column(spacing=12)]
        values = column(self._build_head(), self._build_histogram(), spacing=12, margins=NO_MARGINS)
        for part in (self._facts[0], values, self._facts[1]):
            self.cards.addLayout(part)
        self.cards.addWidget(self.scan)
        self.cards.addStretch(1)
        self._reveals = False
        self.verticalScrollBar().rangeChanged.connect(self._on_range_changed)
        self.verticalScrollBar().actionTriggered.connect(self._on_scrolled)

    @property
    @override
    def is_drawn(self) -> bool:
        is_read = self._page is not None and self._page.progress is None
        return is_read and (self.histogram.is_drawn or not self.histogram.isVisible())

    def _build_head(self) -> QWidget:
        self.head = QWidget()
        self.facts = plain_label("", "muted", wrap=True)
        self.message = plain_label("", "", wrap=True, selectable=True)
        self.bar = ProgressBar("Progress of reading the values")
        self.bar.looked.connect(self._on_looked)
        self.compute = make_button("Compute statistics", self.compute_wanted, kind="primary")
        self.cancel = make_button("Cancel", self.cancel_wanted)
        self.rank = make_button("Effective rank", self.rank_wanted)
        self.lines = column(spacing=4)
        self._title = plain_label("Values", "strong")
        title = row(self._title, 1, self.rank, self.compute, self.cancel, spacing=8)
        for button in (self.compute, self.cancel, self.rank):
            button.setProperty("slim", True)
        words = (title, named(QFrame(), "line"), self.facts, self.message, self.bar, self.lines)
        column(*words, spacing=7, margins=(0, 0, 0, 8), within=self.head)
        return self.head

    def _build_histogram(self) -> QFrame:
        self.histogram_card = QFrame()
        self.histogram = ChartView(self.theme)
        self.kind = named(CalmComboBox(least=_LEAST_KIND), spoken="What the histogram counts")
        self.kind.addItems(["Values", "Magnitudes by powers of two"])
        self.kind.activated.connect(self._show_histogram)
        self.logarithmic = QCheckBox("Log scale")
        self.logarithmic.toggled.connect(self._show_histogram)
        self.summary = plain_label("", "muted", wrap=True, selectable=True)
        self.save_histogram = save_button(self.theme, self._saved, kinds=PICTURES)
        controls = (self.kind, self.logarithmic, self.save_histogram)
        title = row(plain_label("Histogram", "strong"), 1, *controls, spacing=10)
        parts = (title, named(QFrame(), "line"), self.histogram, self.summary)
        column(*parts, spacing=7, margins=(0, 0, 0, 8), within=self.histogram_card)
        return self.histogram_card

    def show_screen(self, screen: Screen) -> None:
        old, page = self._page, screen.values
        self._page, self._path = page, screen.path
        if self._groups != screen.tensor:
            self._show_facts(screen.tensor)
        self.scan.show_scan(page.scan)
        self._show_head(page)
        if old is None or old.lines != page.lines:
            self._show_lines(page)
        if old is None or old.statistics is not page.statistics:
            self._show_histogram()
        if old is not None and old.row != page.row and None in {old.row, page.row}:
            self.verticalScrollBar().setValue(0)  # from tensor to tensor it stays where it is

    def reveal_values(self) -> None:
        """Scroll to the values, now and when more of them is there, until the user scrolls."""
        self._reveals = True
        self._on_range_changed()

    def _on_range_changed(self, *_: int) -> None:
        if self._reveals:
            self.verticalScrollBar().setValue(self.head.y())

    def _on_scrolled(self, _: int) -> None:
        self._reveals = False

    def _show_facts(self, groups: tuple[FactGroup, ...]) -> None:
        """Show what a tensor is above its values, and how it is stored below them."""
        self._groups = groups
        above, below = self._facts
        for layout, shown in ((above, groups[:1]), (below, groups[1:])):
            clear_layout(layout)
            for group in shown:
                layout.addWidget(build_group(group, self.fontMetrics()))
        if not groups:
            add_empty_state(self.theme, above, *_EMPTY)

    def _show_head(self, page: ValuesPage) -> None:
        is_one, runs = page.row is not None, page.progress is not None
        self.head.setVisible(is_one)
        self.facts.setText(page.facts)
        self.facts.setVisible(bool(page.facts) and (runs or page.statistics is None))
        message = page.refusal or page.error
        self.message.setText(message)
        self.message.setVisible(bool(message) and not runs)
        self.bar.setVisible(runs)
        has_values = is_one and not page.refusal
        scrolled = self.verticalScrollBar().value()
        with focus_kept(self.cancel, self.compute, self.rank):
            self.compute.setVisible(has_values and not runs and page.statistics is None)
            self.cancel.setVisible(runs)
            self.rank.setVisible(page.has_rank and not runs)
        self.verticalScrollBar().setValue(scrolled)  # Qt went to what it gave the focus of a hidden button
        self.bar.follow(page.progress)

    def _show_lines(self, page: ValuesPage) -> None:
        clear_layout(self.lines)
        for caption, text in page.lines:
            holder = QWidget()
            name = ElidedLabel(caption, "muted")
            name.setFixedWidth(_CAPTION_WIDTH)
            name.setAlignment(TOP_LEFT)
            words = named(plain_label(text, wrap=True, selectable=True), spoken=f"{caption}: {text}")
            row((name, 0, TOP), (words, 1), spacing=16, margins=NO_MARGINS, within=holder)
            self.lines.addWidget(holder)

    def _show_histogram(self) -> None:
        found = None if self._page is None else self._page.statistics
        self.histogram_card.setVisible(found is not None and bool(found.counts))
        if found is None or self._page is None:
            return
        self.summary.setText(self._page.summary)
        for part in (self.histogram, self.kind, self.logarithmic, self.save_histogram):
            part.setVisible(found.low != found.high)  # one bar tells nothing
        is_octaves, is_log = self.kind.currentIndex() == 1, self.logarithmic.isChecked()
        self.histogram.show_drawing(
            Histogram(found, self._page.summary, octaves=is_octaves, logarithmic=is_log)
        )

    def _on_looked(self, progress: Progress) -> None:
        self.facts.setText(self._rate.describe(progress) or progress.label)

    def _saved(self) -> Saved:
        title = "" if self._page is None else self._page.title
        return saved_charts((self.histogram,), f"{self.histogram.drawing.name} of {title}", self._path)


class TensorPanel(QWidget):
    """Shows the facts and the values of the selected row."""

    watched = Signal(bool)
    save_wanted = Signal()
    save_cancelled = Signal()
    code_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._page = ValuesPage()
        self._path = ""
        self._wanted = 0
        self.switch = Switch(("Facts", "Elements"), spoken="Facts and figures, or the elements")
        self.switch.currentChanged.connect(self._on_switched)
        self.save = make_button("Save\u2026", self.save_wanted)
        self.code = make_button("Copy code", self.code_wanted)
        for button in (self.save, self.code):
            button.setProperty("slim", True)
        self.head = QWidget()
        row(self.switch, 1, self.save, self.code, spacing=6, margins=(16, 12, 16, 6), within=self.head)
        self.told = plain_label("", "muted", wrap=True, selectable=True)
        self.told.setAlignment(MIDDLE | LEFT)
        self.stop = make_button("Cancel", self.save_cancelled)
        self.stop.setAccessibleName("Cancel saving")
        self.stop.setProperty("slim", True)
        self._saving = QWidget()
        row((self.told, 1), (self.stop, 0, TOP), spacing=8, margins=(16, 0, 16, 6), within=self._saving)
        self.summary, self.elements = SummaryPart(theme), ElementsPart(theme)
        self._parts = QStackedWidget()
        for part in (self.summary, self.elements):
            self._parts.addWidget(part)
        column(self.head, self._saving, (self._parts, 1), spacing=0, margins=NO_MARGINS, within=self)

    @property
    def is_drawn(self) -> bool:
        """Whether all is there that is read without being asked for; that begins when the page is shown."""
        is_chart = self._parts.currentIndex() == 0 or self.elements.is_drawn
        return self.isVisible() and self.summary.is_drawn and is_chart

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.watched.emit(True)

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.watched.emit(False)

    def show_screen(self, screen: Screen) -> None:
        page = self._page = screen.values
        self.head.setVisible(page.row is not None)
        for button, why, words in (
            (self.save, page.no_forms, "Save this tensor as a file of its own"),
            (self.code, page.no_code, "Copy code that loads this tensor"),
        ):
            button.setEnabled(not why)
            describe(button, why or words)
        self.told.setText(page.saved)
        self.stop.setVisible(page.is_saving)
        self._saving.setVisible(bool(page.saved))
        self.summary.show_screen(screen)
        self.elements.show_screen(screen)
        self._show_part()

    def show_part(self, _: str) -> None:
        """Show the values, as the page that was theirs did."""
        self.switch.setCurrentIndex(0)
        self.summary.reveal_values()

    def confirm_copied(self) -> None:
        confirm_copied(self.code, self._theme)

    def _show_part(self) -> None:
        """Show what was chosen; of a row without elements, its facts."""
        has_elements = self._page.choice is not None
        shown = self._wanted if has_elements else 0
        with blocked(self.switch):  # which turns to another tab when one is disabled
            self.switch.setTabEnabled(1, has_elements)
            self.switch.setCurrentIndex(shown)
        self._parts.setCurrentIndex(shown)

    def _on_switched(self, place: int) -> None:
        self._wanted = place
        self._parts.setCurrentIndex(place)
