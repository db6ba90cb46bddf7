"""The values of a slice as a table, of which only the cells in sight are read."""

from __future__ import annotations

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QTableView

from inspector.gui.widgets.labels import named
from inspector.overriding import override
from inspector.session.values.page import CellBlock

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
        """Show another slice, or the same with other digits."""
        self.beginResetModel()
        self._shape, self._digits = shape, digits
        self._blocks.clear()
        self._missing = None
        self.endResetModel()

    def add(self, block: CellBlock) -> None:
        """Take cells that were read."""
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
        """Take no more room than a few rows need."""
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
        for row, column in chosen:
            text = self.cells.text(row, column)
            if text is None:
                return False
            texts.setdefault(row, []).append(text)
        if texts:
            QGuiApplication.clipboard().setText("\n".join("\t".join(line) for line in texts.values()))
        return bool(texts)
