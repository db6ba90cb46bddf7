"""The map of modules: the treemap, the way to what it shows, what colors it, and a legend that filters."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QTreeView,
    QWidget,
)

from inspector.gui.charts.saving import Saved, as_bytes, legend, save_button
from inspector.gui.pages.memory.treemap_view import TreemapView
from inspector.gui.theme.icons import draw_icons, name_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.controls import CalmComboBox, make_button
from inspector.gui.widgets.flow import FlowLayout
from inspector.gui.widgets.labels import (
    ElidedLabel,
    blocked,
    clear_layout,
    describe,
    named,
    plain_label,
    plain_tooltip,
)
from inspector.gui.widgets.marks import color_icon
from inspector.overriding import override
from inspector.report.charts.areas import PROPERTIES, Kind, Property
from inspector.report.charts.bars import filter_for
from inspector.report.charts.modules import Crumb, ModuleMap
from inspector.report.charts.tables import TITLES, MapLine, map_csv, table_of
from inspector.session.screen import Screen
from inspector.units import format_nbytes

_FIGURES = (1, 2, 3)
_KINDS_WIDTH = 130
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class MapTable(QTreeView):
    """A line for each row of the map; Return shows what is in it, Backspace goes back."""

    node_chosen = Signal(int)
    root_wanted = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._page: ModuleMap | None = None
        self._lines: tuple[MapLine, ...] = ()
        self._is_showing = False
        self._model = QStandardItemModel(0, len(TITLES), self)
        self._model.setHorizontalHeaderLabels(TITLES)
        self.setObjectName("mapTable")
        self.setModel(self._model)
        self.setAccessibleName("Map of modules as a table")
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(len(TITLES) - 1, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(len(TITLES) - 1, _KINDS_WIDTH)
        self.selectionModel().currentChanged.connect(self._on_current)
        self.doubleClicked.connect(lambda index: self._go_into(index.row()))

    def show_map(self, page: ModuleMap, selected: int | None) -> None:
        self._is_showing = True
        if page != self._page:
            self._fill(page)
        shown = (at for at, line in enumerate(self._lines) if line.node == selected and line.is_row)
        place = next(shown, None)
        if place is not None and place != self.currentIndex().row():
            self.setCurrentIndex(self._model.index(place, 0))
        self._is_showing = False

    def _fill(self, page: ModuleMap) -> None:
        self._page, self._lines = page, table_of(page)
        self._model.removeRows(0, self._model.rowCount())
        self._model.setHorizontalHeaderLabels([*TITLES[:-1], page.coloring.by.capitalize()])
        for line in self._lines:
            items = [QStandardItem(text) for text in line.texts]
            for place in _FIGURES:
                items[place].setTextAlignment(_RIGHT)
            for item, title in zip(items, TITLES, strict=True):
                item.setToolTip(plain_tooltip(item.text()))
                item.setAccessibleText(f"{title}: {item.text() or 'none'}")
            self._model.appendRow(items)
        for place in _FIGURES:
            self._model.horizontalHeaderItem(place).setTextAlignment(_RIGHT)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._is_showing = True  # Qt makes a row current that the user has not chosen
        super().focusInEvent(event)
        self._is_showing = False

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Backspace:
            if self._page is not None and self._page.root:
                self.root_wanted.emit(self._page.areas.tree.nodes[self._page.root].parent)
        elif event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._go_into(self.currentIndex().row())
        else:
            super().keyPressEvent(event)

    def _on_current(self, current: QModelIndex, _: QModelIndex) -> None:
        line = self._line(current.row())
        if line is not None and line.is_row and not self._is_showing:
            self.node_chosen.emit(line.node)

    def _go_into(self, place: int) -> None:
        line = self._line(place)
        if line is not None and line.can_enter:
            self.root_wanted.emit(line.node)

    def _line(self, place: int) -> MapLine | None:
        return self._lines[place] if 0 <= place < len(self._lines) else None


# The table beside the map.


_TITLE = "Map of modules"
_MOST_CRUMBS = 4
_CRUMB_PAD = 5
_CRUMB_WIDTH = 120
_MOST_LEGEND, _MOST_WORDY = 18, 6
_BY = {"device": "Device", "dtype": "Dtype", "role": "Role"}


class MapPart(QWidget):
    """Shows the map of a screen."""

    coloring_wanted = Signal(str)
    root_wanted = Signal(int)
    node_chosen = Signal(int)
    query_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._page: ModuleMap | None = None
        self._path = ""
        self._selected: int | None = None
        self._filters: list[tuple[QPushButton, str]] = []
        self._crumbs, self._legend, self._notes = QHBoxLayout(), FlowLayout(), column(spacing=2)
        self._by = CalmComboBox()
        self._by.setAccessibleName("Color the map by")
        self._by.addItems([_BY[name] for name in PROPERTIES])
        self._by.activated.connect(lambda place: self.coloring_wanted.emit(PROPERTIES[place]))
        self.view = TreemapView(theme)
        self.view.node_chosen.connect(self.node_chosen)
        self.view.root_wanted.connect(self.root_wanted)
        self.view.pointed.connect(self._on_pointed)
        self.view.narrowed.connect(self._on_narrowed)
        self.table = MapTable()
        self.table.node_chosen.connect(self.node_chosen)
        self.table.root_wanted.connect(self.root_wanted)
        self._as_table = _table_button()
        self._as_table.toggled.connect(self._on_as_table)
        self._pointed = ElidedLabel("", "small")
        self._lay_out()
        draw_icons((self._as_table,), theme.tokens)
        theme.changed.connect(self._show_legend)

    def _lay_out(self) -> None:
        label = plain_label("Color by", "muted")
        label.setBuddy(self._by)
        self._crumbs.setSpacing(4)
        save = save_button(self._theme, self.saved_map)
        head = row(self._crumbs, 1, label, self._by, self._as_table, save, spacing=10)
        self._views = QStackedWidget()
        self._views.addWidget(self.view)
        self._views.addWidget(self.table)
        parts = (head, (self._views, 1), self._pointed, self._legend, self._notes)
        column(*parts, spacing=8, margins=(16, 4, 16, 12), within=self)

    @property
    def is_drawn(self) -> bool:
        return self._page is not None

    def show_screen(self, screen: Screen) -> None:
        page = screen.module_map
        if page is None:
            return
        self._path = screen.path
        is_other, self._page = page != self._page, page
        if is_other:
            self._show_page(page)
        for button, query in self._filters:
            button.setChecked(bool(query) and screen.query == query)
        self.view.show_map(page, screen.selected, screen.matches)
        self._selected = screen.selected
        self._show_table()

    def _show_table(self) -> None:
        if self._page is not None and self._as_table.isChecked():
            self.table.show_map(self._page, self._selected)

    def _on_as_table(self, is_table: bool) -> None:  # noqa: FBT001  # Qt passes it by position
        had_focus = self.view.hasFocus() or self.table.hasFocus()
        self._show_table()
        self._views.setCurrentIndex(int(is_table))
        draw_icons((self._as_table,), self._theme.tokens)
        if had_focus:
            (self.table if is_table else self.view).setFocus()

    def saved_map(self) -> Saved:
        page, view, tokens = self._page, self.view, self._theme.tokens

        def make(kind: str) -> bytes:
            if page is None:
                return b""
            if kind == "csv":
                return map_csv(page, view.picture.cells).encode()
            by, font, width = page.coloring.by, view.small_font(), view.width()
            entries = [
                (view.color_of(one.color, by), f"{one.label}  {format_nbytes(one.nbytes)}")
                for one in page.coloring.kinds
            ]
            way = " / ".join(crumb.label for crumb in page.crumbs)
            below = legend(entries, width, tokens, font)
            parts = [(f"{way}: {page.headline}", view.as_picture()), ("", below)]
            return as_bytes(parts, width, tokens, view.font(), title=_TITLE, kind=kind)

        return Saved(title=_TITLE, source=self._path, make=make)

    def _show_page(self, page: ModuleMap) -> None:
        self._show_crumbs(page)
        self._pointed.setText(page.headline)
        self._show_legend()
        with blocked(self._by):
            self._by.setCurrentIndex(PROPERTIES.index(page.coloring.by))
        clear_layout(self._notes)
        for note in page.notes:
            self._notes.addWidget(plain_label(note, "small", wrap=True))

    def _show_crumbs(self, page: ModuleMap) -> None:
        clear_layout(self._crumbs)
        crumbs = list(page.crumbs)
        if len(crumbs) > _MOST_CRUMBS:
            hidden = crumbs[1 : 2 - _MOST_CRUMBS]
            crumbs[1 : 2 - _MOST_CRUMBS] = [hidden[-1]._replace(label="\u2026")]
        way = " / ".join(crumb.label for crumb in page.crumbs)
        rests = self.view.rests
        last = rests[-1] if rests else self._cut(crumbs[-1].label)
        for crumb in crumbs if rests else crumbs[:-1]:
            self._crumbs.addWidget(self._crumb_button(crumb, way))
            self._crumbs.addWidget(plain_label("\u203a", "muted"))
        end = plain_label(last, "strong")
        end.setContentsMargins(_CRUMB_PAD if self._crumbs.count() else 0, 0, 0, 0)  # as a button has it
        self._crumbs.addWidget(end)

    def _on_narrowed(self) -> None:
        if self._page is not None:
            self._show_crumbs(self._page)

    def _crumb_button(self, crumb: Crumb, way: str) -> QPushButton:
        button = make_button(self._cut(crumb.label), kind="crumb")
        describe(button, way)
        button.setAccessibleName(f"Show {crumb.label} in the map")
        button.clicked.connect(lambda: self._on_crumb(crumb.node))
        return button

    def _on_crumb(self, node: int) -> None:
        if self._page is not None and node == self._page.root:
            self.view.leave_rests()
        else:
            self.root_wanted.emit(node)

    def _cut(self, label: str) -> str:
        return self.fontMetrics().elidedText(label, Qt.TextElideMode.ElideMiddle, _CRUMB_WIDTH)

    def _show_legend(self) -> None:
        if self._page is None:
            return
        clear_layout(self._legend)
        self._filters = []
        kinds, by = self._page.coloring.kinds, self._page.coloring.by
        values = [kind.value or "" for kind in kinds]
        total = sum(kind.nbytes for kind in kinds) or 1
        for kind in kinds[:_MOST_LEGEND]:
            share = kind.nbytes / total
            button = self._legend_button(by, kind, share, is_tight=len(kinds) > _MOST_WORDY)
            self._filters.append((button, filter_for(by, kind.value, values)))
            self._legend.addWidget(button)
        for button, query in self._filters:
            button.setEnabled(bool(query))
            button.clicked.connect(partial(self._on_filter_clicked, query))  # without whether it is pressed
        more = kinds[_MOST_LEGEND:]
        if more:
            rest = plain_label(
                f"{len(more)} more, {format_nbytes(sum(kind.nbytes for kind in more))}", "small"
            )
            lines = "\n".join(f"{kind.label}: {format_nbytes(kind.nbytes)}" for kind in more)
            describe(rest, lines)
            self._legend.addWidget(rest)

    def _legend_button(self, by: Property, kind: Kind, share: float, *, is_tight: bool) -> QPushButton:
        percent = f"{share:.0%}" if share >= 0.01 else "<1%"
        words = f"{kind.label}  {format_nbytes(kind.nbytes)}  {percent}"
        button = make_button(f"{kind.label}  {percent}" if is_tight else words, kind="legend")
        button.setAccessibleName(words)
        button.setIcon(color_icon(self.view.color_of(kind.color, by)))
        button.setCheckable(True)
        describe(button, f"{words}. Click to find it in the tree, and to dim all else here")
        return button

    def _on_filter_clicked(self, query: str) -> None:
        is_pressed = any(button.isChecked() for button, its in self._filters if its == query)
        self.query_wanted.emit(query if is_pressed else "")

    def _on_pointed(self, words: str) -> None:
        self._pointed.setText(words or (self._page.headline if self._page is not None else ""))


def _table_button() -> QToolButton:
    button = named(QToolButton(), spoken="Show the map as a table")
    describe(button, "Show the map as a table: Return goes into a row, Backspace back")
    button.setProperty("kind", "icon")
    button.setCheckable(True)
    name_icon(button, "table")
    return button
