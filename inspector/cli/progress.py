"""Progress on a terminal: one line on stderr, written over again and taken away at the end."""

from __future__ import annotations

import sys
import time

from inspector.cli.common import bars
from inspector.overriding import override
from inspector.progress import Progress
from inspector.units import format_nbytes

_EVERY_S = 0.2
_CLEAR = "\r\x1b[K"


class TerminalProgress(Progress):
    """Shows itself while it advances, if somebody is looking; its units are bytes."""

    __slots__ = ("_is_shown", "_told")

    def __init__(self, label: str = "") -> None:
        super().__init__(label)
        self._told = time.monotonic()
        self._is_shown = False

    @override
    def advance(self, units: int = 0) -> None:
        """Add finished units, and show how far it is."""
        super().advance(units)
        if self.total and sys.stderr.isatty() and time.monotonic() - self._told >= _EVERY_S:
            if not self._is_shown:
                bars.append(self.clear)
            self._told, self._is_shown = time.monotonic(), True
            share = f"{self.fraction or 0:.0%}, {format_nbytes(self.done)} of {format_nbytes(self.total)}"
            sys.stderr.write(f"{_CLEAR}{self.label}: {share}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away, so that an answer can be written."""
        if self._is_shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._is_shown = False
