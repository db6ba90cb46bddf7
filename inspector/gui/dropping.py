"""Files that are dragged onto a window: what a drop would do is shown while they are over it."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent

from inspector.gui.commands import Frame
from inspector.gui.widgets.path_text import path_of_url
from inspector.overriding import override
from inspector.units import escape_text


class DropFrame(Frame):
    """A window that takes files: it opens them, or with Ctrl held compares them with its own."""

    def show_drop(self, text: str) -> None:
        """Show what a drop would do; an empty text: nothing is over the window any longer."""
        raise NotImplementedError  # `MainWindow` does, see `Frame`

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_paths(event):
            self.dragMoveEvent(event)

    @override
    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        event.setDropAction(Qt.DropAction.CopyAction)  # file managers offer to move, too
        event.accept()
        self.show_drop(self._promise(event))

    @override
    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.show_drop("")

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        paths = _dropped_paths(event)
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        compares = self._asks_to_compare(event)
        self.show_drop("")
        # The source of the drag waits for the end of this event: open afterwards.
        QTimer.singleShot(0, self, lambda: (self.compare_with if compares else self.open_paths)(paths))

    def _asks_to_compare(self, event: QDropEvent) -> bool:
        return bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier) and self.can_compare

    def _promise(self, event: QDropEvent) -> str:
        if not self.can_compare or self.shown is None:
            return "Drop to open"
        if self._asks_to_compare(event):
            return f"Drop to compare with {escape_text(PurePath(self.shown.path).name)}"
        return "Drop to open, or with Ctrl to compare"


def _dropped_paths(event: QDropEvent) -> list[str]:
    if event.source() is not None:  # rows of a window of ours
        return []
    return [path_of_url(url) for url in event.mimeData().urls() if url.isLocalFile()]
