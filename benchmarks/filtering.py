"""From a key to the filtered tree: `filtering.py FILE QUERY...`, with how long the window stood still.

Types each query into the search field of a window with the file, and waits until the tree shows its rows.
Prints a line of JSON for each: seconds from the last key to the filtered tree (with the pause in which
the field waits for more keys), the longest time between two beats of the main thread, and how many matched.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable

from window_gaps import TIMEOUT_S, Beats, open_window, wait

from inspector.gui.main_window import MainWindow


def type_query(window: MainWindow, query: str) -> dict[str, object]:
    """Type a query; return what it took until the tree showed its matches."""
    line = window.search.focusProxy()
    line.clear()
    window.search.flush()
    _wait_until(lambda: window.shown.query == "" and window.shown.matches is None)
    beats, started = Beats(count=False), time.perf_counter()
    line.setText(query)
    _wait_until(lambda: window.shown.query == query and window.shown.matches is not None)
    seconds = time.perf_counter() - started
    wait(0.3)
    beats.stop()
    return {
        "query": query,
        "matches": len(window.shown.matches),
        "seconds": round(seconds, 3),
        "longest_gap_ms": round(beats.longest_s * 1000, 1),
    }


def _wait_until(done: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + TIMEOUT_S
    while not done() and time.perf_counter() < deadline:
        wait(0.005)


def main() -> None:
    """Open the file, and type query by query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", metavar="FILE")
    parser.add_argument("queries", nargs="+", metavar="QUERY")
    options = parser.parse_args()
    program, window = open_window()
    window.open_paths([options.path])
    _wait_until(lambda: window.shown.phase not in {"opening", "empty"} and window.shown.path == options.path)
    wait(1.0)
    for query in options.queries:
        sys.stdout.write(json.dumps(type_query(window, query)) + "\n")
        sys.stdout.flush()
    program.deleteLater()


if __name__ == "__main__":
    main()
    os._exit(0)
