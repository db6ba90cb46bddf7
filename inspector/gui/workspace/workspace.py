"""What is shown while a file is open: the verdict, the device map, then the tree and the pages.

Nothing above the tree changes its height, so that the tree stands still; what has more to say opens over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, QRect, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QSplitter, QToolButton, QWidget

from inspector.gui.commands import Commands
from inspector.gui.theme.icons import draw_icons, name_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.tree.painting import PaintWaiter
from inspector.gui.tree.view import TensorTreeView
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import ElidedLabel, describe, named, plain_label
from inspector.gui.workspace.around import Around
from inspector.overriding import override
from inspector.report.outline.flat import Order
from inspector.units import cut_text

if TYPE_CHECKING:
    from inspector.session.controller import Session
    from inspector.session.screen import Screen, SearchPage


# The left part of the workspace: the tree, and the facts of what is selected in it.

# What stands over the tree when a search finds nothing: the word that is no good, and a way out.

_WIDTH = 440
_MOST_QUERY = 30


class NothingFound(QFrame):
    """A card with the reason, and buttons for the query that was meant and for none."""

    query_wanted = Signal(str)
    end_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        named(self, "nothingFound", spoken="Nothing found")
        self._instead = ""
        self._why = plain_label("", wrap=True, selectable=True)
        self._search = make_button("Search", self._on_search, kind="primary")
        self._end = make_button("Clear", self.end_wanted.emit)
        describe(self._end, "End the search and show all rows again")
        title = plain_label("Nothing found", "strong")
        buttons = row(self._search, self._end, 1, spacing=8)
        self._box = column(title, self._why, buttons, spacing=8, margins=(16, 14, 16, 14), within=self)
        self.fit(_WIDTH)
        self.hide()

    def show_search(self, page: SearchPage | None) -> None:
        self.setVisible(page is not None and bool(page.why))
        if page is None:
            return
        self._why.setText(page.why)
        self.setAccessibleDescription(page.why)
        self._instead = page.instead
        self._search.setText(f"Search {cut_text(page.instead, _MOST_QUERY)}".replace("&", "&&"))
        self._search.setVisible(bool(page.instead))
        self.fit(self.width())

    def fit(self, width: int) -> None:
        width = min(width, _WIDTH)
        self._box.activate()
        height = max(self._box.totalHeightForWidth(width), self._box.totalSizeHint().height())
        self.setFixedSize(width, height)

    def _on_search(self) -> None:
        self.query_wanted.emit(self._instead)


# The strip below the tree: the facts of what is selected, in sight whatever page is open.

_NOTHING = "Nothing selected"
_HINT = "Select a row to see its facts here."
_BETWEEN = "  \u00b7  "


class FactsStrip(QFrame):
    """Two lines: the path with a button that copies it, and the facts."""

    copy_wanted = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._pattern = ""
        named(self, "factsStrip", spoken="Facts of the selection")
        self._title = ElidedLabel("", "strong", Qt.TextElideMode.ElideMiddle)
        self._facts = ElidedLabel("", "muted")
        self._copy = named(QToolButton(), spoken="Copy the path of the selected row")
        describe(self._copy, "Copy the path, as --exclude and path: rules take it")
        self._copy.setProperty("kind", "icon")
        name_icon(self._copy, "copy")
        self._copy.clicked.connect(self._on_copy)
        lines = column(self._title, self._facts, spacing=1)
        row((lines, 1), self._copy, spacing=6, margins=(10, 4, 4, 4), within=self)
        self.show_strip(None)

    def show_screen(self, screen: Screen) -> None:
        self.show_strip(screen)

    def show_strip(self, screen: Screen | None) -> None:
        strip = None if screen is None else screen.strip
        self._pattern = "" if strip is None else strip.pattern
        self._title.setText(_NOTHING if strip is None else strip.title)
        self._facts.setText(_HINT if strip is None else _BETWEEN.join(strip.facts))
        self.setAccessibleDescription("" if strip is None else f"{strip.title}: {', '.join(strip.facts)}")
        self._copy.setEnabled(bool(self._pattern))
        draw_icons((self._copy,), self._theme.tokens)

    def _on_copy(self) -> None:
        self.copy_wanted.emit(self._pattern)


_TREE_PANE_LEAST_WIDTH = 320
_SPACING = 6
_TREE_PANE_MARGIN = 12


class TreePane(QWidget):
    """Lays the tree and its strip out, and connects them."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tree = TensorTreeView(theme, self)
        self.painted = PaintWaiter(self.tree.viewport())
        self.strip = FactsStrip(theme, self)
        self.nothing = NothingFound()
        self.setMinimumWidth(_TREE_PANE_LEAST_WIDTH)
        self.setFocusProxy(self.tree)
        cell = QGridLayout()
        cell.addWidget(self.tree, 0, 0)
        cell.addWidget(self.nothing, 0, 0, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter)
        column((cell, 1), self.strip, spacing=_SPACING, margins=(0, 0, 0, 0), within=self)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.nothing.fit(self.width() - 2 * _TREE_PANE_MARGIN)

    def connect_commands(self, commands: Commands) -> None:
        self.tree.node_activated.connect(commands.on_node_activated)
        self.tree.rows_copied.connect(commands.copy)
        self.tree.drag.told.connect(commands.tell)
        self.strip.copy_wanted.connect(commands.copy)
        self.nothing.end_wanted.connect(commands.on_find_end)

    def connect_to(self, session: Session) -> None:
        self.tree.node_chosen.connect(session.select)
        self.tree.rows_chosen.connect(session.pick)
        self.tree.sort_wanted.connect(lambda column, down: session.list_flat(Order(column, down)))
        self.nothing.query_wanted.connect(session.search)
        self.tree.drag.connect_to(session)

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        """Show a screen, as far as it differs from the last one."""
        if old is None or old.tree is not new.tree:
            self.tree.show_tree(new.tree)
            old = None
        if new.tree is not None and (old is None or old.sparks is not new.sparks):
            self.tree.show_sparks(new.sparks)
        if new.tree is not None and (old is None or old.scalars is not new.scalars):
            self.tree.show_scalars(new.scalars or {})
        if new.tree is not None and (old is None or old.row_marks is not new.row_marks):
            self.tree.show_marks(new.row_marks)
        if new.tree is not None and (old is None or old.landing is not new.landing):
            self.tree.show_landing(new.landing)
        if old is None or old.strip is not new.strip:
            self.strip.show_screen(new)
        self.tree.drag.show_taken(new.taken)
        if old is None or old.search is not new.search:
            self.nothing.show_search(new.search)

    def show_found(self, old: Screen | None, new: Screen, *, only: bool) -> None:
        found = old is None or old.matches is not new.matches
        if found:
            self.tree.show_matches(new.matches, new.searched, only=only)
        if found or old is None or old.flat is not new.flat:
            found = True
            self.tree.show_flat(*(new.flat or (None, 0)))
        # The end of a search, or of a list, brings back rows that were hidden.
        if found or old is None or old.selected != new.selected:
            self.tree.show_selected(new.selected)

    def forget(self) -> None:
        self.painted.forget()
        self.tree.drag.connect_to(None)
        self.tree.show_tree(None)
        self.strip.show_strip(None)
        self.nothing.show_search(None)


_MARGIN = 8
_SIDE = 10
_SHARES = (58, 42)
_LEAST_WIDTH = 360


class Workspace(QWidget):
    """Lays the parts out; the window connects them."""

    def __init__(self, theme: Theme, commands: Commands, parent: QWidget | None = None) -> None:
        super().__init__(parent)  # each part is made where it stays: to move one restyles all that is in it
        self.setObjectName("workspace")
        above = QWidget(self)  # made first: Tab goes from what is in it to the tree
        self._splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self.pane = TreePane(theme, self._splitter)
        self.tree = self.pane.tree
        self._around = Around(theme, commands, above, self._splitter, spacing=_MARGIN)
        self.banner, self.device_map = self._around.banner, self._around.device_map
        self.pages, self.changed = self._around.pages, self._around.changed
        self._splitter.setHandleWidth(_MARGIN)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.pane)
        self._splitter.addWidget(self.pages)
        self.pages.setMinimumWidth(_LEAST_WIDTH)
        self.changed.setParent(self)
        self.changed.shown.connect(self._place_changed)
        self.first_focus = self.tree  # no focus proxy: Tab would jump to it over all that stands before
        for place, share in enumerate(_SHARES):
            self._splitter.setStretchFactor(place, share)
        self._splitter.setSizes([share * 100 for share in _SHARES])
        margins = (_SIDE, _MARGIN, _SIDE, _MARGIN)
        column(above, (self._splitter, 1), spacing=_MARGIN, margins=margins, within=self)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.WindowActivate:
            self.changed.touched.emit()  # its user may have been at other programs
        return super().event(event)

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        self.pane.show_changes(old, new)
        self._around.show_changes(old, new)

    def forget(self) -> None:
        self.pane.forget()
        self._around.forget()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_changed()

    def _place_changed(self) -> None:
        """Put the bar over the lower edge of the contents: what comes and goes moves nothing."""
        size = self.changed.sizeHint()
        width = min(size.width(), self.width() - 2 * _SIDE)
        left, top = (self.width() - width) // 2, self.height() - size.height() - 2 * _MARGIN
        self.changed.setGeometry(QRect(left, top, width, size.height()))
        self.changed.raise_()

    def split_state(self) -> QByteArray:
        return self._splitter.saveState()

    def restore_split(self, state: QByteArray) -> None:
        """Put the splitter where it was."""
        self._splitter.restoreState(state)
