"""What the session needs of a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from inspector.progress import Progress
from inspector.session.screen import FailurePage, Screen

T = TypeVar("T")


class View(Protocol):
    """A window that shows screens; called on the main thread only."""

    def show_screen(self, screen: Screen) -> None:
        """Show a screen."""

    def when_shown(self, act: Callable[[], None]) -> None:
        """Call something once, when the tree of the last screen is painted, so as not to delay that."""

    def show_notice(self, failure: FailurePage) -> None:
        """Report that something could not be done, beside what is shown."""


class TaskRunner(Protocol):
    """Runs work away from the main thread and brings its result back to it."""

    def run(
        self,
        work: Callable[[Progress], T],
        progress: Progress,
        on_done: Callable[[T], None],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Start `work(progress)`; call exactly one of the two callbacks on the main thread."""
