"""How long the window stands still while a file is opened: `python window_gaps.py FILE [--close]`.

A timer of 1 ms beats on the main thread from the moment the file is opened until the window shows what became
of it; the longest time between two beats is what a user could feel. Prints JSON. With `--close` the window
is closed in the midst of it, and must be gone soon after.
"""

from __future__ import annotations

import json
import os
import sys
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer

from inspector.gui.app import Program, make_app
from inspector.gui.settings import Settings

BEAT_MS = 1
CLOSE_AFTER_S = 0.1
TIMEOUT_S = 60.0


class Beats:
    """Looks at the clock with each beat of the main thread."""

    def __init__(self) -> None:
        """Begin to beat."""
        self.longest_s = 0.0
        self.at_s = 0.0
        self._started = self._last = time.perf_counter()
        self._timer = QTimer(interval=BEAT_MS)
        self._timer.timeout.connect(self._on_beat)
        self._timer.start()

    def _on_beat(self) -> None:
        now = time.perf_counter()
        if now - self._last > self.longest_s:
            self.longest_s, self.at_s = now - self._last, self._last - self._started
        self._last = now


def wait(seconds: float) -> None:
    """Let the window live for a while."""
    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()


def open_file(path: str, *, close: bool) -> dict[str, object]:
    """Open a file in a window that stands already; give how long it stood still, and what it showed then."""
    program = Program(make_app(), Settings(fresh=True), "light")
    window = program.open_window(demo=True)
    while window.shown is None or window.shown.phase != "ready":
        wait(0.05)
    wait(1.0)  # the bars are drawn, and nothing of the start is left
    beats, started = Beats(), time.perf_counter()
    window.open_paths([path])
    if close:
        wait(CLOSE_AFTER_S)
        phase = window.shown.phase
        window.close()
        window = None
        wait(0.2)
    else:
        while window.shown.phase == "opening" and time.perf_counter() - started < TIMEOUT_S:
            wait(0.02)
        phase = window.shown.phase
        wait(0.3)
    return {
        "phase": phase,
        "seconds": round(time.perf_counter() - started, 2),
        "longest_gap_ms": round(beats.longest_s * 1000, 1),
        "gap_at_s": round(beats.at_s, 2),
    }


if __name__ == "__main__":
    answer = open_file(sys.argv[1], close="--close" in sys.argv)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)
