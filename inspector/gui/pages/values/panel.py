"""The page of values: the figures of the selected tensor, its histogram, a slice, and the scan of all."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeyEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFrame,
    QLabel,
    QSpinBox,
    QTableView,
    QWidget,
)

from inspector.gui.charts.saving import PICTURES, Saved, save_button
from inspector.gui.charts.values import HeatMap, Histogram
from inspector.gui.charts.view import ChartView, saved_charts
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import NO_MARGINS, TOP, TOP_LEFT, column, row
from inspector.gui.widgets.cards import ScrollPanel, card_row
from inspector.gui.widgets.controls import CalmComboBox, make_button, number_field
from inspector.gui.widgets.flow import FlowLayout
from inspector.gui.widgets.labels import (
    ElidedLabel,
    PathButton,
    blocked,
    clear_layout,
    focus_kept,
    named,
    plain_label,
)
from inspector.gui.widgets.progress import ProgressBar, Rate
from inspector.overriding import override
from inspector.progress import Progress
from inspector.report.words.values import format_number
from inspector.session.screen import Screen
from inspector.session.values.page import CellBlock, Picture, ScanPage, ScanRow, SliceChoice, ValuesPage

# The values of a slice as a table, of which only the cells in sight are read.

BLOCK = (32, 16)
_MOST = (1 << 31) - 1
_MOST_KEPT, _MOST_COPIED = 256, 1 << 13
_HEIGHT = 290
_CELL = (136, 28)
_NOT_READ = "\u2026"
_Index = QModelIndex | QPersistentModelIndex
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_NO_INDEX = QModelIndex()


class CellModel(QAbstractTableModel):
    """Cells that are asked for when they are first shown."""

    block_wanted = Signal(object, object, object)
    """The first row and column of a block, and the digits; numbers may be larger than Qt's."""

    def __init__(self) -> None:
        super().__init__()
        self._shape = (0, 0)
        self._digits = 0
        self._blocks: dict[tuple[int, int], tuple[tuple[str, ...], ...]] = {}
        self._missing: tuple[int, int] | None = None
        self._timer = QTimer(self, interval=0, singleShot=True)
        self._timer.timeout.connect(self._ask)

    def begin(self, shape: tuple[int, int], digits: int) -> None:
        self.beginResetModel()
        self._shape, self._digits = shape, digits
        self._blocks.clear()
        self._missing = None
        self.endResetModel()

    def add(self, block: CellBlock) -> None:
        if block.digits != self._digits:
            return
        while len(self._blocks) >= _MOST_KEPT:
            self._blocks.pop(next(iter(self._blocks)))
        self._blocks[block.row // BLOCK[0], block.column // BLOCK[1]] = block.texts
        last = self.index(
            min(block.row + BLOCK[0], self.rowCount()) - 1,
            min(block.column + BLOCK[1], self.columnCount()) - 1,
        )
        self.dataChanged.emit(self.index(block.row, block.column), last)

    def text(self, row: int, column: int) -> str | None:
        """Return the text of a cell; None, and ask for it, where it was not read yet."""
        place = row // BLOCK[0], column // BLOCK[1]
        texts = self._blocks.get(place)
        if texts is None:
            self._missing = place
            self._timer.start()
            return None
        return texts[row % BLOCK[0]][column % BLOCK[1]]

    def _ask(self) -> None:
        if self._missing is not None:
            row, column = self._missing
            self.block_wanted.emit(row * BLOCK[0], column * BLOCK[1], self._digits)

    @override
    def rowCount(self, parent: _Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else min(self._shape[0], _MOST)

    @override
    def columnCount(self, parent: _Index = _NO_INDEX) -> int:
        return 0 if parent.isValid() else min(self._shape[1], _MOST)

    @override
    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(index.row(), index.column()) or _NOT_READ
        return _RIGHT if role == Qt.ItemDataRole.TextAlignmentRole else None

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        return f"{section:,}" if role == Qt.ItemDataRole.DisplayRole else None


class CellTable(QTableView):
    """Shows a slice; Ctrl+C copies the selected cells as a table."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = CellModel()
        self.setModel(self.cells)
        named(self, spoken="Values of the slice")
        self.cells.modelReset.connect(self._on_reset)
        self.setTabKeyNavigation(False)
        self.horizontalHeader().setDefaultSectionSize(_CELL[0])
        self.horizontalHeader().setDefaultAlignment(_RIGHT)
        self.horizontalHeader().setHighlightSections(False)
        self.verticalHeader().setHighlightSections(False)
        self.verticalHeader().setDefaultSectionSize(_CELL[1])
        self.setWordWrap(False)

    def _on_reset(self) -> None:
        self.setFixedHeight(min(_HEIGHT, (self.cells.rowCount() + 2) * _CELL[1] + 16))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        super().keyPressEvent(event)

    def copy(self) -> bool:
        """Copy the selected cells; return False, and ask for the rest, while some are not read yet."""
        chosen = sorted((index.row(), index.column()) for index in self.selectedIndexes()[:_MOST_COPIED])
        texts: dict[int, list[str]] = {}
        for at, beside in chosen:
            text = self.cells.text(at, beside)
            if text is None:
                return False
            texts.setdefault(at, []).append(text)
        if texts:
            QGuiApplication.clipboard().setText("\n".join("\t".join(line) for line in texts.values()))
        return bool(texts)


# Chooses which two dimensions of a tensor are looked at, and where in the others.

_MOST_INDEX = (1 << 31) - 1
_MOST_DIMENSIONS = 16
_WAIT_MS = 150


class SliceBar(QFrame):
    """A drop-down list for each of the two dimensions, and a field for the index in each other."""

    choice_made = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._shape: tuple[int, ...] = ()
        self._choice = SliceChoice(row=None, column=None, index=())
        self._flow = FlowLayout(self)
        self._row = named(CalmComboBox(), spoken="Dimension of the rows")
        self._column = named(CalmComboBox(), spoken="Dimension of the columns")
        self._indices: list[tuple[QLabel, QSpinBox]] = []
        self._timer = QTimer(self, interval=_WAIT_MS, singleShot=True)
        self._timer.timeout.connect(lambda: self.choice_made.emit(self._choice))
        for text, box in (("Rows", self._row), ("Columns", self._column)):
            box.setSizeAdjustPolicy(
                CalmComboBox.SizeAdjustPolicy.AdjustToContents
            )  # another tensor's is longer
            label = plain_label(text, "muted")
            self._add(label, box)
        self._row.activated.connect(self._on_row)
        self._column.activated.connect(self._on_column)

    def show_choice(self, shape: tuple[int, ...], choice: SliceChoice | None) -> None:
        self.setVisible(len(shape) > 1 and choice is not None)
        if choice is None or (shape, choice) == (self._shape, self._choice):
            return
        if shape != self._shape:
            self._build(shape)
        self._shape, self._choice = shape, choice
        with blocked(self._row, self._column):
            self._row.setCurrentIndex(-1 if choice.row is None else choice.row)
            self._column.setCurrentIndex(-1 if choice.column is None else choice.column)
        for axis, (label, box) in enumerate(self._indices):
            is_free = axis not in {choice.row, choice.column} and shape[axis] > 1
            label.setVisible(is_free)
            box.setVisible(is_free)
            with blocked(box):
                box.setValue(choice.index[axis])
        self._flow.invalidate()

    def _build(self, shape: tuple[int, ...]) -> None:
        with blocked(self._row, self._column):
            for box in (self._row, self._column):
                _fill(box, shape)
        for label, index in self._indices:
            for widget in (label, index):
                self._flow.removeWidget(widget)
                widget.deleteLater()
        self._indices = []
        for axis, size in enumerate(shape[:_MOST_DIMENSIONS]):
            spin = number_field(f"Index in dimension {axis}", 0, min(size - 1, _MOST_INDEX))
            spin.valueChanged.connect(self._on_index)
            label = plain_label(f"dim {axis} at", "muted")
            self._add(label, spin)
            self._indices.append((label, spin))

    def _add(self, label: QLabel, field: QWidget) -> None:
        """Add a field with its label, which stands in the middle of the line."""
        label.setBuddy(field)
        label.setMinimumHeight(field.sizeHint().height())
        self._flow.addWidget(label)
        self._flow.addWidget(field)

    def _on_row(self, axis: int) -> None:
        column = self._choice.row if axis == self._choice.column else self._choice.column
        self._choose(SliceChoice(row=axis, column=column, index=self._choice.index))

    def _on_column(self, axis: int) -> None:
        row = self._choice.column if axis == self._choice.row else self._choice.row
        self._choose(SliceChoice(row=row, column=axis, index=self._choice.index))

    def _on_index(self) -> None:
        index = tuple(box.value() for _, box in self._indices)
        index += self._choice.index[len(index) :]
        self._choice = SliceChoice(row=self._choice.row, column=self._choice.column, index=index)
        self._timer.start()

    def _choose(self, choice: SliceChoice) -> None:
        self.choice_made.emit(choice)


def _fill(box: QComboBox, shape: tuple[int, ...]) -> None:
    box.clear()
    box.addItems([f"dim {axis} ({size:,})" for axis, size in enumerate(shape[:_MOST_DIMENSIONS])])


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
        self.bar = ProgressBar("Progress of reading the values")
        self.bar.looked.connect(self._on_looked)
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

    def _on_looked(self, progress: Progress) -> None:
        self.facts.setText(self._rate.describe(progress) or progress.label)

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
    limit = format_number(picture.limit)
    parts = [f"Blue is below zero, red above, up to \u00b1{limit}; NaN is yellow."]
    if picture.steps != (1, 1):
        block = f"{picture.steps[0]:,} \u00d7 {picture.steps[1]:,}"
        parts.append(f"Each cell is the one of {block} elements that is farthest from zero.")
    if picture.seen != picture.shape:
        seen, whole = (f"{rows:,} \u00d7 {columns:,}" for rows, columns in (picture.seen, picture.shape))
        parts.append(f"Only the first {seen} of {whole} are shown.")
    return " ".join(parts)
