"""How long the window stands still while files are opened: `window_gaps.py [--count] [--close] FILE...`.

A timer of 1 ms beats on the main thread from the moment a file is opened until the window shows what became
of it; the longest time between two beats is what a user could feel, and so is each of over 50 ms (a stall).
Prints a line of JSON for each file.

`--count` counts the calls that the main thread makes between two beats instead, which are the same on a busy
machine; counting slows the window down, so the times then say nothing. With `--close` the window is closed in
the midst of the first file, and must be gone soon after.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer

from inspector.gui.app import Program, make_app
from inspector.gui.main_window import MainWindow
from inspector.gui.settings import Settings

BEAT_MS = 1
CLOSE_AFTER_S = 0.1
TIMEOUT_S = 300.0
STALL_S = 0.05
"""A user feels this."""


class Beats:
    """Looks at the clock, and at how many calls were made, with each beat of the main thread."""

    def __init__(self, *, count: bool) -> None:
        """Begin to beat."""
        self.longest_s = 0.0
        self.stalls_s: list[float] = []
        self.busy_s = 0.0
        self.at_s = 0.0
        self.most_calls = 0
        self._calls = 0
        if count:
            sys.setprofile(self._on_call)
        self._started = self._last = time.perf_counter()
        self._worked = time.thread_time()
        self._timer = QTimer(interval=BEAT_MS)
        self._timer.timeout.connect(self._on_beat)
        self._timer.start()

    def stop(self) -> None:
        """Beat no more."""
        sys.setprofile(None)
        self._on_beat()
        self._timer.stop()

    def _on_call(self, _frame: object, event: str, _argument: object) -> None:
        self._calls += event in {"call", "c_call"}

    def _on_beat(self) -> None:
        self.most_calls, self._calls = max(self.most_calls, self._calls), 0
        now, worked = time.perf_counter(), time.thread_time()
        self.busy_s = max(self.busy_s, worked - self._worked)  # the same on a busy machine and on a quiet one
        self._worked = worked
        if now - self._last > STALL_S:
            self.stalls_s.append(now - self._last)
        if now - self._last > self.longest_s:
            self.longest_s, self.at_s = now - self._last, self._last - self._started
        self._last = now


def wait(seconds: float) -> None:
    """Let the window live for a while."""
    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()


def open_window() -> tuple[Program, MainWindow]:
    """Open a window on the demo, and wait until nothing of the start is left."""
    program = Program(make_app(), Settings(fresh=True), "light")
    window = program.open_window(demo=True)
    while window.shown is None or window.shown.phase != "ready" or is_busy(window):
        wait(0.05)
    wait(1.0)  # the bars are drawn
    return program, window


def is_busy(window: MainWindow) -> bool:
    """Return whether the file is still read, or judged."""
    return window.shown.phase == "opening" or window.shown.is_checking


def open_file(window: MainWindow, path: str, *, count: bool) -> dict[str, object]:
    """Open a file in a window that stands already; return how long it stood still and what it showed."""
    beats, started = Beats(count=count), time.perf_counter()
    window.open_paths([path])
    while is_busy(window) and time.perf_counter() - started < TIMEOUT_S:
        wait(0.02)
    wait(0.3)
    beats.stop()
    return {
        "path": path,
        "phase": window.shown.phase,
        "seconds": round(time.perf_counter() - started, 2),
        "longest_gap_ms": round(beats.longest_s * 1000, 1),
        "gap_at_s": round(beats.at_s, 2),
        "stalls": len(beats.stalls_s),
        "median_stall_ms": round(statistics.median(beats.stalls_s or [0.0]) * 1000, 1),
        "stalled_s": round(sum(beats.stalls_s), 2),
        "most_calls": beats.most_calls,
    }


def close_amid(window: MainWindow, path: str) -> dict[str, object]:
    """Close the window while it opens a file; return what it showed then."""
    window.open_paths([path])
    wait(CLOSE_AFTER_S)
    phase = window.shown.phase
    window.close()
    wait(0.2)
    return {"path": path, "phase": phase}


def main() -> None:
    """Open file by file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="FILE")
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--close", action="store_true")
    options = parser.parse_args()
    program, window = open_window()
    for path in options.paths:
        # A window remembers a file by its name; each is as new to it as the first.
        answer = close_amid(window, path) if options.close else open_file(window, path, count=options.count)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        if options.close:
            break
    del window, program


if __name__ == "__main__":
    main()
    os._exit(0)
