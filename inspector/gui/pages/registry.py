"""The table of the pages on the right: a page that is listed here has its tab, its menu entry and its key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from PySide6.QtWidgets import QWidget

from inspector.records import dataclass

if TYPE_CHECKING:
    from inspector.gui.commands import Commands
    from inspector.gui.pages.memory.map_panel import MapPart
    from inspector.gui.theme.theme import Theme
    from inspector.session.controller import Session
    from inspector.session.screen import Screen


class Panel(Protocol):
    """The widget of a page."""

    def show_screen(self, screen: Screen) -> None:
        """Show the page's part of a screen."""


class PageOfParts(Panel, Protocol):
    """A page that has what was a page of its own in earlier versions."""

    def show_part(self, part: str) -> None:
        """Show one of its parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the window.

    Attributes:
        text: Its label, with the letter that selects it in the menu.
        reads: The fields of the screen that it shows; it is fed when one of them changes. `tree` stands for
            the file: rows of two files may be equal, and their links and colors are not.
        build: Make its widget and connect it; called when the page is first looked at.
        key: Its key; empty for the next of Ctrl+1 to Ctrl+9.
        is_behind: Whether it has no tab until what stands for it is clicked, such as the file's name.
        old_keys: Keys of earlier versions for what is on it now.
    """

    id: str
    text: str
    icon: str
    reads: tuple[str, ...]
    module: str
    build: Callable[[Theme, Commands, Session], QWidget]
    count: Callable[[Screen], int] = lambda _: 0
    key: str = ""
    is_behind: bool = False
    old_keys: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.text.replace("&", "")


# A page is imported when it is built: the window is painted before.


def _build_overview(theme: Theme, _: Commands, session: Session) -> QWidget:
    from inspector.gui.pages.overview import OverviewPanel

    panel = OverviewPanel(theme)
    panel.query_wanted.connect(session.search)
    return panel


def _build_memory(theme: Theme, _: Commands, session: Session) -> QWidget:
    from inspector.gui.pages.memory.panel import MemoryPanel

    panel = MemoryPanel(theme, partial(_build_map, theme, session))
    panel.map_wanted.connect(session.look_at_map)
    panel.bars.loading_chosen.connect(session.set_loading)
    panel.bars.query_wanted.connect(session.search)
    return panel


def _build_map(theme: Theme, session: Session) -> MapPart:
    from inspector.gui.pages.memory.map_panel import MapPart

    part = MapPart(theme)
    part.coloring_wanted.connect(session.color_map)
    part.root_wanted.connect(session.show_map)
    part.node_chosen.connect(session.select)
    part.query_wanted.connect(session.search)
    return part


def _build_tensor(theme: Theme, commands: Commands, session: Session) -> QWidget:
    from inspector.gui.pages.tensor.panel import TensorPanel

    panel = TensorPanel(theme)
    panel.watched.connect(session.watch_values)
    panel.save_wanted.connect(commands.on_save_tensor)
    panel.save_cancelled.connect(session.stop_saving)
    panel.code_wanted.connect(commands.on_copy_tensor_code)
    commands.tensor_code_copied.connect(panel.confirm_copied)
    panel.summary.compute_wanted.connect(session.compute_values)
    panel.summary.cancel_wanted.connect(session.stop_values)
    panel.summary.rank_wanted.connect(session.rank_values)
    panel.summary.scan.scan_wanted.connect(session.scan_values)
    panel.summary.scan.cancel_wanted.connect(session.stop_scan)
    panel.summary.scan.node_chosen.connect(session.select)
    panel.elements.slice_wanted.connect(session.choose_slice)
    panel.elements.cells_wanted.connect(session.look_at_cells)
    return panel


def _build_findings(theme: Theme, commands: Commands, session: Session) -> QWidget:
    from inspector.gui.pages.findings import FindingsPanel

    panel = FindingsPanel(theme)
    panel.node_wanted.connect(session.select)
    panel.query_wanted.connect(session.search)
    panel.fix_wanted.connect(commands.on_fix_wanted)
    panel.open_wanted.connect(commands.on_path_wanted)
    panel.error_pasted.connect(commands.on_error_pasted)
    commands.error_wanted.connect(panel.begin_error)
    return panel


def _build_code(theme: Theme, commands: Commands, session: Session) -> QWidget:
    from inspector.gui.pages.code import CodePanel

    panel = CodePanel(theme)
    panel.style_chosen.connect(session.set_code_style)
    panel.copy_wanted.connect(commands.on_copy_code)
    commands.code_copied.connect(panel.confirm_copied)
    return panel


def _build_file(theme: Theme, commands: Commands, session: Session) -> QWidget:
    from inspector.gui.pages.facts import FilePanel

    panel = FilePanel(theme)
    panel.check_wanted.connect(commands.on_check)
    panel.check_cancelled.connect(partial(session.stop_job, "check"))
    return panel


PAGES = (
    Page(
        id="overview",
        module="inspector.gui.pages.overview",
        text="&Overview",
        icon="overview",
        reads=("overview", "query", "tree"),
        build=_build_overview,
    ),
    Page(
        id="memory",
        module="inspector.gui.pages.memory.panel",
        text="&Memory",
        icon="memory",
        reads=(
            *("charts", "forecast", "device_map", "marks"),
            *("module_map", "selected", "matches", "query", "tree"),
        ),
        build=_build_memory,
    ),
    Page(
        id="tensor",
        module="inspector.gui.pages.tensor.panel",
        text="&Tensor",
        icon="tensor",
        reads=("tensor", "values", "tree"),
        build=_build_tensor,
        old_keys=("Ctrl+7",),
    ),
    Page(
        id="findings",
        module="inspector.gui.pages.findings",
        text="F&indings",
        icon="findings",
        reads=("findings", "explanation", "error_text", "doctor", "tree"),
        build=_build_findings,
        count=lambda screen: sum(not row.is_note for row in screen.findings),
    ),
    Page(
        id="code",
        module="inspector.gui.pages.code",
        text="&Code",
        icon="code",
        reads=("code",),
        build=_build_code,
    ),
    Page(
        id="file",
        module="inspector.gui.pages.facts",
        text="&File",
        icon="file",
        reads=("file", "check", "tree"),
        build=_build_file,
        key="Ctrl+I",
        old_keys=("Ctrl+6",),
        is_behind=True,
    ),
)


PARTS = {"map": ("memory", "map"), "values": ("tensor", "values")}
"""Pages of earlier versions: which page has them now, and what its `show_part` calls them."""


def page_keys(pages: tuple[Page, ...]) -> tuple[str, ...]:
    """Return the keys of pages; of those without one of their own, the first nine are numbered."""
    numbers = iter(range(1, 10))
    return tuple(page.key or next((f"Ctrl+{number}" for number in numbers), "") for page in pages)
