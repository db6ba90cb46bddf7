"""The window: shows each `Screen` in its widgets, and passes what the user does on to the session.

It decides nothing. `show_screen` compares the new screen with the last one, and each part updates itself
under blocked signals, so that showing never looks like an action of the user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QPoint, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QPaintEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QMenuBar

from inspector.gui.actions import (
    ACTIONS,
    build_actions,
    build_menus,
    is_usable,
    say_edits,
    toolbar_actions,
)
from inspector.gui.commands import Commands
from inspector.gui.dropping import DropFrame, DropOverlay
from inspector.gui.menus import RecentMenu, ThemeMenu
from inspector.gui.phase_stack import PhaseStack
from inspector.gui.placing import LEAST, first_size, fit
from inspector.gui.settings import Settings
from inspector.gui.theme.icons import retint
from inspector.gui.theme.theme import Theme
from inspector.gui.toolbar import TopBar
from inspector.gui.widgets.dropdown import MapMenu
from inspector.gui.widgets.labels import StatusLine
from inspector.overriding import override
from inspector.session.pasted import is_script_name

RaiseElsewhere = Callable[[list[str], Callable[[], None]], None]
TITLE = "Checkpoint Inspector"
_UNPAINTED_MS = 500
_PATIENCE_MS = 300
"""What is prepared sooner opens a dialog at once, and no other one before it."""

if TYPE_CHECKING:
    from inspector.gui.dialogs.export.dialog import ExportDialog
    from inspector.gui.tree.view import TensorTreeView
    from inspector.gui.workspace.workspace import Workspace
    from inspector.session.controller import Session
    from inspector.session.export.page import ExportPage
    from inspector.session.screen import FailurePage, Screen


class MainWindow(DropFrame):
    """Implements `View`; `attach` connects it to its session."""

    painted = Signal()
    files_wanted = Signal(object)  # a list would lose the bytes of names that are no UTF-8
    closed = Signal()
    tree_made = Signal(object)

    def __init__(self, theme: Theme, settings: Settings) -> None:
        super().__init__()
        self._theme = theme
        self._settings = settings
        self._is_whole = True
        self._export: ExportDialog | None = None
        self._patience = QTimer(self, interval=_PATIENCE_MS, singleShot=True)
        self._patience.timeout.connect(self._show_preparing)
        self._was_painted = False
        self.raise_elsewhere: RaiseElsewhere = lambda _paths, otherwise: otherwise()
        self._early: list[str] = []  # what was dropped before there was a session
        self.setWindowTitle(TITLE)
        self.setAcceptDrops(True)
        area = self.screen().availableGeometry()
        self.setMinimumSize(LEAST)
        self.resize(first_size(area))
        self._commands = Commands(self, theme)
        self._menu_bar = QMenuBar()
        self._menus = build_menus(self)
        self._actions = build_actions(self, self._menus, theme, self._commands)
        self._build_menus()
        self._build_frame()
        self._build_stack()
        theme.changed.connect(self._on_theme_changed)
        self._restore_layout("window", self._restore_place)

    # The parts.

    @property
    def workspace(self) -> Workspace:
        """The tree and the pages; made when they are first asked for."""
        return self._stack.workspace

    @property
    @override
    def tree(self) -> TensorTreeView:
        return self.workspace.tree

    @override
    def compare_selected(self) -> None:
        self._stack.folder_page.compare()

    @property
    def export_dialog(self) -> ExportDialog:
        if self._export is None:
            from inspector.gui.dialogs.export.dialog import ExportDialog

            self._export = ExportDialog(self._theme, self)
            if self.session is not None:
                self._export.connect_to(self.session)
            self._export.open_wanted.connect(self._on_copy_wanted)
        return self._export

    @property
    def actions_by_name(self) -> Mapping[str, QAction]:
        return self._actions

    @property
    def is_drawn(self) -> bool:
        if self.shown is not None and self.shown.is_checking:
            return False
        pages = self.workspace.pages
        return not pages.is_busy and bool(getattr(pages.page(pages.current_id), "is_drawn", True))

    @override
    def menuBar(self) -> QMenuBar:
        """Return the menu bar, which stands in the one line at the top; Qt would make another."""
        return self._menu_bar

    def attach(self, session: Session) -> None:
        self.session = session
        self.top_bar.device_chosen.connect(session.set_wanted)
        self.search.query_changed.connect(session.search)
        self._map_menu.connect_to(session)
        self._stack.retry_wanted.connect(session.reload)
        self._stack.cancel_wanted.connect(session.cancel_opening)
        space = self._stack.built_workspace
        if space is not None:
            self._connect(space, session)
        early, self._early = self._early, []
        for path in early:
            session.open(path)

    def detach(self) -> None:
        """Release the session and all that is shown: the window is closed.

        The garbage collector would not: it never sees what was made before a large file was read.
        """
        session, self.session = self.session, None
        self.shown = None
        if self._stack.built_workspace is not None:
            self._stack.built_workspace.forget()
        if self._export is not None:
            self._export.show_page(None)
        if session is not None:
            session.dispose()

    def prepare(self) -> None:
        if self.shown is None or self.shown.phase == "opening":
            self._stack.prepare()

    # `View`.

    def show_screen(self, screen: Screen) -> None:
        """Show a screen; only what differs from the last one is updated."""
        old = self.shown if self._is_whole else None
        self.shown, self._is_whole = screen, False  # after an exception everything is shown anew
        self.setWindowTitle(screen.title or TITLE)
        self._stack.show_changes(old, screen)
        self.top_bar.show_changes(old, screen)
        if screen.phase == "ready":
            self._show_ready(old if old is not None and old.phase == "ready" else None, screen)
        if old is not None and old.profiles != screen.profiles:
            self._settings.keep_profiles(screen.profiles)
        if old is None or old.recent != screen.recent:
            self._show_recent(old, screen)
        if old is not None and old.python != screen.python:
            self._settings.keep_python(screen.python)
        if old is None or old.status != screen.status:
            self._status.show_status(screen.status)
        for action in ACTIONS:
            self._actions[action.id].setEnabled(is_usable(action, screen))
        say_edits(self._actions, screen)
        self._map_menu.show_choices(screen.map_choices, screen.no_map)
        self._map_menu.setEnabled(screen.phase == "ready" and not screen.is_checking)
        self._status.undo.setVisible(self._actions["undo"].isEnabled())
        self._show_export(screen.export)
        self._commands.show_pythons(screen.pythons)
        self._is_whole = True

    @override
    def show_page(self, page: str, *, at_once: bool = False) -> None:
        self.workspace.pages.open_page(page)
        if at_once:
            self.workspace.pages.page(page)

    def when_shown(self, act: Callable[[], None]) -> None:
        """Call something once, when the tree is painted."""
        self.workspace.pane.painted.call(act)

    def show_notice(self, failure: FailurePage) -> None:
        from inspector.gui.widgets.controls import show_notice

        show_notice(self, failure)

    # Files from outside.

    @override
    def open_paths(self, paths: list[str]) -> None:
        scripts = [path for path in paths if is_script_name(path)]
        files = [path for path in paths if path not in scripts]
        here = [*files[:1], *scripts[:1]]
        if self.session is None:
            self._early += here
        elif files:
            self.raise_elsewhere(here, partial(self._open_here, here))
        else:
            self._open_here(here)
        if files[1:]:
            self.files_wanted.emit(files[1:])

    def _open_here(self, paths: list[str]) -> None:
        for path in paths:
            if self.session is not None:  # or the window was closed while its disk was asked
                self.session.open(path)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._stack.take_focus()
        # A window on another virtual desktop is not painted, and must open its file all the same.
        QTimer.singleShot(_UNPAINTED_MS, self, self._tell_painted)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._was_painted:
            QTimer.singleShot(0, self, self._tell_painted)

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        self._settings.keep_layout("window", self.saveGeometry())
        space = self._stack.built_workspace
        if space is not None:
            self._settings.keep_layout("splitter", space.split_state())
            self._settings.keep_layout("tree_columns", space.tree.columns.state())
        event.accept()
        self.closed.emit()

    # Building.

    def _build_menus(self) -> None:
        self._recent = RecentMenu(self)
        self._recent.path_wanted.connect(self._on_path_wanted)
        self._menus["&File"].insertMenu(self._actions["demo"], self._recent)
        self._map_menu = MapMenu(self)
        self._menus["&Edit"].insertMenu(self._actions["copy_rows"], self._map_menu)
        self._theme_menu = ThemeMenu(self, self._theme, self._settings)
        self._menus["&View"].addSeparator()
        self._menus["&View"].addMenu(self._theme_menu)

    def _build_frame(self) -> None:
        self.top_bar = TopBar(self._theme, self._menu_bar, toolbar_actions(self._actions), self)
        self.setMenuWidget(self.top_bar)
        self.top_bar.target_chosen.connect(self._commands.on_target_wanted)
        self.search = self.top_bar.search
        self.search.step_wanted.connect(self._commands.on_step_wanted)
        self.search.only_toggled.connect(self._on_only_toggled)
        self.search.left.connect(self._commands.on_search_left)
        self._status = StatusLine(partial(self._commands.on_page, "file"), "About this file (Ctrl+I)")
        self._status.undo.clicked.connect(self._actions["undo"].trigger)
        self.setStatusBar(self._status)

    def _build_stack(self) -> None:
        commands = self._commands
        self._stack = PhaseStack(self._theme, commands)
        self._stack.open_wanted.connect(commands.on_open)
        self._stack.demo_wanted.connect(self._actions["demo"].trigger)
        self._stack.path_wanted.connect(self._on_path_wanted)
        self._stack.folder_built.connect(self._on_folder_built)
        self._stack.workspace_built.connect(self._on_workspace_built)
        self.setCentralWidget(self._stack)
        self._overlay = DropOverlay(self._theme, self)

    # Showing.

    @override
    def show_drop(self, text: str) -> None:
        self._stack.show_hot(hot=bool(text))
        self._overlay.cover(self._stack, "" if self._stack.is_empty_page else text)

    def _show_ready(self, old: Screen | None, new: Screen) -> None:
        self.workspace.pane.show_found(old, new, only=self.search.only)
        self.search.show_screen(new)

    def _show_recent(self, old: Screen | None, new: Screen) -> None:
        self._recent.show_recent(new.recent)
        self._settings.keep_recent(new.recent)
        if old is not None and len(new.recent) < len(old.recent):  # not pushed out by others: removed
            for path in set(old.recent) - set(new.recent):
                self._settings.drop_recent(path)

    def _show_export(self, page: ExportPage | None) -> None:
        is_begun = page is not None and (page.stage != "looking" or page.draft is not None)
        if page is not None and (is_begun or (self._export is not None and self._export.isVisible())):
            self._patience.stop()
            self.export_dialog.show_page(page)
        elif page is not None:
            self._patience.start()
        else:
            self._patience.stop()
            if self._export is not None:
                self._export.show_page(None)

    def _show_preparing(self) -> None:
        if self.shown is not None and self.shown.export is not None:
            self.export_dialog.show_page(self.shown.export)

    def _tell_painted(self) -> None:
        if not self._was_painted:
            self._was_painted = True
            self.painted.emit()

    # What needs no session.

    def _on_path_wanted(self, path: str) -> None:
        self.open_paths([path])

    def _on_copy_wanted(self, path: str) -> None:
        self.files_wanted.emit([path])

    def _on_only_toggled(self, only: bool) -> None:  # noqa: FBT001  # Qt passes it by position
        if self.shown is not None and self.shown.matches is not None:
            self.workspace.pane.show_found(None, self.shown, only=only)

    def _on_tree_menu(self, place: QPoint) -> None:
        from inspector.gui.menus import build_tree_menu

        tree = self.tree
        menu = build_tree_menu(self._actions, self._theme, tree, self._commands)
        menu.popup(tree.viewport().mapToGlobal(place))

    def _on_theme_changed(self) -> None:
        self._settings.keep_zoom(self._theme.zoom)
        retint(self, self._theme.tokens)

    def _on_folder_built(self) -> None:
        page, session = self._stack.folder_page, self.session
        page.files_wanted.connect(self.files_wanted)
        page.comparison_wanted.connect(self.comparison_wanted)
        page.series_wanted.connect(self.series_wanted)
        if session is not None:
            page.sort_wanted.connect(lambda column, down: session.sort_folder(column, descending=down))
            page.stop_wanted.connect(session.stop_folder)

    def _on_workspace_built(self) -> None:
        space, session = self._stack.workspace, self.session
        self.tree_made.emit(space.tree)
        space.tree.menu_wanted.connect(self._on_tree_menu)
        space.pane.connect_commands(self._commands)
        space.banner.export_wanted.connect(self._actions["export"].trigger)
        space.banner.copy_code_wanted.connect(self._commands.on_copy_code)
        space.banner.why_wanted.connect(self._commands.on_why_wanted)
        self._commands.code_copied.connect(space.banner.confirm_code_copied)
        if session is not None:
            self._connect(space, session)
        self._restore_layout("splitter", space.restore_split)
        self._restore_layout("tree_columns", space.tree.columns.restore)

    @staticmethod
    def _connect(space: Workspace, session: Session) -> None:
        """Connect the workspace to the session, whichever of them came first."""
        space.pane.connect_to(session)
        device_map, changed = space.device_map, space.changed
        device_map.mapping_chosen.connect(session.set_mapping)
        device_map.menu.connect_to(session)
        device_map.branch_removed.connect(session.remove_branch)
        space.banner.this_machine_wanted.connect(session.set_target)
        changed.touched.connect(session.look_at_file)
        changed.reload_wanted.connect(session.reload)

    def _restore_place(self, state: QByteArray) -> None:
        self.restoreGeometry(state)
        if not self.isMaximized() and not self.isFullScreen():
            self.setGeometry(fit(self.geometry(), self.screen().availableGeometry()))

    def _restore_layout(self, part: str, restore: Callable[[QByteArray], object]) -> None:
        state = self._settings.layout(part)
        if state is not None:
            restore(state)
