"""How long a hand waits for the window: `latency.py rows|bytes|values FILE`.

`rows` opens a file with very many tensors, and scrolls, searches, unfolds, sorts, selects, lists and charts
them. `bytes` opens a large one, scans it and exports a copy. `values` selects its tensor and waits for the
histogram. Prints a line of JSON for each: the seconds until the window shows it, and the longest time between
two beats of the main thread meanwhile, by the clock and of that the main thread's own processor time; and how
many stalls there were (over 50 ms between two beats), how long together, and the median.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from window_gaps import Beats, open_window, wait

from inspector.gui.main_window import MainWindow
from inspector.records import replace
from inspector.report.query import parse_query

TIMEOUT_S = 300.0
SETTLE_S = 0.5
LOOK_S = 0.005
TURNS = 20


class Hand:
    """Does something in a window and waits until that is seen."""

    def __init__(self, window: MainWindow) -> None:
        """Take a window that has come to rest."""
        self.window = window

    def do(self, what: str, act: Callable[[], object], done: Callable[[], bool] | None = None) -> None:
        """Act, wait until it is done and nothing runs any more, and print how long that took."""
        beats, started = Beats(count=False), time.perf_counter()
        act()
        while not (self.is_idle and (done is None or done())):
            if time.perf_counter() - started > TIMEOUT_S:
                raise TimeoutError(what)
            wait(LOOK_S)
        seconds = time.perf_counter() - started
        wait(SETTLE_S)  # what is painted afterwards belongs to it
        beats.stop()
        found = {
            "seconds": round(seconds, 4),
            "gap": round(beats.longest_s, 4),
            "busy": round(beats.busy_s, 4),
            "stalls": len(beats.stalls_s),
            "stalled": round(sum(beats.stalls_s), 4),
            "median": round(statistics.median(beats.stalls_s or [0.0]), 4),
        }
        sys.stdout.write(json.dumps({"what": what, **found}) + "\n")
        sys.stdout.flush()

    @property
    def is_idle(self) -> bool:
        """Whether no job runs."""
        session = self.window.session
        jobs = () if session is None else session._state.jobs  # noqa: SLF001 - no part of a screen needs them all
        return self.window.shown is not None and all(job.status != "running" for job in jobs)

    def open(self, path: str) -> None:
        """Open a file."""
        window = self.window

        def is_shown() -> bool:
            shown = window.shown  # the tree comes first, and the verdict with all the rest
            return shown.path == path and shown.phase == "ready" and bool(shown.file)

        self.do("opening", lambda: window.open_paths([path]), is_shown)

    def scroll(self) -> None:
        """Go down page by page, to the end, and back."""
        bar = self.window.tree.verticalScrollBar()
        for place in (*range(1, TURNS), TURNS, 0):
            bar.setValue(bar.maximum() * place // TURNS)
            wait(0.02)


def hand_failed(window: MainWindow) -> bool:
    """Return whether an export failed."""
    return window.shown.export is not None and window.shown.export.failure is not None


def try_rows(hand: Hand) -> None:
    """Do what is done with many rows."""
    window, tree, actions = hand.window, hand.window.tree, hand.window.actions_by_name
    line = window.search.focusProxy()
    nodes = window.shown.tree.tensor_nodes

    def search(query: str) -> None:
        def found() -> bool:
            shown = window.shown  # the rows of the last search stay until those of this one are found
            searched = "" if shown.search is None else shown.search.query
            return shown.query == query and searched == (parse_query(query) if query else "")

        hand.do(
            f"key to filtered tree ({query})" if query else "ending the search",
            lambda: line.setText(query),
            found,
        )

    hand.do("scrolling", hand.scroll)
    for query in ("1", "weight", "size<1k", ""):
        search(query)
    hand.do("the first click", lambda: tree.setCurrentIndex(tree.model().index_of(nodes[3])))
    hand.do("click to facts", lambda: tree.setCurrentIndex(tree.model().index_of(nodes[7])))
    tree.clearSelection()
    hand.do("unfolding 5,000 rows", actions["expand"].trigger)
    hand.do("scrolling them", hand.scroll)
    for column in (0, 4, -1):
        hand.do(
            f"sorting them by column {column}",
            lambda column=column: tree.header().setSortIndicator(column, tree.header().sortIndicatorOrder()),
        )
    hand.do("selecting them", tree.selectAll)
    hand.do("copying them", actions["copy_rows"].trigger)
    hand.do("listing 100,000 rows", actions["flat"].trigger, lambda: window.shown.flat is not None)
    hand.do("scrolling the list", hand.scroll)
    hand.do("selecting the list", tree.selectAll)
    hand.do("the tree again", actions["flat"].trigger, lambda: window.shown.flat is None)
    for page in ("map", "findings", "code", "tensor"):
        hand.do(f"the page {page}", lambda page=page: window.show_page(page), lambda: window.is_drawn)
    hand.do("the export dialog", actions["export"].trigger, lambda: window.shown.export.draft is not None)
    window.session.end_export()
    hand.do("closing", window.session.close)


def try_bytes(hand: Hand) -> None:
    """Do what reads and writes all bytes."""
    window = hand.window
    hand.do("scanning", window.session.scan_values)
    export, session = window.actions_by_name["export"], window.session

    def offered() -> bool:
        return window.shown.export.draft is not None

    hand.do("the export dialog", export.trigger, offered)
    wish = replace(window.shown.export.draft.wish, kind="safetensors")  # of which a copy keeps the holes
    hand.do("another kind of copy", lambda: session.change_export(wish), offered)
    written = Path(window.shown.export.draft.destination)
    try:
        hand.do("exporting", lambda: session.export(str(written), overwrite=True), written.exists)
    finally:
        written.unlink(missing_ok=True)


def try_values(hand: Hand) -> None:
    """Read one tensor."""
    window, session = hand.window, hand.window.session
    window.show_page("tensor")
    wait(1.0)

    def read() -> None:
        session.select(window.shown.tree.tensor_nodes[0])
        if window.shown.values.progress is None and window.shown.values.statistics is None:
            session.compute_values()  # what is large waits to be asked for

    def seen() -> bool:
        return window.shown.values.statistics is not None

    hand.do("the first histogram", read, seen)
    session.select(None)
    hand.do("the same again", read, seen)


TRIALS = {"rows": try_rows, "bytes": try_bytes, "values": try_values}


def main() -> None:
    """Open the file and do it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trial", choices=TRIALS)
    parser.add_argument("path", metavar="FILE")
    options = parser.parse_args()
    _program, window = open_window()
    hand = Hand(window)
    hand.open(options.path)
    TRIALS[options.trial](hand)


if __name__ == "__main__":
    try:
        main()
    finally:
        sys.stdout.flush()
        code = 1 if sys.exc_info()[0] else 0
        if code:
            sys.excepthook(*sys.exc_info())
        os._exit(code)
