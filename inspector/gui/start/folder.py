"""The page of a folder: its checkpoints with devices, what becomes of a load here, size and time."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from inspector.gui.theme.icons import draw_svg
from inspector.gui.theme.theme import Theme
from inspector.gui.tree.delegate import ROW_HEIGHT, paint_strip
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import ElidedLabel, blocked, named, plain_label, plain_tooltip
from inspector.gui.widgets.marks import SPOKEN_TONES
from inspector.gui.widgets.progress import ProgressBar, show_fraction
from inspector.overriding import override
from inspector.session.folder import FOLDER_COLUMNS, FolderColumn, FolderPage, FolderRow
from inspector.session.screen import Screen
from inspector.units import escape_text

_COLUMNS: tuple[FolderColumn, ...] = tuple(FOLDER_COLUMNS)
_Index = QModelIndex | QPersistentModelIndex
_ROLE = Qt.ItemDataRole
_NOWHERE = QModelIndex()
_WIDTHS: dict[FolderColumn, int] = {"devices": 190, "size": 88, "time": 136}
_NAME_SHARE = 0.27
_PAD, _STRIP_WIDTH, _STRIP_HEIGHT, _DISC, _SIGN = 8, 64, 8, 14, 10
_RIGHT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
_HINT = "Double-click or Enter opens; select two to compare them, or several for a series."
_TWO = 2
_LAST = 1 << 30  # the CPU, -1, comes last, as in the tree


class FolderModel(QAbstractTableModel):
    """The rows of a `FolderPage`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: tuple[FolderRow, ...] = ()

    def show_rows(self, rows: tuple[FolderRow, ...]) -> bool:
        """Show rows; return whether they are the same ones in the same order, with more said of them."""
        old, self.rows = self.rows, rows
        if [row.path for row in old] != [row.path for row in rows]:
            self.beginResetModel()
            self.endResetModel()
            return False
        changed = [place for place, (one, other) in enumerate(zip(old, rows, strict=True)) if one != other]
        if changed:
            self.dataChanged.emit(self.index(changed[0], 0), self.index(changed[-1], len(_COLUMNS) - 1))
        return True

    @override
    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self.rows)

    @override
    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        return len(_COLUMNS)

    @override
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole) -> object:
        if orientation == Qt.Orientation.Horizontal and role == _ROLE.DisplayRole:
            return FOLDER_COLUMNS[_COLUMNS[section]]
        is_size = role == _ROLE.TextAlignmentRole and _COLUMNS[section] == "size"
        return _RIGHT if is_size else None

    @override
    def data(self, index: _Index, role: int = _ROLE.DisplayRole) -> object:
        row, name = self.rows[index.row()], _COLUMNS[index.column()]
        if role == _ROLE.DisplayRole:
            return row.text(name)
        if role == _ROLE.ToolTipRole:
            return plain_tooltip(escape_text(row.path) if name == "name" else row.text(name))
        if role == _ROLE.AccessibleTextRole and name == "name":
            said = f"{SPOKEN_TONES[row.tone]}: {row.verdict}" if row.is_read else "not read yet"
            return f"{row.name}, {said}, {row.text('devices')}, {row.text('size')}, {row.text('time')}"
        return None


class FolderDelegate(QStyledItemDelegate):
    """Paints devices as a strip in proportion and as text, and the verdict behind the sign of its tone."""

    def __init__(self, theme: Theme, model: FolderModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = model
        self.colors: dict[str, int] = {}

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(48, max(ROW_HEIGHT, option.fontMetrics.height() + 8))

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        row, name = self._model.rows[index.row()], _COLUMNS[index.column()]
        option.widget.style().drawPrimitive(
            QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, option.widget
        )
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(option.rect).adjusted(_PAD, 0, -_PAD, 0)
        if name == "devices" and row.devices:
            ranked = sorted((self.colors.get(one, -1) % _LAST, size) for one, size in row.devices)
            device = self._theme.tokens.device
            parts = [(device(-1 if color == _LAST - 1 else color), size) for color, size in ranked]
            place = QRectF(area.left(), area.center().y() - _STRIP_HEIGHT / 2, _STRIP_WIDTH, _STRIP_HEIGHT)
            paint_strip(painter, place, parts)
            area.setLeft(place.right() + _PAD)
        if name == "verdict" and row.is_read:
            area = self._paint_tone(painter, area, row)
        ink = "text" if name in {"name", "verdict"} and row.is_read else "muted"
        painter.setPen(QPen(self._theme.tokens.color(ink)))
        painter.setFont(option.font)
        mode = Qt.TextElideMode.ElideMiddle if name == "name" else Qt.TextElideMode.ElideRight
        text = option.fontMetrics.elidedText(row.text(name), mode, int(area.width()))
        painter.drawText(area, _RIGHT if name == "size" else _LEFT, text)
        painter.restore()

    def _paint_tone(self, painter: QPainter, area: QRectF, row: FolderRow) -> QRectF:
        tokens, disc = self._theme.tokens, QRectF(area.left(), area.center().y() - _DISC / 2, _DISC, _DISC)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tokens.color(f"{row.tone}_fill"))
        painter.drawEllipse(disc)
        sign = draw_svg(
            f"tone-{row.tone}", tokens.color("on_fill"), _SIGN, painter.device().devicePixelRatioF()
        )
        painter.drawPixmap(
            disc.topLeft() + (disc.bottomRight() - disc.topLeft()) * (1 - _SIGN / _DISC) / 2, sign
        )
        return area.adjusted(_DISC + 6, 0, 0, 0)


class FolderPageWidget(QWidget):
    """Shows the `FolderPage` of a screen."""

    files_wanted = Signal(object)  # lists of paths: a str would lose bytes of names that are no UTF-8
    comparison_wanted = Signal(object)
    series_wanted = Signal(object)
    sort_wanted = Signal(str, bool)
    stop_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._title = ElidedLabel("", "title", Qt.TextElideMode.ElideMiddle)
        self._path = ElidedLabel("", "small", Qt.TextElideMode.ElideMiddle)
        self._summary = plain_label("", "", wrap=True, selectable=True)
        self._open = make_button("Open", self._on_open, kind="primary", icon="open", theme=theme)
        self._compare = make_button("Compare", self.compare, icon="swap", theme=theme)
        self._compare.setToolTip("Compare the two that are selected (Ctrl+D)")
        self._series = make_button("Series", self._on_series, icon="memory", theme=theme)
        self._series.setToolTip("Draw how far the selected ones went, or all of the folder")
        self._model = FolderModel(self)
        self.table = self._build_table()
        self._bar = ProgressBar("Progress of reading the folder")
        self._reading = plain_label("", "muted")
        self._stop = make_button("Cancel", self.stop_wanted)
        self._hint = ElidedLabel(_HINT, "muted")
        self.first_focus = self.table
        buttons = row(self._open, self._compare, self._series, spacing=8)
        head = row((column(self._title, self._path, spacing=2), 1), buttons, spacing=12)
        foot = row((self._hint, 1), self._reading, (self._bar, 1), self._stop, spacing=10)
        parts = (head, self._summary, (self.table, 1), foot)
        column(*parts, spacing=8, margins=(14, 12, 14, 8), within=self)
        self._on_selection()

    def show_screen(self, screen: Screen) -> None:
        page = screen.folder
        if page is None:
            return
        self._title.setText(escape_text(PurePath(screen.path).name) or screen.path)
        self._path.setText(escape_text(screen.path))
        self._summary.setText(page.summary)
        self._show_rows(page)
        self._hint.setVisible(not page.reading)
        for part in (self._bar, self._reading, self._stop):
            part.setVisible(bool(page.reading))
        self._reading.setText(page.reading)
        show_fraction(self._bar, page.done)

    def _show_rows(self, page: FolderPage) -> None:
        self._delegate.colors = page.colors
        kept, current, place = self._selected(), self._current(), self.table.verticalScrollBar().value()
        if not self._model.show_rows(page.rows):
            with blocked(self.table.selectionModel()):
                self._select(kept, current)
            self.table.verticalScrollBar().setValue(place)
        header, (name, descending) = self.table.header(), page.order
        with blocked(header):
            order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
            header.setSortIndicator(_COLUMNS.index(name), order)
        self._on_selection()

    def _select(self, paths: list[str], current: str) -> None:
        """Select rows again that stand elsewhere now; at first the first."""
        wanted, selection = set(paths), self.table.selectionModel()
        flags = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
        for place, one in enumerate(self._model.rows):
            if one.path in wanted:
                selection.select(self._model.index(place, 0), flags)
            if one.path == current or (not current and place == 0):
                selection.setCurrentIndex(
                    self._model.index(place, 0), QItemSelectionModel.SelectionFlag.NoUpdate
                )

    def _build_table(self) -> QTreeView:
        table = FolderTable()
        table.setModel(self._model)
        self._delegate = FolderDelegate(self._theme, self._model, table)
        table.setItemDelegate(self._delegate)
        table.selectionModel().selectionChanged.connect(self._on_selection)
        table.doubleClicked.connect(self._on_open)
        table.opened.connect(self._on_open)
        for name, width in _WIDTHS.items():
            table.header().resizeSection(_COLUMNS.index(name), width)
        table.header().setSectionResizeMode(_COLUMNS.index("verdict"), QHeaderView.ResizeMode.Stretch)
        table.header().sortIndicatorChanged.connect(self._on_sort)
        return table

    def _selected(self) -> list[str]:
        rows = sorted(index.row() for index in self.table.selectionModel().selectedRows())
        return [self._model.rows[place].path for place in rows if place < len(self._model.rows)]

    def _current(self) -> str:
        place = self.table.currentIndex().row()
        return self._model.rows[place].path if 0 <= place < len(self._model.rows) else ""

    def _usable(self) -> list[str]:
        known = {row.path for row in self._model.rows if row.can_open}
        return [path for path in self._selected() if path in known]

    # What the user does.

    def _on_selection(self) -> None:
        count = len(self._usable())
        self._open.setEnabled(count > 0)
        self._compare.setEnabled(count == _TWO)
        whole = sum(row.can_open for row in self._model.rows)
        self._series.setEnabled(max(count, 0 if count else whole) >= _TWO)
        self._series.setText("Series" if count else "Series of all")

    def _on_open(self) -> None:
        if paths := self._usable():
            self.files_wanted.emit(paths)

    def compare(self) -> None:
        if len(paths := self._usable()) == _TWO:
            self.comparison_wanted.emit(paths)

    def _on_series(self) -> None:
        paths = self._usable() or [row.path for row in self._model.rows if row.can_open]
        if len(paths) >= _TWO:
            self.series_wanted.emit(tuple(paths))

    def _on_sort(self, place: int, order: Qt.SortOrder) -> None:
        self.sort_wanted.emit(_COLUMNS[place], order == Qt.SortOrder.DescendingOrder)


class FolderTable(QTreeView):
    """The list of the checkpoints; Enter opens those that are selected."""

    opened = Signal()

    def __init__(self) -> None:
        super().__init__()
        named(self, spoken="Checkpoints of the folder")
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setSortingEnabled(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.header().setStretchLastSection(False)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self.header().resizeSection(_COLUMNS.index("name"), round(self.viewport().width() * _NAME_SHARE))
        super().resizeEvent(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.opened.emit()
        else:
            super().keyPressEvent(event)
