"""Which parts of the window's layout are remembered, and how they come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMainWindow

from inspector.gui.settings import Settings

if TYPE_CHECKING:
    from inspector.gui.workspace.workspace import Workspace


def keep_layout(settings: Settings, window: QMainWindow, workspace: Workspace | None) -> None:
    """Remember the layout of a window that is about to close."""
    settings.keep_layout("window", window.saveGeometry())
    if workspace is not None:
        settings.keep_layout("splitter", workspace.split_state())
        settings.keep_layout("columns", workspace.tree.header().saveState())


def restore_window(settings: Settings, window: QMainWindow) -> None:
    """Give a window its last place and size."""
    state = settings.layout("window")
    if state is not None:
        window.restoreGeometry(state)


def restore_workspace(settings: Settings, workspace: Workspace) -> None:
    """Give splitter and columns their last places."""
    split, columns = settings.layout("splitter"), settings.layout("columns")
    if split is not None:
        workspace.restore_split(split)
    if columns is not None:
        workspace.tree.header().restoreState(columns)
