"""The tree on the left: quick at a million rows, and usable with the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from PySide6.QtCore import QElapsedTimer, QItemSelectionModel, QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QDropEvent, QFocusEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QHeaderView, QMenu, QTreeView

from inspector.gui.theme.theme import Theme
from inspector.gui.tree.delegate import RowDelegate
from inspector.gui.tree.model import Column, TreeModel, cell_text
from inspector.gui.widgets.labels import blocked
from inspector.overriding import override
from inspector.report.tree import Tree

_FIRST_ROWS = 32  # about one page: how far a new tree unfolds by itself
_MATCH_ROWS = 400
_LEAST_NAME = 200
_MOST_ROWS = 5_000  # expanding a million rows would take seconds
_MOST_COPIED = 100_000
_TYPED_SEARCH_ROWS = 20_000
_WIDTHS = {Column.NAME: 220, Column.DEVICE: 196, Column.SHAPE: 132, Column.TYPE: 76, Column.SIZE: 78}


class TensorTreeView(QTreeView):
    """Shows a `Tree` and emits which node is chosen."""

    node_chosen = Signal(int)
    node_activated = Signal(int)
    menu_wanted = Signal(QPoint)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._model = TreeModel(self)
        self.setModel(self._model)
        self._delegate = RowDelegate(theme, lambda: self._model.tree, self)
        self.setItemDelegate(self._delegate)
        self._unfolded: set[int] = set()
        self._taking_focus = False
        self._typed = ""
        self._since_typed = QElapsedTimer()
        self._set_behavior()
        self._set_header()
        self.expanded.connect(self._on_expanded)
        self.collapsed.connect(self._on_collapsed)
        self.activated.connect(self._on_activated)
        self.selectionModel().currentChanged.connect(self._on_current_changed)

    def _set_behavior(self) -> None:
        self.setAccessibleName("Contents of the checkpoint")
        self.setUniformRowHeights(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setIndentation(18)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self.menu_wanted)
        self.setAcceptDrops(False)  # the window takes what is dropped
        self.viewport().setAcceptDrops(False)

    def _set_header(self) -> None:
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionsMovable(True)
        header.setMinimumSectionSize(48)
        header.setHighlightSections(False)
        header.setSortIndicatorShown(True)
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._on_header_menu)
        self.setSortingEnabled(True)
        for column, width in _WIDTHS.items():
            header.resizeSection(column, width)
        header.setSectionResizeMode(Column.NAME, QHeaderView.ResizeMode.Fixed)
        header.sectionResized.connect(self._on_section_resized)

    # What the window shows.

    def show_tree(self, tree: Tree | None) -> None:
        """Show another tree, unfolded over about one page."""
        with blocked(self):
            self._model.set_tree(tree)
            self._unfolded = set()
            self._delegate.matches = frozenset()
            if tree is not None:
                self._unfold(self._first_to_unfold())

    def show_matches(self, matches: tuple[int, ...] | None, *, only: bool) -> None:
        """Mark the matches of a search, and hide everything else if `only`."""
        with blocked(self):
            current = self.current_node()
            self._delegate.matches = frozenset(matches or ())
            self._model.set_filter(matches if only else None)
            unfolded = set(self._unfolded)  # a search unfolds what it shows; its end collapses that again
            filtered = matches is not None and only
            self._unfold(self._rows_to_unfold([0], _MATCH_ROWS) if filtered else unfolded)
            self._unfolded = unfolded
            self._set_current(current)

    def show_selected(self, node_id: int | None) -> None:
        """Make a node current and scroll to it."""
        if node_id != self.current_node():
            with blocked(self):
                self._set_current(node_id)

    def current_node(self) -> int | None:
        """Return the id of the current node."""
        return self._model.node_id(self.currentIndex()) or None

    def selected_nodes(self) -> list[int]:
        """Return the ids of the selected rows from top to bottom, as many as a spreadsheet can take."""
        rows = islice(self.selectionModel().selectedRows(), _MOST_COPIED)
        return [self._model.node_id(index) for index in sorted(rows, key=self._place)]

    def rows_as_tsv(self) -> str:
        """Return the selected rows for a spreadsheet: the visible columns in order, below their titles."""
        header = self.header()
        places = [header.logicalIndex(place) for place in range(header.count())]
        columns = [column for column in places if not header.isSectionHidden(column)]
        titles = [str(self._model.headerData(column, Qt.Orientation.Horizontal)) for column in columns]
        nodes = [self._model.node(node_id) for node_id in self.selected_nodes()]
        rows = [[cell_text(node, column).replace("\t", " ") for column in columns] for node in nodes]
        return "\n".join("\t".join(row) for row in [titles, *rows])

    # Folding.

    def expand_below(self) -> None:
        """Unfold the selected rows and all below them, or everything; up to a few thousand rows."""
        roots = [index.internalId() for index in self.selectionModel().selectedRows()] or [0]
        self._unfold(self._rows_to_unfold(roots, _MOST_ROWS))

    def collapse_all_rows(self) -> None:
        """Collapse everything."""
        self.collapseAll()
        self._unfolded = set()

    def _first_to_unfold(self) -> list[int]:
        """Return what a new tree unfolds: its root, and the children with tensors as far as they fit."""
        budget = _FIRST_ROWS - len(self._model.below(0))
        found = [0]
        for child in self._model.below(0)[:_FIRST_ROWS]:
            node = self._model.node(child)
            if node.tensors and 0 < len(node.children) <= budget:
                budget -= len(node.children)
                found.append(child)
        return found

    def _rows_to_unfold(self, roots: Iterable[int], budget: int) -> list[int]:
        """Return the nodes to unfold, level by level, while at most `budget` rows become visible."""
        level, found = list(roots), []
        while level:
            deeper: list[int] = []
            for node_id in level:
                children = self._model.below(node_id)
                if len(children) <= budget:
                    budget -= len(children)
                    found.append(node_id)
                    deeper += (child for child in children if self._model.node(child).children)
            level = deeper
        return found

    def _unfold(self, node_ids: Iterable[int]) -> None:
        """Expand nodes from the innermost out, so that rows are laid out once."""
        self.setUpdatesEnabled(False)
        for node_id in sorted(node_ids, reverse=True):
            index = self._model.index_of(node_id)
            if index.isValid():
                self.expand(index)
                self._unfolded.add(node_id)
        self.setUpdatesEnabled(True)

    def _set_current(self, node_id: int | None) -> None:
        index = QModelIndex() if node_id is None else self._model.index_of(node_id)
        flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
        self.selectionModel().setCurrentIndex(index, flags)
        if index.isValid():
            self.scrollTo(index)
        else:
            self.selectionModel().clear()

    # What the user does.

    @override
    def keyboardSearch(self, search: str) -> None:
        """Go to the next visible row that begins so; Qt's own search takes seconds at a million rows."""
        patience = QApplication.keyboardInputInterval()
        going_on = self._since_typed.isValid() and self._since_typed.elapsed() < patience
        self._typed = self._typed + search.casefold() if going_on else search.casefold()
        self._since_typed.start()
        for index in islice(self._visible_from(self.currentIndex(), include=going_on), _TYPED_SEARCH_ROWS):
            name = self._model.node(self._model.node_id(index)).name
            if name.casefold().startswith(self._typed):
                self.setCurrentIndex(index)
                return

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_name()

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._taking_focus = True  # which makes a row current that the user has not chosen
        super().focusInEvent(event)
        self._taking_focus = False

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        event.ignore()

    def _visible_from(self, start: QModelIndex, *, include: bool) -> Iterator[QModelIndex]:
        """Yield the visible rows from one row on, wrapping around at the end."""
        first = self._model.index(0, 0)
        index = start if start.isValid() and include else self.indexBelow(start)
        while index.isValid():
            yield index
            index = self.indexBelow(index)
        index = first
        while index.isValid() and index != start:
            yield index
            index = self.indexBelow(index)

    def _fit_name(self) -> None:
        """Stretch the name column over the room that the others leave; in a narrow view they scroll."""
        others = sum(self.columnWidth(column) for column in list(Column)[1:])
        self.header().resizeSection(Column.NAME, max(_LEAST_NAME, self.viewport().width() - others))

    def _on_section_resized(self, column: int, _old: int, _new: int) -> None:
        if column != Column.NAME:
            self._fit_name()

    def _place(self, index: QModelIndex) -> tuple[int, ...]:
        rows = []
        while index.isValid():
            rows.append(index.row())
            index = index.parent()
        return tuple(reversed(rows))

    def _on_expanded(self, index: QModelIndex) -> None:
        self._unfolded.add(self._model.node_id(index))

    def _on_collapsed(self, index: QModelIndex) -> None:
        self._unfolded.discard(self._model.node_id(index))

    def _on_activated(self, index: QModelIndex) -> None:
        self.node_activated.emit(self._model.node_id(index))

    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self._taking_focus:
            self.node_chosen.emit(self._model.node_id(current))

    def build_header_menu(self) -> QMenu:
        """Build the menu that hides and shows columns; the name stays."""
        menu = QMenu(self)
        for column in list(Column)[1:]:
            action = menu.addAction(str(self._model.headerData(column, Qt.Orientation.Horizontal)))
            action.setCheckable(True)
            action.setChecked(not self.isColumnHidden(column))
            action.setData(int(column))
        menu.triggered.connect(self._on_column_toggled)
        menu.aboutToHide.connect(menu.deleteLater)
        return menu

    def _on_header_menu(self, place: QPoint) -> None:
        self.build_header_menu().popup(self.header().mapToGlobal(place))

    def _on_column_toggled(self, action: QAction) -> None:
        self.setColumnHidden(int(action.data()), not action.isChecked())
