"""The page of values: the figures of the selected tensor, its histogram, a slice, and the scan of all."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QFileDialog, QFrame, QProgressBar, QWidget

from inspector.gui.charts.saving import PICTURES, Saved, save_button
from inspector.gui.charts.values import HeatMap, Histogram
from inspector.gui.charts.view import ChartView, saved_charts
from inspector.gui.pages.values.scan_card import ScanCard
from inspector.gui.pages.values.slice_bar import SliceBar
from inspector.gui.pages.values.table import BLOCK, CellTable
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import NO_MARGINS, TOP, TOP_LEFT, column, row
from inspector.gui.widgets.cards import ScrollPanel
from inspector.gui.widgets.controls import CalmComboBox, make_button
from inspector.gui.widgets.labels import ElidedLabel, clear_layout, focus_kept, named, plain_label
from inspector.gui.widgets.progress import POLL_MS, Rate, show_fraction
from inspector.overriding import override
from inspector.report.words.values import format_number
from inspector.session.screen import Screen
from inspector.session.values.page import Picture, SliceChoice, ValuesPage

_DIGITS = (("As saved", 0), ("3 digits", 3), ("6 digits", 6), ("9 digits", 9))
_NOTHING = "Select a tensor in the tree to see its values."
_CAPTION_WIDTH = 172
_LEAST_KIND = 96


class ValuesPanel(ScrollPanel):
    """Shows a `ValuesPage`."""

    watched = Signal(bool)
    compute_wanted = Signal()
    cancel_wanted = Signal()
    rank_wanted = Signal()
    save_wanted = Signal(str)
    slice_wanted = Signal(object)
    cells_wanted = Signal(object, object, object, object, object)
    scan_wanted = Signal()
    scan_cancelled = Signal()
    node_chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Values")
        self._page: ValuesPage | None = None
        self._picture: Picture | None = None
        self._path = ""
        self._rate = Rate()
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._on_tick)
        self.scan = ScanCard(theme)
        self.scan.scan_wanted.connect(self.scan_wanted)
        self.scan.cancel_wanted.connect(self.scan_cancelled)
        self.scan.node_chosen.connect(self.node_chosen)
        for part in (self._build_head(), self._build_histogram(), self._build_slice(), self.scan):
            self.cards.addWidget(part)
        self.cards.addStretch(1)

    @property
    @override
    def is_drawn(self) -> bool:
        """Whether all is there that is read without being asked for."""
        is_read = self._page is not None and self._page.progress is None
        return is_read and all(one.is_drawn or one.isHidden() for one in (self.histogram, self.heat_map))

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.watched.emit(True)

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.watched.emit(False)

    # --- the parts ------------------------------------------------------------------------------------------

    def _build_head(self) -> QWidget:
        holder = QWidget()
        self.title = ElidedLabel("", "strong")
        self.facts = plain_label("", "muted", wrap=True)
        self.message = plain_label("", "", wrap=True, selectable=True)
        self.bar = named(QProgressBar(), spoken="Progress of reading the values")
        self.bar.setTextVisible(False)
        self.compute = make_button("Compute statistics", self.compute_wanted, kind="primary")
        self.cancel = make_button("Cancel", self.cancel_wanted)
        self.save = make_button("Save as .npy\u2026", self._on_save)
        self.lines = column(spacing=4)
        self.rank = make_button("Effective rank", self.rank_wanted)
        buttons = row(self.compute, self.cancel, self.rank, self.save, 1, spacing=8)
        words = (self.title, self.facts, self.message, self.bar, buttons, self.lines)
        column(*words, spacing=8, margins=NO_MARGINS, within=holder)
        return holder

    def _build_histogram(self) -> QFrame:
        self.histogram_card = QFrame()
        self.histogram = ChartView(self.theme)
        self.kind = named(CalmComboBox(least=_LEAST_KIND), spoken="What the histogram counts")
        self.kind.addItems(["Values", "Magnitudes by powers of two"])
        self.kind.activated.connect(self._show_histogram)
        self.logarithmic = QCheckBox("Log scale")
        self.logarithmic.toggled.connect(self._show_histogram)
        self.summary = plain_label("", "muted", wrap=True, selectable=True)
        self.save_histogram = save_button(self.theme, lambda: self._saved(self.histogram), kinds=PICTURES)
        controls = (self.kind, self.logarithmic, self.save_histogram)
        title = row(plain_label("Histogram", "strong"), 1, *controls, spacing=10)
        parts = (title, named(QFrame(), "line"), self.histogram, self.summary)
        column(*parts, spacing=7, margins=NO_MARGINS, within=self.histogram_card)
        return self.histogram_card

    def _on_block_wanted(self, first: object, left: object, digits: object) -> None:
        self.cells_wanted.emit(first, left, *BLOCK, digits)

    def _build_slice(self) -> QFrame:
        self.slice_card = QFrame()
        self.slice_bar = SliceBar()
        self.slice_bar.choice_made.connect(self.slice_wanted)
        self.heat_map = ChartView(self.theme)
        self.legend = plain_label("", "muted", wrap=True, selectable=True)
        self.table = CellTable()
        self.table.cells.block_wanted.connect(self._on_block_wanted)  # a lambda would outlive this page
        self.digits = named(CalmComboBox(), spoken="Digits of the values in the table")
        self.digits.addItems([text for text, _ in _DIGITS])
        self.digits.activated.connect(self._begin_table)
        self.copy = make_button("Copy cells", self.table.copy, kind="quiet", icon="copy", theme=self.theme)
        below = row(plain_label("Table", "strong"), 1, self.digits, self.copy, spacing=8)
        self.slice_title = plain_label("Slice", "strong")
        self.save_picture = save_button(self.theme, lambda: self._saved(self.heat_map), kinds=PICTURES)
        head = row(self.slice_title, 1, self.save_picture)
        self.slice_line = named(QFrame(), "line")
        parts = (head, self.slice_line, self.slice_bar, self.heat_map, self.legend, below, self.table)
        column(*parts, spacing=7, margins=NO_MARGINS, within=self.slice_card)
        return self.slice_card

    # --- what is shown --------------------------------------------------------------------------------------

    def show_screen(self, screen: Screen) -> None:
        """Show the values of the selected tensor, as far as they are known."""
        old, page = self._page, screen.values
        self._page, self._path = page, screen.path
        self.scan.show_scan(page.scan)
        self._show_head(page)
        if old is None or old.lines != page.lines:
            self._show_lines(page)
        if old is None or old.statistics is not page.statistics:
            self._show_histogram()
        if old is None or (old.row, old.choice) != (page.row, page.choice):
            self._begin_table()
        self._show_slice(page)
        if old is not None and old.row != page.row:
            self.verticalScrollBar().setValue(0)

    def _show_head(self, page: ValuesPage) -> None:
        is_one, runs = page.row is not None, page.progress is not None
        self.title.setText(page.title or "No tensor selected")
        self.facts.setText(page.facts if is_one else _NOTHING)
        message = page.refusal or page.error or page.saved
        self.message.setText(message)
        self.message.setVisible(bool(message) and not runs)
        self.bar.setVisible(runs)
        has_values = is_one and not page.refusal
        with focus_kept(self.cancel, self.compute, self.save, self.rank):
            self.compute.setVisible(has_values and not runs and page.statistics is None)
            self.cancel.setVisible(runs)
            self.rank.setVisible(page.has_rank and not runs)
            self.save.setVisible(has_values and not runs)
        if runs:
            self._on_tick()
            self._timer.start()
        else:
            self._timer.stop()

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

    def _show_slice(self, page: ValuesPage) -> None:
        choice, picture = page.choice, page.picture
        self.slice_card.setVisible(choice is not None)
        self.slice_bar.show_choice(page.shape, choice)
        for part in (self.slice_title, self.slice_line):
            part.setVisible(len(page.shape) > 1)
        text = _legend(picture) if picture is not None else page.picture_error
        self.legend.setText(text)
        self.legend.setVisible(bool(text))
        for shown in (self.heat_map, self.save_picture):
            shown.setVisible(picture is not None)
        if picture is not None and picture is not self._picture:
            self.heat_map.show_drawing(HeatMap(picture, text))
        self._picture = picture
        if page.cells is not None:
            self.table.cells.add(page.cells)

    def _begin_table(self) -> None:
        page = self._page
        if page is not None and page.choice is not None:
            self.table.cells.begin(_plane(page.shape, page.choice), _DIGITS[self.digits.currentIndex()][1])

    def _on_tick(self) -> None:
        progress = None if self._page is None else self._page.progress
        if progress is not None:
            self.facts.setText(self._rate.describe(progress) or progress.label)
            show_fraction(self.bar, progress.fraction)

    def _saved(self, chart: ChartView) -> Saved:
        return saved_charts((chart,), f"{chart.drawing.name} of {self.title.text()}", self._path)

    def _on_save(self) -> None:
        name = "" if self._page is None else self._page.title.replace("/", ".")
        proposed = str(PurePath(self._path).parent / f"{name}.npy")
        path, _ = QFileDialog.getSaveFileName(self, "Save as .npy", proposed, "NumPy arrays (*.npy)")
        if path:
            self.save_wanted.emit(path)


def _plane(shape: tuple[int, ...], choice: SliceChoice) -> tuple[int, int]:
    rows = 1 if choice.row is None else shape[choice.row]
    columns = 1 if choice.column is None else shape[choice.column]
    return rows, columns


def _legend(picture: Picture) -> str:
    """Return what the colors and cells of a picture mean."""
    limit = format_number(picture.limit)
    parts = [f"Blue is below zero, red above, up to \u00b1{limit}; NaN is yellow."]
    if picture.steps != (1, 1):
        block = f"{picture.steps[0]:,} \u00d7 {picture.steps[1]:,}"
        parts.append(f"Each cell is the one of {block} elements that is farthest from zero.")
    if picture.seen != picture.shape:
        seen, whole = (f"{rows:,} \u00d7 {columns:,}" for rows, columns in (picture.seen, picture.shape))
        parts.append(f"Only the first {seen} of {whole} are shown.")
    return " ".join(parts)
