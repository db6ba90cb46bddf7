"""The tree on the left: quick at a million rows, and usable with the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QElapsedTimer,
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPoint,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QDropEvent, QFocusEvent, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QTreeView, QWidget

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.gui.tasks import Turns
from inspector.gui.theme.theme import Theme
from inspector.gui.tree.columns import TreeColumns, rows_to_measure
from inspector.gui.tree.delegate import RowDelegate, indent_for, least_width
from inspector.gui.tree.dragging import RowDrag
from inspector.gui.tree.list_model import ListModel
from inspector.gui.tree.model import Column, TreeModel
from inspector.gui.tree.selection import Rows, branches_in_sight, nodes_of, rows_below, rows_of
from inspector.gui.widgets.labels import blocked
from inspector.overriding import override
from inspector.quoting import pasted_cell
from inspector.report.damage import Marks
from inspector.report.outline.flat import Order
from inspector.report.tree import Tree
from inspector.units import unescaped_path

if TYPE_CHECKING:
    from inspector.report.query import Query
    from inspector.session.device_map import Landing

# Which rows are unfolded: of a new tree, of what a search found, and on demand.

ROWS_A_TURN = 500
"""So many rows Qt lays out in a few milliseconds."""
_LOOKS = 4
_MATCH_ROWS = 400


def first_to_unfold(model: TreeModel) -> list[int]:
    """Return what a new tree unfolds: its top, and a row that stands alone there, which would look empty."""
    found, below = [0], model.first_below(0, ROWS_A_TURN + 1)
    while len(below) == 1 and model.shape.has_below(below[0]):
        only, below = below[0], model.first_below(below[0], ROWS_A_TURN + 1)
        if len(below) <= ROWS_A_TURN:
            found.append(only)
    return found


def rows_to_unfold(model: TreeModel, roots: Iterable[int], budget: int) -> tuple[list[int], list[int]]:
    """Return the nodes to unfold, level by level, while `budget` rows are not exceeded, and the others.

    What is too large is looked at too, as far as it takes to see that; after some of it, the rest is left.
    """
    level = list(roots)
    found: list[int] = []
    left: list[int] = []
    looks = _LOOKS * budget
    while level:
        deeper: list[int] = []
        for node_id in level:
            if not model.shape.has_below(node_id):
                continue
            children = model.first_below(node_id, budget + 1) if 0 < budget <= looks else []
            looks -= len(children)
            if not 0 < len(children) <= budget:
                left.append(node_id)
                continue
            budget -= len(children)
            found.append(node_id)
            deeper += filter(model.shape.has_below, children)
        level = deeper
    return found, left


def matches_to_unfold(model: TreeModel) -> list[int]:
    """Return the nodes to unfold of what a search found: some pages, and always the way to the first."""
    found, _ = rows_to_unfold(model, [0], _MATCH_ROWS)
    above = -1 if model.first_match is None else model.shape.parents[model.first_match]
    while above > 0:
        found.append(above)
        above = model.shape.parents[above]
    return found


class Unfolder(QObject):
    """Unfolds rows of a view in slices, and remembers which are unfolded.

    Qt asks for each row that it lays out: thousands at once would hold up the window.
    """

    ended = Signal()

    def __init__(self, view: QTreeView, model: TreeModel) -> None:
        super().__init__(view)
        self._view = view
        self._model = model
        self._turns = Turns(self)
        self.rows: set[int] = set()
        """All rows that are unfolded, or will be."""

    @property
    def is_busy(self) -> bool:
        return self._turns.is_busy

    def forget(self) -> set[int]:
        """Return which rows are unfolded, and unfold no more of them."""
        rows, self.rows = self.rows, set()
        self._turns.stop()
        self._view.setUpdatesEnabled(True)
        return rows

    def unfold(self, node_ids: Iterable[int]) -> None:
        """Unfold more rows: a slice now, and the others in the turns of the event loop that follow."""
        self.remember(node_ids)
        self._turns.begin(self._slices(sorted(self.rows)))

    def remember(self, node_ids: Iterable[int]) -> None:
        """Take rows as unfolded; the root always is."""
        self.rows.update(node_id for node_id in node_ids if node_id)

    def _slices(self, node_ids: list[int]) -> Iterator[None]:
        """Unfold from top to bottom; within a slice from the innermost out, so that it is laid out once."""
        self._view.setUpdatesEnabled(False)
        rows, begin = 0, 0
        for place, node_id in enumerate(node_ids):
            index = self._model.index_of(node_id)
            if index.isValid() and not self._view.isExpanded(index):
                rows += self._model.rowCount(index)
            if rows >= ROWS_A_TURN:
                self._expand(node_ids[begin : place + 1])
                rows, begin = 0, place + 1
                yield
        self._expand(node_ids[begin:])
        self._view.setUpdatesEnabled(True)
        self.ended.emit()

    def _expand(self, node_ids: list[int]) -> None:
        for node_id in reversed(node_ids):
            if node_id in self.rows:  # and was not folded meanwhile
                index = self._model.index_of(node_id)
                if index.isValid():
                    self._view.expand(index)


# What a view does around the sorting of its rows, so that thousands of unfolded ones do not hold it up.
#
# Qt lays all unfolded rows out anew, and follows each selected one. Here the tree is sorted while it is
# folded; then its branches are unfolded in slices, and the same rows are selected as ranges.

_MANY_ROWS = 300


class Sorting(QObject):
    """Folds a view before its model is sorted, and unfolds it afterwards, where much is unfolded."""

    def __init__(self, view: TensorTreeView, model: TreeModel, folds: Unfolder) -> None:
        super().__init__(view)
        self._view = view
        self._model = model
        self._folds = folds
        self._before: tuple[int | None, list[int]] | None = None
        model.sort_begun.connect(self._on_begun)
        model.sort_ended.connect(self._on_ended)
        folds.ended.connect(self.end)

    @property
    def is_busy(self) -> bool:
        return self._before is not None

    def leave(self) -> None:
        self._before = None

    def end(self) -> None:
        if self._before is None:
            return
        (current, picked), self._before = self._before, None
        with blocked(self._view):
            self._view.set_current(current)
            rows, flags = rows_of(self._model, picked), QItemSelectionModel.SelectionFlag
            self._view.selectionModel().select(rows, flags.ClearAndSelect)

    def _on_begun(self) -> None:
        if self._view.model() is not self._model or not self._is_much():
            return
        if self._before is None:  # else the last sorting is not done yet
            picked = nodes_of(self._model, self._view.selectionModel().selection())
            self._before = self._view.current_node(), picked
        unfolded = self._folds.forget()
        with blocked(self._view):
            self._view.selectionModel().clear()
            self._view.collapseAll()
        self._folds.remember(unfolded)

    def _is_much(self) -> bool:
        rows = 0
        for node_id in self._folds.rows:
            rows += len(self._model.first_below(node_id, _MANY_ROWS))
            if rows >= _MANY_ROWS:
                return True
        return False

    def _on_ended(self) -> None:
        if self._before is not None:
            self._folds.unfold(())


# The selected rows as a spreadsheet takes them.

ROWS_A_PART = 25
"""A row that was never in sight takes 50 µs, a slice of a long list half a millisecond."""


def tsv_parts(view: QTreeView, rows: Rows, node_ids: Sequence[int]) -> Iterator[list[str]]:
    """Yield the lines of rows, some at once: the visible columns in order, below their titles."""
    header = view.header()
    places = [header.logicalIndex(place) for place in range(header.count())]
    columns = [column for column in places if not header.isSectionHidden(column)]
    lines = ["\t".join(str(rows.headerData(column, Qt.Orientation.Horizontal)) for column in columns)]
    for begin in range(0, len(node_ids), ROWS_A_PART):
        for node_id in node_ids[begin : begin + ROWS_A_PART]:
            texts = (pasted_cell(rows.text(node_id, column)) for column in columns)
            lines.append("\t".join(texts))
        yield lines
        lines = []
    if lines:
        yield lines


_MOST_ROWS = 5_000  # expanding a million rows would take seconds
_MOST_COPIED = 100_000
_TYPED_SEARCH_ROWS = 20_000
_MANY_RANGES = 8


class TensorTreeView(QTreeView):
    """Shows a `Tree` and emits which node is chosen."""

    node_chosen = Signal(int)
    sort_wanted = Signal(int, bool)
    rows_chosen = Signal(object)  # the nodes of several rows, or nothing of one
    node_activated = Signal(int)
    menu_wanted = Signal(QPoint)
    rows_copied = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = TreeModel(self)
        self._list = ListModel(self._model, self)
        self._list.sort_wanted.connect(self.sort_wanted)
        self._rows: Rows = self._model
        self.setModel(self._model)
        self._delegate = RowDelegate(theme, self._model, self)
        self.setItemDelegate(self._delegate)
        self._folds = Unfolder(self, self._model)
        self._copying = Turns(self)
        self._sorting = Sorting(self, self._model, self._folds)
        self._before_search: set[int] | None = None
        self._taking_focus = False
        self._untold: int | None = None
        self._deepest = 0
        self._typed = ""
        self._since_typed = QElapsedTimer()
        self.drag = RowDrag(self, theme)
        self._set_behavior()
        self.columns = TreeColumns(self)
        self.header().sectionResized.connect(self._indent)
        self._folds.ended.connect(self._on_unfolded)
        self.expanded.connect(self._on_expanded)
        self.collapsed.connect(self._on_collapsed)
        self._selection_pause = QTimer(self)
        self._selection_pause.setSingleShot(True)
        self._selection_pause.timeout.connect(self._tell_rows)
        self._follow_selection()

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

    # What the window shows.

    def show_tree(self, tree: Tree | None) -> None:
        with blocked(self):
            self._use(self._model)
            self._sorting.leave()
            self._folds.forget()
            self._model.set_tree(tree)
            self._before_search = None
            self._delegate.query, self._delegate.sparks = None, ()
            self._deepest = self.columns.least = 0
            if tree is not None:
                self._folds.unfold(first_to_unfold(self._model))
                self._fit_columns(tree)

    def show_sparks(self, sparks: tuple[tuple[int, ...], ...]) -> None:
        self._delegate.sparks = sparks
        self._fit_columns(self._model.tree)
        self.viewport().update()

    def show_marks(self, marks: Marks) -> None:
        self._model.marks = marks
        self._fit_columns(self._model.tree)
        self.viewport().update()

    def show_landing(self, landing: Landing | None) -> None:
        """Show beside each device where the map sends it."""
        self._model.landing = landing
        self._fit_columns(self._model.tree)
        self.viewport().update()

    def show_scalars(self, scalars: Mapping[int, str]) -> None:
        self._model.scalars = scalars
        self._fit_columns(self._model.tree)
        self.viewport().update()

    def _fit_columns(self, tree: Tree) -> None:
        empty = {
            Column.DEVICE: set(tree.colors) == {NO_DEVICE},
            Column.VALUE: not (self._delegate.sparks or self._model.scalars or self._model.marks)
            and all(node < 0 for node in tree.value_nodes),
        }
        rows: Iterable[int] = rows_to_measure(len(tree.nodes), self._model.first_below, self._folds.rows)
        if self._rows is self._list:
            rows = self._list.sample()
        needs = self._delegate.needs_of(rows)
        self.columns.show_needs(empty, needs, has_marks=bool(self._model.marks))

    def show_matches(
        self, matches: tuple[int, ...] | None, query: Query | None = None, *, only: bool
    ) -> None:
        """Mark the matches of a search and what matches in them, and hide everything else if `only`."""
        with blocked(self):
            self._sorting.end()
            current, filtered = self.current_node(), matches is not None and only
            if filtered and self._before_search is None:
                self._before_search = self._folds.rows
            before = self._folds.forget() if self._before_search is None else self._before_search
            if not filtered:
                self._before_search = None
            self._model.set_filter(matches if filtered else None)
            self._model.set_matches(matches)
            self._delegate.query = query if matches is not None else None
            self._folds.forget()  # a search unfolds what it shows; its end collapses that again
            self._unfold(matches_to_unfold(self._model) if filtered else before)
            self.set_current(current)

    def show_flat(self, nodes: tuple[int, ...] | None, total: int = 0) -> None:
        with blocked(self):
            self._sorting.end()
            current = self.current_node()
            if nodes is None and self._rows is self._model:
                return
            if nodes is not None:
                self._list.set_rows(nodes, total)
            self._use(self._model if nodes is None else self._list)
            if nodes is None:
                unfolded = self._folds.forget()
                self._unfold(matches_to_unfold(self._model) if self._model.is_filtered else unfolded)
            self._fit_columns(self._model.tree)
            self.set_current(current)

    def _use(self, rows: Rows) -> None:
        if rows is not self._rows:
            self._rows, before = rows, self.selectionModel()
            self._delegate.rows = rows
            self.setModel(rows)
            before.deleteLater()
            self._follow_selection()

    def _follow_selection(self) -> None:
        self.selectionModel().currentChanged.connect(self._on_current_changed)
        self.selectionModel().selectionChanged.connect(self._on_selection_changed)

    def show_selected(self, node_id: int | None) -> None:
        if node_id != self.current_node():
            with blocked(self):
                self.set_current(node_id)

    @property
    def order(self) -> Order:
        return self._model.order

    def current_node(self) -> int | None:
        return self._rows.node_id(self.currentIndex()) or None

    def selected_nodes(self) -> list[int]:
        """Return the ids of the selected rows from top to bottom, as many as a spreadsheet can take."""
        found = nodes_of(self._rows, self.selectionModel().selection())[:_MOST_COPIED]
        return found if self._rows is self._list else self._model.in_order(found)

    def rows_as_tsv(self) -> str:
        return "\n".join(line for part in tsv_parts(self, self._rows, self.selected_nodes()) for line in part)

    def copy_rows(self) -> None:
        """Copy them, thousands of them in slices; `rows_copied` tells what is to be copied."""
        self._copying.begin(self._copied(self.selected_nodes()))

    def _copied(self, nodes: list[int]) -> Iterator[None]:
        lines: list[str] = []
        for part in tsv_parts(self, self._rows, nodes):
            lines += part
            if len(lines) <= len(nodes):  # below the titles
                yield
        self.rows_copied.emit("\n".join(lines))

    def name_of(self, node_id: int) -> str:
        node = self._model.node(node_id)
        return unescaped_path(node.path.rstrip("/.")) or node.name

    # Folding.

    def expand_below(self) -> list[int]:
        """Unfold the selected rows and all below them, or everything; up to a few thousand rows.

        Returns:
            The rows that stay folded, since too much is below them.
        """
        if self._rows is self._list:
            return []
        found, left = rows_to_unfold(self._model, self.selected_nodes() or [0], _MOST_ROWS)
        self._folds.unfold(found)
        return self._model.in_order(left)

    def collapse_all_rows(self) -> None:
        self._folds.forget()
        self.collapseAll()
        self._sorting.end()

    def _unfold(self, node_ids: Iterable[int]) -> None:
        if self._rows is self._list:
            self._folds.remember(node_ids)
        else:
            self._folds.unfold(node_ids)

    def set_current(self, node_id: int | None) -> None:
        index = QModelIndex() if node_id is None else self._rows.index_of(node_id)
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
        branches = [0] if self._rows is self._list else branches_in_sight(self._model, self._folds.rows)
        self.selectionModel().select(rows_below(self._rows, branches), flags.ClearAndSelect)

    @override
    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        # Qt looks where each of these rows stands, to paint those alone.
        if selected.count() + deselected.count() <= _MANY_RANGES:
            super().selectionChanged(selected, deselected)
            return
        updates = self.updatesEnabled()
        self.setUpdatesEnabled(False)
        super().selectionChanged(selected, deselected)
        self.setUpdatesEnabled(updates)

    @override
    def keyboardSearch(self, search: str) -> None:
        """Go to the next visible row that begins so; Qt's own search takes seconds at a million rows."""
        patience = QApplication.keyboardInputInterval()
        going_on = self._since_typed.isValid() and self._since_typed.elapsed() < patience
        self._typed = self._typed + search.casefold() if going_on else search.casefold()
        self._since_typed.start()
        for index in islice(self._visible_from(self.currentIndex(), include=going_on), _TYPED_SEARCH_ROWS):
            name = self._rows.text(self._rows.node_id(index), Column.NAME)
            if name.casefold().startswith(self._typed):
                self.setCurrentIndex(index)
                return

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.node_activated.emit(self._rows.node_id(self.currentIndex()))
            return
        super().keyPressEvent(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self._fold_at(event):
            super().mousePressEvent(event)
            self.drag.press(event)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self.drag.move(event):
            super().mouseMoveEvent(event)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if not self._fold_at(event):
            super().mouseDoubleClickEvent(event)

    def _fold_at(self, event: QMouseEvent) -> bool:
        place = event.position().toPoint()
        index = self.indexAt(place)
        if (
            event.button() != Qt.MouseButton.LeftButton
            or not index.isValid()
            or index.column() != Column.NAME
        ):
            return False
        arrow = self._delegate.arrow_of(self.visualRect(index), self._rows.level(self._rows.node_id(index)))
        if not arrow.contains(place) or not self._rows.hasChildren(index):
            return False
        self.setExpanded(index, not self.isExpanded(index))
        return True

    def _on_unfolded(self) -> None:
        self._deepen(max((self._model.level(node_id) + 1 for node_id in self._folds.rows), default=0))

    def _deepen(self, deepest: int) -> None:
        """Make room for the indents of so many levels; it stays when they are folded again."""
        if deepest > self._deepest:
            self._deepest = deepest
            self.columns.least = least_width(deepest)
            self.columns.fit()
            self._indent()

    def _indent(self) -> None:
        """Indent rows as the column of names has room; this depends on nothing that scrolling changes."""
        step = indent_for(self._deepest, self.columnWidth(Column.NAME))
        if step != self._delegate.step:
            self._delegate.step = step
            self.viewport().update()

    @override
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            QTimer.singleShot(0, self, self._measure_anew)  # when the header has the new font, too

    def _measure_anew(self) -> None:
        self._fit_columns(self._model.tree)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.columns.fit()

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._taking_focus = True  # which makes a row current that the user has not chosen
        super().focusInEvent(event)
        self._taking_focus = False

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        event.ignore()

    def _visible_from(self, start: QModelIndex, *, include: bool) -> Iterator[QModelIndex]:
        first = self._rows.index(0, 0)
        index = start if start.isValid() and include else self.indexBelow(start)
        while index.isValid():
            yield index
            index = self.indexBelow(index)
        index = first
        while index.isValid() and index != start:
            yield index
            index = self.indexBelow(index)

    def _on_expanded(self, index: QModelIndex) -> None:
        node_id = self._model.node_id(index)
        self._folds.rows.add(node_id)
        self._deepen(self._model.level(node_id) + 1)

    def _on_collapsed(self, index: QModelIndex) -> None:
        self._folds.rows.discard(self._model.node_id(index))

    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            node_id = self._rows.node_id(current)
            self._untold = node_id if self._taking_focus else None
            if not self._taking_focus:
                self.node_chosen.emit(node_id)

    def _on_selection_changed(self) -> None:
        self._selection_pause.start(0)  # Ctrl+A changes it once for each branch

    def _tell_rows(self) -> None:
        if self._sorting.is_busy:  # the same rows will be selected again
            return
        nodes = self.selected_nodes()
        if nodes == [self._untold]:  # it was current by the focus alone, and a click changed nothing of that
            self._untold = None
            self.node_chosen.emit(nodes[0])
        self.rows_chosen.emit(tuple(nodes) if len(nodes) > 1 else ())
