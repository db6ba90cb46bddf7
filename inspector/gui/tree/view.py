"""The tree on the left: quick at a million rows, and usable with the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from PySide6.QtCore import (
    QByteArray,
    QElapsedTimer,
    QItemSelectionModel,
    QModelIndex,
    QPoint,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QAction, QDropEvent, QFocusEvent, QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QTreeView

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.gui.theme.theme import Theme
from inspector.gui.tree.columns import WIDTHS, build_column_menu
from inspector.gui.tree.delegate import RowDelegate, indents_for
from inspector.gui.tree.folding import first_to_unfold, rows_to_unfold
from inspector.gui.tree.model import Column, TreeModel
from inspector.gui.tree.selection import branches_in_sight, nodes_of, rows_below
from inspector.gui.widgets.labels import blocked
from inspector.overriding import override
from inspector.report.outline.flat import Order
from inspector.report.query import Query
from inspector.report.tree import Tree

_MATCH_ROWS = 400
_LEAST_NAME = 180
_MOST_ROWS = 5_000  # expanding a million rows would take seconds
_MOST_COPIED = 100_000
_TYPED_SEARCH_ROWS = 20_000


class TensorTreeView(QTreeView):
    """Shows a `Tree` and emits which node is chosen."""

    node_chosen = Signal(int)
    sort_wanted = Signal(int, bool)
    rows_chosen = Signal(object)  # the nodes of several rows, or nothing of one
    node_activated = Signal(int)
    menu_wanted = Signal(QPoint)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._model = TreeModel(self)
        self._model.sort_wanted.connect(self.sort_wanted)
        self.setModel(self._model)
        self._delegate = RowDelegate(theme, self._model, self)
        self.setItemDelegate(self._delegate)
        self._unfolded: set[int] = set()
        self._before_search: set[int] | None = None
        self._taking_focus = False
        self._typed = ""
        self._since_typed = QElapsedTimer()
        self._set_behavior()
        self._set_header()
        self.expanded.connect(self._on_expanded)
        self.collapsed.connect(self._on_collapsed)
        self._is_name_fitted, self._is_fitting = True, False
        self._fitted = {Column.DEVICE, Column.VALUE}
        self._selection_pause = QTimer(self)
        self._selection_pause.setSingleShot(True)
        self._selection_pause.timeout.connect(self._tell_rows)
        self.selectionModel().currentChanged.connect(self._on_current_changed)
        self.selectionModel().selectionChanged.connect(self._on_selection_changed)

    def _set_behavior(self) -> None:
        self.setAccessibleName("Contents of the checkpoint")
        self.setUniformRowHeights(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setIndentation(0)  # the delegate paints indents and arrows
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
        for column, width in WIDTHS.items():
            header.resizeSection(column, width)
        header.sectionResized.connect(self._on_section_resized)
        header.sectionHandleDoubleClicked.connect(self._on_handle_double_clicked)

    # What the window shows.

    def show_tree(self, tree: Tree | None) -> None:
        """Show another tree, unfolded over about one page."""
        with blocked(self):
            self._model.set_tree(tree)
            self._unfolded, self._before_search = set(), None
            self._delegate.query, self._delegate.sparks = None, ()
            if tree is not None:
                self._unfold(first_to_unfold(self._model))
                self._fit_columns(tree)

    def show_sparks(self, sparks: tuple[tuple[int, ...], ...]) -> None:
        """Show a small histogram for each tensor, in the column of values; none before a scan."""
        self._delegate.sparks = sparks
        self._fit_columns(self._model.tree)
        self.viewport().update()

    def _fit_columns(self, tree: Tree) -> None:
        """Hide the columns that have nothing to say of a file, until the user chooses them."""
        empty = {
            Column.DEVICE: set(tree.colors) == {NO_DEVICE},
            Column.VALUE: not self._delegate.sparks and all(node < 0 for node in tree.value_nodes),
        }
        for column in self._fitted:
            self.setColumnHidden(column, empty[column])
        self._fit_name()

    def show_matches(
        self, matches: tuple[int, ...] | None, query: Query | None = None, *, only: bool
    ) -> None:
        """Mark the matches of a search and what matches in them, and hide everything else if `only`."""
        with blocked(self):
            current, filtered = self.current_node(), matches is not None and only
            if filtered and self._before_search is None:
                self._before_search = self._unfolded
            before = self._unfolded if self._before_search is None else self._before_search
            if not filtered:
                self._before_search = None
            self._model.set_filter(matches if filtered else None)
            self._model.set_matches(matches)
            self._delegate.query = query if matches is not None else None
            self._unfolded = set()  # a search unfolds what it shows; its end collapses that again
            self._unfold(rows_to_unfold(self._model, [0], _MATCH_ROWS)[0] if filtered else before)
            self._set_current(current)

    def show_flat(self, nodes: tuple[int, ...] | None, total: int = 0) -> None:
        """Show rows as one list, or the tree again, unfolded as it was."""
        with blocked(self):
            current = self.current_node()
            if nodes is None and not self._model.is_flat:
                return
            self._model.set_flat(nodes, total)
            if nodes is None:
                unfolded, self._unfolded = self._unfolded, set()
                found = rows_to_unfold(self._model, [0], _MATCH_ROWS)[0] if self._model.is_filtered else None
                self._unfold(unfolded if found is None else found)
            self._set_current(current)

    def show_selected(self, node_id: int | None) -> None:
        """Make a node current and scroll to it."""
        if node_id != self.current_node():
            with blocked(self):
                self._set_current(node_id)

    @property
    def order(self) -> Order:
        """How the rows are sorted."""
        return self._model.order

    def current_node(self) -> int | None:
        """Return the id of the current node."""
        return self._model.node_id(self.currentIndex()) or None

    def selected_nodes(self) -> list[int]:
        """Return the ids of the selected rows from top to bottom, as many as a spreadsheet can take."""
        found = nodes_of(self._model, self.selectionModel().selection())
        return self._model.in_order(found[:_MOST_COPIED])

    def rows_as_tsv(self) -> str:
        """Return the selected rows for a spreadsheet: the visible columns in order, below their titles."""
        header = self.header()
        places = [header.logicalIndex(place) for place in range(header.count())]
        columns = [column for column in places if not header.isSectionHidden(column)]
        titles = [str(self._model.headerData(column, Qt.Orientation.Horizontal)) for column in columns]
        text, nodes = self._model.text, self.selected_nodes()
        rows = [[text(node_id, column).replace("\t", " ") for column in columns] for node_id in nodes]
        return "\n".join("\t".join(row) for row in [titles, *rows])

    def name_of(self, node_id: int) -> str:
        """Return the name by which a user finds a row."""
        node = self._model.node(node_id)
        return node.path.rstrip("/.") or node.name

    def restore_columns(self, state: QByteArray) -> None:
        """Put the columns where they were; the name takes the room that they leave."""
        self.header().restoreState(state)
        self._is_name_fitted = True
        self._fit_name()

    # Folding.

    def expand_below(self) -> list[int]:
        """Unfold the selected rows and all below them, or everything; up to a few thousand rows.

        Returns:
            The rows that stay folded, since too much is below them.
        """
        found, left = rows_to_unfold(self._model, self.selected_nodes() or [0], _MOST_ROWS)
        self._unfold(found)
        return self._model.in_order(left)

    def collapse_all_rows(self) -> None:
        """Collapse everything."""
        self.collapseAll()
        self._unfolded = set()

    def _unfold(self, node_ids: Iterable[int]) -> None:
        """Expand nodes from the innermost out, so that rows are laid out once; below a list later."""
        if self._model.is_flat:
            self._unfolded.update(node_ids)
            return
        self.setUpdatesEnabled(False)
        for node_id in sorted(node_ids, reverse=True):
            index = self._model.index_of(node_id)
            if index.isValid():
                self.expand(index)
                self._unfolded.add(node_id)
        self.setUpdatesEnabled(True)

    def _set_current(self, node_id: int | None) -> None:
        self._model.reach(node_id or 0)
        index = QModelIndex() if node_id is None else self._model.index_of(node_id)
        flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
        self.selectionModel().setCurrentIndex(index, flags)
        if index.isValid():
            self.scrollTo(index)
        else:
            self.selectionModel().clear()

    # What the user does.

    @override
    def selectAll(self) -> None:
        """Select all rows in sight; Qt's own would compare each branch with all others."""
        flags = QItemSelectionModel.SelectionFlag
        branches = branches_in_sight(self._model, self._unfolded)
        self.selectionModel().select(rows_below(self._model, branches), flags.ClearAndSelect)
        self.viewport().update()

    @override
    def keyboardSearch(self, search: str) -> None:
        """Go to the next visible row that begins so; Qt's own search takes seconds at a million rows."""
        patience = QApplication.keyboardInputInterval()
        going_on = self._since_typed.isValid() and self._since_typed.elapsed() < patience
        self._typed = self._typed + search.casefold() if going_on else search.casefold()
        self._since_typed.start()
        for index in islice(self._visible_from(self.currentIndex(), include=going_on), _TYPED_SEARCH_ROWS):
            name = self._model.text(self._model.node_id(index), Column.NAME)
            if name.casefold().startswith(self._typed):
                self.setCurrentIndex(index)
                return

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.node_activated.emit(self._model.node_id(self.currentIndex()))
            return
        super().keyPressEvent(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self._fold_at(event):
            super().mousePressEvent(event)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if not self._fold_at(event):
            super().mouseDoubleClickEvent(event)

    def _fold_at(self, event: QMouseEvent) -> bool:
        """Fold or unfold the row whose arrow is pressed; return whether there is one."""
        place = event.position().toPoint()
        index = self.indexAt(place)
        if (
            event.button() != Qt.MouseButton.LeftButton
            or not index.isValid()
            or index.column() != Column.NAME
        ):
            return False
        arrow = self._delegate.arrow_of(self.visualRect(index), self._model.level(self._model.node_id(index)))
        if not arrow.contains(place) or not self._model.hasChildren(index):
            return False
        self.setExpanded(index, not self.isExpanded(index))
        return True

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        indents = indents_for(self._deepest_in_sight(), self.columnWidth(Column.NAME))
        if indents != self._delegate.indents:
            self._delegate.indents = indents
            self.viewport().update()  # rows that were moved by scrolling were painted with the last one
        super().paintEvent(event)

    def _deepest_in_sight(self) -> int:
        """Return the level of the deepest row that is visible."""
        deepest, index = 0, self.indexAt(QPoint(1, 1))
        while index.isValid() and self.visualRect(index).top() < self.viewport().height():
            deepest = max(deepest, self._model.level(self._model.node_id(index)))
            index = self.indexBelow(index)
        return deepest

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
        """Stretch the name column over the room that the others leave, until the user gives it a width."""
        if self._is_name_fitted:
            others = sum(self.columnWidth(column) for column in list(Column)[1:])
            self._is_fitting = True
            self.header().resizeSection(Column.NAME, max(_LEAST_NAME, self.viewport().width() - others))
            self._is_fitting = False

    def _on_section_resized(self, column: int, _old: int, _new: int) -> None:
        if column != Column.NAME:
            self._fit_name()
        elif not self._is_fitting:
            self._is_name_fitted = False

    def _on_handle_double_clicked(self, column: int) -> None:
        if column == Column.NAME:
            self._is_name_fitted = True
            self._fit_name()

    def _on_expanded(self, index: QModelIndex) -> None:
        self._unfolded.add(self._model.node_id(index))

    def _on_collapsed(self, index: QModelIndex) -> None:
        self._unfolded.discard(self._model.node_id(index))

    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self._taking_focus:
            self.node_chosen.emit(self._model.node_id(current))

    def _on_selection_changed(self) -> None:
        self._selection_pause.start(0)  # Ctrl+A changes it once for each branch

    def _tell_rows(self) -> None:
        nodes = self.selected_nodes()
        self.rows_chosen.emit(tuple(nodes) if len(nodes) > 1 else ())

    def build_header_menu(self) -> QMenu:
        """Build the menu that hides and shows columns; the name stays."""
        menu = build_column_menu(self)
        menu.triggered.connect(self._on_column_toggled)
        return menu

    def _on_header_menu(self, place: QPoint) -> None:
        self.build_header_menu().popup(self.header().mapToGlobal(place))

    def _on_column_toggled(self, action: QAction) -> None:
        self._fitted.discard(action.data())
        self.setColumnHidden(int(action.data()), not action.isChecked())
