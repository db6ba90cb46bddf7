"""The pages on the right; each is built when it is first looked at, and fed only what it shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from inspector.gui.pages.code import CodePanel
from inspector.gui.pages.findings import FindingsPanel
from inspector.gui.pages.memory import MemoryPanel
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import named
from inspector.gui.widgets.panels import FilePanel, TensorPanel
from inspector.records import dataclass
from inspector.report.tree import Tree
from inspector.session.screen import Screen


class Page(Protocol):
    """What every page can do."""

    def show_screen(self, screen: Screen) -> None:
        """Show the page's part of a screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageKind:
    """A page: its id, its title, the fields of the screen that it reads, and how to make it.

    `tree` stands for the file: rows of two files may be equal, and their links and colors are not.
    """

    id: str
    title: str
    reads: tuple[str, ...]
    build: Callable[[Theme], QWidget]


PAGES = (
    PageKind(
        id="memory", title="Memory", reads=("charts", "forecast", "device_map", "tree"), build=MemoryPanel
    ),
    PageKind(id="tensor", title="Tensor", reads=("tensor", "tree"), build=TensorPanel),
    PageKind(
        id="findings",
        title="Findings",
        reads=("findings", "explanation", "error_text", "doctor", "tree"),
        build=FindingsPanel,
    ),
    PageKind(id="code", title="Code", reads=("code",), build=CodePanel),
    PageKind(id="file", title="File", reads=("file", "check", "tree"), build=FilePanel),
)


class Pages(QTabWidget):
    """The tabs with the pages in them."""

    node_wanted = Signal(int)
    style_chosen = Signal(str)
    copy_code_wanted = Signal()
    fix_wanted = Signal(object)
    error_pasted = Signal(str)
    loading_chosen = Signal(object)
    check_wanted = Signal()
    check_cancelled = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setAccessibleName("Pages")
        self._theme = theme
        self._screen: Screen | None = None
        self._built: dict[str, QWidget] = {}
        self._holders: list[QVBoxLayout] = []
        self._fed: dict[str, tuple[object, ...]] = {}
        self.setDocumentMode(False)
        self.tabBar().setDrawBase(False)
        self.tabBar().setUsesScrollButtons(False)
        for place, kind in enumerate(PAGES, start=1):
            holder = named(QWidget(), spoken=kind.title)
            column = QVBoxLayout(holder)
            column.setContentsMargins(0, 0, 0, 0)
            self._holders.append(column)
            self.addTab(holder, kind.title)
            self.setTabToolTip(place - 1, f"{kind.title} (Ctrl+{place})")
        self.currentChanged.connect(self._on_current_changed)

    def show_screen(self, screen: Screen) -> None:
        """Show a screen on the present page; the others wait until they are looked at."""
        self._screen = screen
        count = len(screen.findings)
        self.setTabText(2, f"Findings  {count}" if count else "Findings")
        self._feed(self.currentIndex())

    def forget(self) -> None:
        """Let go of the file that was shown; its pages are built anew for the next."""
        self._screen = None
        self._fed.clear()
        for widget in self._built.values():
            widget.blockSignals(True)  # a timer of it may still be running
            widget.setParent(None)
            widget.deleteLater()
        self._built.clear()

    def open_page(self, page_id: str) -> None:
        """Turn to a page."""
        self.setCurrentIndex([kind.id for kind in PAGES].index(page_id))

    @property
    def current_id(self) -> str:
        """The id of the present page."""
        return PAGES[self.currentIndex()].id

    def page(self, page_id: str) -> QWidget | None:
        """Give a page's widget, if it was ever looked at."""
        return self._built.get(page_id)

    def begin_error(self) -> None:
        """Turn to the findings and ask for an error message."""
        self.open_page("findings")
        page = self._built.get("findings")
        if isinstance(page, FindingsPanel):
            page.begin_error()

    def confirm_code_copied(self) -> None:
        """Say on the code page that the code is on the clipboard."""
        page = self._built.get("code")
        if isinstance(page, CodePanel):
            page.confirm_copied()

    def _feed(self, place: int) -> None:
        if self._screen is None:
            return
        kind = PAGES[place]
        values = tuple(getattr(self._screen, field) for field in kind.reads)
        if kind.id in self._built and _are_same(self._fed.get(kind.id, ()), values):
            return
        widget = self._built.get(kind.id) or self._build(place)
        cast("Page", widget).show_screen(self._screen)
        self._fed[kind.id] = values

    def _build(self, place: int) -> QWidget:
        kind = PAGES[place]
        widget = self._built[kind.id] = kind.build(self._theme)
        self._holders[place].addWidget(widget)
        if isinstance(widget, FindingsPanel):
            widget.node_wanted.connect(self.node_wanted)
            widget.fix_wanted.connect(self.fix_wanted)
            widget.error_pasted.connect(self.error_pasted)
        if isinstance(widget, MemoryPanel):
            widget.loading_chosen.connect(self.loading_chosen)
        if isinstance(widget, FilePanel):
            widget.check_wanted.connect(self.check_wanted)
            widget.check_cancelled.connect(self.check_cancelled)
        if isinstance(widget, CodePanel):
            widget.style_chosen.connect(self.style_chosen)
            widget.copy_wanted.connect(self.copy_code_wanted)
        return widget

    def _on_current_changed(self, place: int) -> None:
        self._feed(place)


def _are_same(old: tuple[object, ...], new: tuple[object, ...]) -> bool:
    """Compare what a page was fed; trees by identity: two files may have equal rows."""
    return len(old) == len(new) and all(
        one is other if isinstance(other, Tree) else one == other for one, other in zip(old, new, strict=True)
    )
