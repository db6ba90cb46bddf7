"""A window from the start of its process to its first paint: `python first_paint.py empty|demo`.

`empty` is the least that PySide6 can show; `demo` is the program with the demo checkpoint in its tree. The
process ends at once after the paint, without tidying up, so that only the way there is measured.
"""

from __future__ import annotations

import os
import sys

if sys.argv[1:] == ["demo"]:
    import inspector.gui  # noqa: F401 - imports PySide as the program does

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow, QTreeView, QWidget

TIMEOUT_MS = 60_000
LOOK_MS = 5


class LastPaint(QObject):
    """Ends the process after the next paint of a widget."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        widget.installEventFilter(self)
        widget.update()

    # Qt's name; and whatever would be imported to say so, the empty window would have to pay for.
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # type: ignore[explicit-override] # noqa: N802
        """See the paint coming."""
        if event.type() == QEvent.Type.Paint:
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
    timer = QTimer(window)

    def look() -> None:
        tree = window.findChild(QTreeView)
        if tree is not None and tree.isVisible() and tree.model() is not None and tree.model().rowCount() > 0:
            timer.stop()
            LastPaint(tree.viewport())

    timer.timeout.connect(look)
    timer.start(LOOK_MS)
    return window


if __name__ == "__main__":
    application = QApplication(["first_paint"])
    QTimer.singleShot(TIMEOUT_MS, lambda: os._exit(1))
    shown = {"empty": show_empty, "demo": show_demo}[sys.argv[1]]()
    application.exec()
