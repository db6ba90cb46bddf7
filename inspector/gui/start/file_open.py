"""Files that macOS hands over as events: there a double-click gives the program no arguments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

from inspector.overriding import override

_AGAIN_MS = 20


class Window(Protocol):
    """A window that shows something, or nothing yet."""

    @property
    def shown(self) -> object | None:
        """What it shows."""


class Program(Protocol):
    """What opens files, see `inspector.gui.app`."""

    @property
    def windows(self) -> Sequence[Window]:
        """The open windows."""

    def open_paths(self, paths: list[str]) -> None:
        """Open files, one window each, empty windows first."""


class Application(QApplication):
    """The application object, which is asked to open files that come while it runs, or as it starts.

    A filter of events would see each event of each object; this sees those of the application only.
    """

    paths_wanted = Signal(list)

    @override
    def event(self, event: QEvent) -> bool:
        """Ask for the file of an event; one without a file, such as a link, is left to Qt."""
        if isinstance(event, QFileOpenEvent) and event.url().isLocalFile():
            self.paths_wanted.emit([event.url().toLocalFile()])
            return True
        return bool(super().event(event))


def open_when_shown(program: Program, paths: list[str]) -> None:
    """Open files once every window knows what it shows.

    The event of a start comes before that, and the window of the start, still empty, is the one to take it.
    """
    if any(window.shown is None for window in program.windows):
        QTimer.singleShot(_AGAIN_MS, partial(open_when_shown, program, paths))
    else:
        program.open_paths(paths)
