"""Progress on a terminal: a bar on stderr for work that takes longer than a moment."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from inspector.cli.common import bars
from inspector.overriding import override
from inspector.progress import Progress

if TYPE_CHECKING:
    from inspector.cli.terminal.bar import Bar

_AFTER_S = 0.5
"""What is done sooner shows no bar."""
_EVERY_S = 0.1


class TerminalProgress(Progress):
    """Shows itself while it advances, if somebody is looking and it takes long."""

    __slots__ = ("_bar", "_color", "_due")

    def __init__(self, color: str = "auto") -> None:
        super().__init__()
        self._color = color
        self._bar: Bar | None = None
        self._due = time.monotonic() + _AFTER_S

    @override
    def advance(self, units: int = 0) -> None:
        """Add finished units, and show how far it is."""
        super().advance(units)
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _EVERY_S
            self._show()

    def _show(self) -> None:
        if self._bar is None:
            if not sys.stderr.isatty():
                return  # a pager has the terminal
            from inspector.cli.terminal.bar import Bar

            self._bar = Bar(sys.stderr, self._color)
            bars.append(self._hide)
        self._bar.show(self)

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.hide()
            self._bar = None
