"""The pages as tabs; each is built when it is first looked at, and fed only what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QSize, QTimer
from PySide6.QtGui import QFont, QFontMetrics, QPaintEvent
from PySide6.QtWidgets import QTabBar, QTabWidget, QVBoxLayout, QWidget

from inspector.gui.pages import registry
from inspector.gui.tasks import Turns
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import NO_MARGINS, column
from inspector.gui.widgets.labels import blocked, named
from inspector.overriding import override
from inspector.report.tree import Tree

if TYPE_CHECKING:
    from inspector.gui.commands import Commands
    from inspector.gui.pages.registry import PageOfParts, Panel
    from inspector.session.screen import Screen


class _SteadyTabBar(QTabBar):
    """Tabs as wide as their bold titles, so that none moves when another is chosen."""

    @override
    def tabSizeHint(self, index: int) -> QSize:
        hint = super().tabSizeHint(index)
        if index != self.currentIndex():
            bold = self.font()
            bold.setWeight(QFont.Weight.DemiBold)
            text = self.tabText(index)
            more = QFontMetrics(bold).horizontalAdvance(text) - self.fontMetrics().horizontalAdvance(text)
            hint.setWidth(hint.width() + more)
        return hint


class PageTabs(QTabWidget):
    """Shows the pages of the table."""

    def __init__(self, theme: Theme, commands: Commands, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Pages")
        self._theme = theme
        self._commands = commands
        self._pages = registry.PAGES
        self._screen: Screen | None = None
        self._built: dict[str, QWidget] = {}
        self._holders: list[QVBoxLayout] = []
        self._fed: dict[str, tuple[object, ...]] = {}
        self._wanted_parts: dict[str, str] = {}
        self.setTabBar(_SteadyTabBar(self))
        self.setDocumentMode(False)
        self.tabBar().setDrawBase(False)
        self.tabBar().setUsesScrollButtons(True)
        self.tabBar().setExpanding(False)  # or what is left over goes to other tabs with each choice
        keys = registry.page_keys(self._pages)
        for place, page in enumerate(self._pages):
            holder = named(QWidget(), spoken=page.title)
            self._holders.append(column(margins=NO_MARGINS, within=holder))
            self.addTab(holder, page.title)
            self.setTabToolTip(place, f"{page.title} ({keys[place]})" if keys[place] else page.title)
        self._turns = Turns(self)
        self.currentChanged.connect(self._on_turned)
        self._hide_others(self.currentIndex())

    def show_screen(self, screen: Screen) -> None:
        """Show a screen on the current page; the others wait until they are looked at."""
        for place, page in enumerate(self._pages):
            count = page.count(screen)
            text = f"{page.title}  {count}" if count else page.title
            if text != self.tabText(place):  # which lays the tabs out again
                self.setTabText(place, text)
        if screen.is_checking:  # of a file that was just opened: there is nothing to show on a page yet
            return
        self._screen = screen
        if screen.shown_page and screen.shown_page != self.current_id:
            with blocked(self):  # a page that suits the verdict is none that the user chose
                self._turn_to(screen.shown_page)
            if self._built:  # else it is made after the tree is painted
                self._begin_current()
        if self._built and not self._turns.is_busy:
            self._feed_current()
        self.update()

    @override
    def paintEvent(self, arg__1: QPaintEvent) -> None:
        super().paintEvent(arg__1)
        if self._screen is not None and not self._built and not self._turns.is_busy:
            QTimer.singleShot(0, self, self._begin_current)  # after the tree, which is painted with this

    def forget(self) -> None:
        """Release the file that was shown; the pages are built anew for the next."""
        self._turns.stop()
        self._screen = None
        self._fed.clear()
        for widget in self._built.values():
            widget.blockSignals(True)  # a timer of it may still be running
            widget.hide()  # and stays where it is until then: to move it would restyle all that is in it
            widget.deleteLater()
        self._built.clear()

    def open_page(self, page_id: str) -> None:
        """Turn to a page, or to the part of one that was a page before, as the user does."""
        page_id, part = registry.PARTS.get(page_id, (page_id, ""))
        if part:
            self._wanted_parts[page_id] = part
            self._show_part(page_id)
        self._turn_to(page_id)
        self._choose(self.current_id)

    @property
    def current_id(self) -> str:
        return self._pages[self.currentIndex()].id

    @property
    def is_busy(self) -> bool:
        return self._turns.is_busy

    def page(self, page_id: str) -> QWidget | None:
        """Return the widget of a page, if it was ever looked at."""
        page_id, _ = registry.PARTS.get(page_id, (page_id, ""))
        if page_id == self.current_id:
            self._turns.stop()
            self._feed_current()
        return self._built.get(page_id)

    def _turn_to(self, page_id: str) -> None:
        places = {page.id: place for place, page in enumerate(self._pages)}
        self.setCurrentIndex(places.get(page_id, 0))
        self._hide_others(self.currentIndex())

    def _on_turned(self, place: int) -> None:
        self._hide_others(place)
        self._choose(self._pages[place].id)
        self._begin(place)

    def _choose(self, page_id: str) -> None:
        if self._commands.session is not None:
            self._commands.session.turn_to(page_id)

    def _hide_others(self, current: int) -> None:
        """Show the tab of a page that stands behind something else only while that page is shown."""
        for place, page in enumerate(self._pages):
            if page.is_behind:
                self.setTabVisible(place, place == current)

    def _begin_current(self) -> None:
        self._begin(self.currentIndex())

    def _begin(self, place: int) -> None:
        """Show a page; one that was never looked at is made in several turns of the event loop."""
        self._turns.begin(self._steps(place))

    def _steps(self, place: int) -> Iterator[None]:
        page = self._pages[place]
        if self._screen is not None and page.id not in self._built:
            import_module(page.module)
            yield
            self._build(place)
            yield
        fed = None
        while fed is not self._screen:  # a page that asks for something may have it while it is fed
            fed = self._screen
            self._feed(place)

    def _feed_current(self) -> None:
        self._feed(self.currentIndex())

    def _feed(self, place: int) -> None:
        page, widget = self._pages[place], self._build(place)
        if self._screen is None or widget is None:
            return
        values = tuple(getattr(self._screen, field) for field in page.reads)
        if page.id in self._fed and _are_same(self._fed[page.id], values):
            return
        self._fed[page.id] = values
        cast("Panel", widget).show_screen(self._screen)

    def _build(self, place: int) -> QWidget | None:
        """Return the widget of a page, made if need be; None without a file."""
        page, session = self._pages[place], self._commands.session
        if page.id not in self._built and self._screen is not None and session is not None:
            widget = self._built[page.id] = page.build(self._theme, self._commands, session)
            self._holders[place].addWidget(widget)
            self._show_part(page.id)
        return self._built.get(page.id)

    def _show_part(self, page_id: str) -> None:
        """Show the part of a page that was asked for, as soon as there is one."""
        if page_id in self._built and page_id in self._wanted_parts:
            cast("PageOfParts", self._built[page_id]).show_part(self._wanted_parts.pop(page_id))


def _are_same(old: tuple[object, ...], new: tuple[object, ...]) -> bool:
    """Compare what a page was fed; trees by identity: two files may have equal rows."""
    return len(old) == len(new) and all(
        one is other if isinstance(other, Tree) else one == other for one, other in zip(old, new, strict=True)
    )
