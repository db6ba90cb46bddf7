"""The elements of the selected tensor: two dimensions of it as a heat map and as a table."""

from __future__ import annotations

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QComboBox, QFrame, QSpinBox, QTableView, QWidget

from inspector.gui.charts.saving import PICTURES, Saved, save_button
from inspector.gui.charts.values import HeatMap
from inspector.gui.charts.view import ChartView, saved_charts
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import MIDDLE, NO_MARGINS, column, row
from inspector.gui.widgets.controls import CalmComboBox, icon_button, number_field
from inspector.gui.widgets.flow import FlowLayout
from inspector.gui.widgets.labels import ElidedLabel, blocked, named, plain_label
from inspector.overriding import override
from inspector.session.screen import Screen
from inspector.session.values.page import CellBlock, Picture, SliceChoice, ValuesPage

# The values of a slice as a table, of which only the cells in sight are read.

BLOCK = (32, 16)
_MOST = (1 << 31) - 1
_MOST_KEPT, _MOST_COPIED = 256, 1 << 13
_CELL_HEIGHT, _LEAST_CELL, _CELL_PAD = 26, 56, 22
_NOT_READ = "\u2026"
_Index = QModelIndex | QPersistentModelIndex
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_NO_INDEX = QModelIndex()


class CellModel(QAbstractTableModel):
    """Cells that are asked for when they are first shown."""

    block_wanted = Signal(object, object, object)
    """The first row and column of a block, and the digits; numbers may be larger than Qt's."""
    read = Signal(object)

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
        self.read.emit(block)
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
        self.cells.read.connect(self._on_read)
        self.setTabKeyNavigation(False)
        self.horizontalHeader().setDefaultAlignment(_RIGHT)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setFixedHeight(_CELL_HEIGHT)
        self.verticalHeader().setHighlightSections(False)
        self.verticalHeader().setDefaultSectionSize(_CELL_HEIGHT)
        self.setWordWrap(False)

    def _on_reset(self) -> None:
        """Begin with columns as wide as the largest index; they grow with the values."""
        metrics = self.fontMetrics()
        last = metrics.horizontalAdvance(f"{max(self.cells.columnCount() - 1, 0):,}")
        self.horizontalHeader().setDefaultSectionSize(max(_LEAST_CELL, last + _CELL_PAD))

    def _on_read(self, block: CellBlock) -> None:
        header, advance = self.horizontalHeader(), self.fontMetrics().horizontalAdvance
        room = max((advance(text) for line in block.texts for text in line), default=0) + _CELL_PAD
        if room > header.defaultSectionSize():
            header.setDefaultSectionSize(room)

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
        self._flow = FlowLayout(self, spacing=10)
        self._row = named(CalmComboBox(), spoken="Dimension of the rows")
        self._column = named(CalmComboBox(), spoken="Dimension of the columns")
        self._indices: list[tuple[QWidget, QSpinBox]] = []
        self._timer = QTimer(self, interval=_WAIT_MS, singleShot=True)
        self._timer.timeout.connect(lambda: self.choice_made.emit(self._choice))
        for text, box in (("Rows", self._row), ("Columns", self._column)):
            box.setSizeAdjustPolicy(
                CalmComboBox.SizeAdjustPolicy.AdjustToContents
            )  # another tensor's is longer
            self._add(text, box)
        self._row.activated.connect(self._on_row)
        self._column.activated.connect(self._on_column)

    def show_choice(self, shape: tuple[int, ...], choice: SliceChoice | None) -> None:
        self.setVisible(len(shape) > 2 and choice is not None)
        if choice is None or (shape, choice) == (self._shape, self._choice):
            return
        if shape != self._shape:
            self._build(shape)
        self._shape, self._choice = shape, choice
        with blocked(self._row, self._column):
            self._row.setCurrentIndex(-1 if choice.row is None else choice.row)
            self._column.setCurrentIndex(-1 if choice.column is None else choice.column)
        for axis, (holder, box) in enumerate(self._indices):
            holder.setVisible(axis not in {choice.row, choice.column} and shape[axis] > 1)
            with blocked(box):
                box.setValue(choice.index[axis])
        self._flow.invalidate()

    def _build(self, shape: tuple[int, ...]) -> None:
        with blocked(self._row, self._column):
            for box in (self._row, self._column):
                _fill(box, shape)
        for holder, _ in self._indices:
            self._flow.removeWidget(holder)
            holder.deleteLater()
        self._indices = []
        for axis, size in enumerate(shape[:_MOST_DIMENSIONS]):
            spin = number_field(f"Index in dimension {axis}", 0, min(size - 1, _MOST_INDEX))
            spin.valueChanged.connect(self._on_index)
            self._indices.append((self._add(f"dim {axis} at", spin), spin))

    def _add(self, text: str, field: QWidget) -> QWidget:
        """Add a field with its label, which no line parts."""
        label, holder = plain_label(text, "muted"), QWidget()
        label.setBuddy(field)
        row((label, 0, MIDDLE), field, spacing=6, margins=NO_MARGINS, within=holder)
        self._flow.addWidget(holder)
        return holder

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


# Both of them, with what chooses the slice above.

_DIGITS = (("As saved", 0), ("3 digits", 3), ("6 digits", 6), ("9 digits", 9))
_MARGIN, _MAP_SHARE, _LEAST_MAP, _LEAST_TABLE = 16, 0.4, 24, 260
"""The share of the height that the heat map takes at most; in pixels, the least that it is drawn in, and what
it leaves for the lines above and below it, its axis, and some rows of the table."""
_LEAST_HEIGHT = 180


class ElementsPart(QWidget):
    """Shows the slice of a `ValuesPage`."""

    slice_wanted = Signal(object)
    cells_wanted = Signal(object, object, object, object, object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._page = ValuesPage()
        self._picture: Picture | None = None
        self._path = ""
        self.title = ElidedLabel("", "strong")
        self.slice_bar = SliceBar()
        self.slice_bar.choice_made.connect(self.slice_wanted)
        self.heat_map = ChartView(theme)
        self.heat_map.part_chosen.connect(self._on_part_chosen)
        self.note = ElidedLabel("", "muted")
        self.table = CellTable()
        self.table.cells.block_wanted.connect(self._on_block_wanted)  # a lambda would outlive this page
        self.digits = named(CalmComboBox(), spoken="Digits of the values in the table")
        self.digits.addItems([text for text, _ in _DIGITS])
        self.digits.activated.connect(self._begin_table)
        self.copy = icon_button(theme, "copy", "Copy the selected cells", self.table.copy)
        self.save_picture = save_button(theme, self._saved, kinds=PICTURES)
        head = row((self.title, 1), self.digits, self.copy, self.save_picture, spacing=8)
        parts = (head, self.slice_bar, self.heat_map, self.note, (self.table, 1))
        column(*parts, spacing=8, margins=(_MARGIN, 4, _MARGIN, 12), within=self)

    @property
    def is_drawn(self) -> bool:
        return self.heat_map.is_drawn or self.heat_map.isHidden()

    def show_screen(self, screen: Screen) -> None:
        old, page = self._page, screen.values
        self._page, self._path = page, screen.path
        self.title.setText(page.title)
        self.slice_bar.show_choice(page.shape, page.choice)
        self.note.setText(page.picture_note)
        self._draw()
        if (old.row, old.choice) != (page.row, page.choice):
            self._begin_table()
        if page.cells is not None:
            self.table.cells.add(page.cells)

    @override
    def minimumSizeHint(self) -> QSize:
        """Return what it takes without the heat map, which gives way."""
        return QSize(super().minimumSizeHint().width(), _LEAST_HEIGHT)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._picture = None
        self._draw()

    def _draw(self) -> None:
        """Draw the heat map, as large as the table leaves room for it."""
        page, picture = self._page, self._page.picture
        width = self.width() - 2 * _MARGIN
        others = 0 if self.slice_bar.isHidden() else self.slice_bar.heightForWidth(width)
        most = min(self.height() * _MAP_SHARE, self.height() - others - _LEAST_TABLE)
        is_shown = picture is not None and most >= _LEAST_MAP
        self.heat_map.setVisible(is_shown)
        self.save_picture.setVisible(is_shown)
        self.note.setVisible(bool(page.picture_note) and (is_shown or picture is None))
        if picture is not None and page.choice is not None and picture is not self._picture:
            self.heat_map.show_drawing(HeatMap(picture, page.choice, page.picture_note, (width, most)))
        self._picture = picture

    def _begin_table(self) -> None:
        if self._page.choice is not None:
            plane = _plane(self._page.shape, self._page.choice)
            self.table.cells.begin(plane, _DIGITS[self.digits.currentIndex()][1])

    def _on_block_wanted(self, first: object, left: object, digits: object) -> None:
        self.cells_wanted.emit(first, left, *BLOCK, digits)

    def _on_part_chosen(self, part: int) -> None:
        """Go to the elements in the table that a cell of the heat map stands for."""
        picture = self._page.picture
        if picture is not None:
            cell = divmod(part, picture.columns)
            at, beside = (number * step for number, step in zip(cell, picture.steps, strict=True))
            self.table.setCurrentIndex(self.table.cells.index(at, beside))

    def _saved(self) -> Saved:
        return saved_charts(
            (self.heat_map,), f"{self.heat_map.drawing.name} of {self.title.text()}", self._path
        )


def _plane(shape: tuple[int, ...], choice: SliceChoice) -> tuple[int, int]:
    rows = 1 if choice.row is None else shape[choice.row]
    columns = 1 if choice.column is None else shape[choice.column]
    return rows, columns
