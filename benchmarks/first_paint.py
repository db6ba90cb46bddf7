"""A window from the start of its process to its first paint: `python first_paint.py empty|demo`.

`empty` is the least that PySide6 can show; `demo` is the program with the demo checkpoint in its tree. The
process ends at once after the paint, without tidying up, so that only the way there is measured.
"""

from __future__ import annotations

import os
import sys

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow, QTreeView, QWidget

TIMEOUT_MS = 60_000


class LastPaint(QObject):
    """Ends the process after the first paint of a widget, or of a tree the first with rows."""

    def __init__(self, widget: QWidget, tree: QTreeView | None = None) -> None:
        super().__init__(widget)
        self._tree = tree
        widget.installEventFilter(self)

    # Qt's name; and whatever would be imported to say so, the empty window would have to pay for.
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # type: ignore[explicit-override] # noqa: N802
        """See the paint coming."""
        if event.type() == QEvent.Type.Paint and (self._tree is None or self._tree.model().rowCount() > 0):
            QTimer.singleShot(0, lambda: os._exit(0))
        return super().eventFilter(watched, event)


def show_empty() -> QWidget:
    """Show a window with nothing in it."""
    window = QMainWindow()
    window.resize(1280, 800)
    LastPaint(window)
    window.show()
    return window


def show_demo() -> QWidget:
    """Show the program's window with the demo checkpoint, as `--demo --fresh` does."""
    from inspector.gui.app import Program, make_app  # noqa: PLC0415 - not for the empty window
    from inspector.gui.settings import Settings  # noqa: PLC0415 - as above

    settings = Settings(fresh=True)
    program = Program(make_app(), settings, settings.theme)
    window = program.open_window(demo=True)
    window.tree_made.connect(lambda tree: LastPaint(tree.viewport(), tree))
    return window


if __name__ == "__main__":
    application = QApplication(["first_paint"])
    QTimer.singleShot(TIMEOUT_MS, lambda: os._exit(1))
    shown = {"empty": show_empty, "demo": show_demo}[sys.argv[1]]()
    application.exec()
