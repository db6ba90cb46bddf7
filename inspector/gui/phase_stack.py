"""The middle of the window: one page for each phase, made when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from inspector.gui.theme.theme import Theme

if TYPE_CHECKING:
    from inspector.gui.commands import Commands
    from inspector.gui.start.folder import FolderPageWidget
    from inspector.gui.workspace.workspace import Workspace
    from inspector.session.screen import Screen


_SOON_MS = 150


class PhaseStack(QStackedWidget):
    """Shows the page of a screen's phase: empty, opening, a folder, failed, or the workspace."""

    open_wanted = Signal()
    demo_wanted = Signal()
    path_wanted = Signal(object)  # a Signal(str) would lose bytes of names that are not UTF-8
    retry_wanted = Signal()
    cancel_wanted = Signal()
    workspace_built = Signal()
    folder_built = Signal()

    def __init__(self, theme: Theme, commands: Commands) -> None:
        super().__init__()
        self._theme = theme
        self._commands = commands
        self._pages: dict[str, QWidget] = {}
        self._workspace: Workspace | None = None
        self._has_file = False
        self._blank = QWidget()
        self.addWidget(self._blank)
        self._unsaid: Screen | None = None  # that a file is being opened
        self._is_late = False

    @property
    def workspace(self) -> Workspace:
        """The tree and the pages; made when they are first asked for."""
        if self._workspace is None:
            from inspector.gui.workspace.workspace import Workspace

            self._workspace = Workspace(self._theme, self._commands, self)
            self.addWidget(self._workspace)
            self.workspace_built.emit()
        return self._workspace

    @property
    def folder_page(self) -> FolderPageWidget:
        """The page of a folder; made when it is first asked for."""
        return cast("FolderPageWidget", self._page("checkpoints"))

    def prepare(self) -> None:
        """Build the workspace now, since it is needed soon."""
        if self.workspace.isHidden():
            self.workspace.ensurePolished()

    @property
    def built_workspace(self) -> Workspace | None:
        """The workspace, if there was ever a file."""
        return self._workspace

    @property
    def is_empty_page(self) -> bool:
        """Whether the page without a file is shown, which has a drop target of its own."""
        return self.currentWidget() is not None and self.currentWidget() is self._pages.get("empty")

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        """Show a screen on the page of its phase and turn to that page.

        A window that has shown nothing yet waits a moment before it says that a file is opened: most are open
        by then.
        """
        if new.phase == "opening" and self.currentWidget() is self._blank and not self._is_late:
            self._unsaid = new
            QTimer.singleShot(_SOON_MS, self, self._say_opening)
            return
        self._unsaid = None
        page = self._page(new.phase)
        self._feed("opening", new)
        if new.phase in ("failed", "empty", "checkpoints"):
            self._feed(new.phase, new)
        if self._workspace is not None and new.phase != "ready" and self._has_file:
            self._workspace.forget()
        self._has_file = new.phase == "ready"
        if page is self._workspace:
            ready = old if old is not None and old.phase == "ready" else None
            self.workspace.show_changes(ready, new)
        if self.currentWidget() is not page:
            self.setCurrentWidget(page)
            self.take_focus()

    def _say_opening(self) -> None:
        unsaid, self._is_late = self._unsaid, True
        if unsaid is not None:
            self.show_changes(None, unsaid)

    def take_focus(self) -> None:
        page = self.currentWidget()
        if page is not None and page is not self._blank:
            first: QWidget = getattr(page, "first_focus", page)
            first.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_hot(self, *, hot: bool) -> None:
        from inspector.gui.start.empty import EmptyPage

        page = self._pages.get("empty")
        if isinstance(page, EmptyPage):
            page.show_hot(hot=hot)

    def _feed(self, phase: str, screen: Screen) -> None:
        page = self._pages.get(phase)
        if page is not None:
            page.show_screen(screen)  # type: ignore[attr-defined]  # each of them has it

    def _page(self, phase: str) -> QWidget:
        if phase == "ready":
            return self.workspace
        if phase not in self._pages:
            builders = (self._build_empty, self._build_opening, self._build_folder, self._build_failure)
            build = dict(zip(("empty", "opening", "checkpoints", "failed"), builders, strict=True))
            self._pages[phase] = build[phase]()
            self.addWidget(self._pages[phase])
            if phase == "checkpoints":
                self.folder_built.emit()
        return self._pages[phase]

    def _build_empty(self) -> QWidget:
        from inspector.gui.start.empty import EmptyPage

        page = EmptyPage(self._theme)
        page.open_wanted.connect(self.open_wanted)
        page.demo_wanted.connect(self.demo_wanted)
        page.path_wanted.connect(self.path_wanted)
        page.error_pasted.connect(self._commands.on_error_pasted)
        page.fix_wanted.connect(self._commands.on_fix_wanted)
        self._commands.error_wanted.connect(page.begin_error)
        return page

    def _build_opening(self) -> QWidget:
        from inspector.gui.start.failure import OpeningPage

        page = OpeningPage()
        page.cancel_wanted.connect(self.cancel_wanted)
        return page

    def _build_folder(self) -> QWidget:
        from inspector.gui.start.folder import FolderPageWidget

        return FolderPageWidget(self._theme)

    def _build_failure(self) -> QWidget:
        from inspector.gui.start.failure import FailurePageWidget

        page = FailurePageWidget(self._theme)
        page.open_wanted.connect(self.open_wanted)
        page.retry_wanted.connect(self.retry_wanted)
        return page
