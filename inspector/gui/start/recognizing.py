"""Finds the window that shows a file, without the main thread waiting for a disk.

Two names may lead to one file, which only the file system can tell, and a network path that hangs would hold
all windows up. So a thread asks it; who gets no answer soon opens the file, which can be cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from PySide6.QtCore import QTimer

from inspector.gui.tasks import ThreadRunner
from inspector.gui.widgets.path_text import is_same_file
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.session.screen import Screen

PATIENCE_MS = 500


class Shows(Protocol):
    """A window that shows a file, or none."""

    shown: Screen | None


Window = TypeVar("Window", bound=Shows)
Places = tuple[int | None, ...]
Tell = Callable[[Places], None]


def recognize(paths: Sequence[str], shown: Sequence[str], tell: Tell) -> None:
    """Look up for each path the place of the same file among those that are shown; None where it is not.

    At once where the names say it all, else in a later turn of the event loop, without an answer after
    `PATIENCE_MS`.
    """
    known = {path: place for place, path in reversed(list(enumerate(shown)))}
    places = tuple(map(known.get, paths))
    if not shown or None not in places:
        tell(places)
        return
    _Question(places, tell).ask(tuple(paths), tuple(shown))


def find_windows(
    paths: list[str],
    windows: list[Window],
    asking: Window | None,
    tell: Callable[[list[Window | None]], None],
) -> None:
    """Find the windows, all but one, that show these files, whatever they were called when opened there."""
    shown = [
        (window, window.shown.path)
        for window in windows
        if window is not asking and window.shown is not None and window.shown.phase in {"opening", "ready"}
    ]

    def take(places: Places) -> None:
        found = [None if place is None else shown[place][0] for place in places]
        tell([window if window in windows else None for window in found])

    recognize(paths, [path for _, path in shown], take)


class _Question:
    """Waits for the thread or for the end of the patience, whichever comes first."""

    def __init__(self, places: Places, tell: Tell) -> None:
        self._places = places
        self._tell: Tell | None = tell
        self._runner = ThreadRunner()
        self._progress = Progress()

    def ask(self, paths: tuple[str, ...], shown: tuple[str, ...]) -> None:
        """Ask; refers to itself until there is an answer."""
        self._runner.run(partial(_find, paths, shown), self._progress, self._end, self._fail)
        QTimer.singleShot(PATIENCE_MS, partial(self._end, self._places))

    def _end(self, places: Places) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            self._runner.close()  # holds a thread that hangs until it ends, and no callback
            tell(places)

    def _fail(self, _: Exception) -> None:
        self._end(self._places)


def _find(paths: tuple[str, ...], shown: tuple[str, ...], progress: Progress) -> Places:
    """Return the places; called in a thread."""
    found: list[int | None] = []
    for path in paths:
        progress.advance()
        found.append(next((place for place, other in enumerate(shown) if is_same_file(other, path)), None))
    return tuple(found)
