"""What holds the lock of the interpreter while workers work: `lock_holders.py [--least MS] FILE`.

Opens a file as the window does and composes screens of it in a thread, while the main thread asks for the
lock twice in a millisecond. A thread gives it away between two steps of the interpreter; what takes longer is
one call in C, or the end of a large collection. Prints the processor time of each that is longer than
`--least`, which is the same on a busy machine, with the lines that the thread was at afterwards: the culprit
is the line before, or what ended with it. As root it asks with the priority of a clock, and misses none.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from typing import TypeVar

from inspector.gui.tasks import TURN_S, FreezingPause
from inspector.progress import Progress
from inspector.records import replace
from inspector.report.outline.flat import Column, Order
from inspector.session.document import open_document
from inspector.session.present.presenter import _work_out
from inspector.session.state import State

LOOK_S = 0.0005
FRAMES = 5
T = TypeVar("T")


def watched(what: str, work: Callable[[], T], least_s: float) -> T:
    """Do something in a thread; print what held the lock meanwhile, and for how long it worked."""
    found: list[T] = []
    is_seen = Event()

    def in_thread() -> None:
        if hasattr(os, "sched_setscheduler") and os.geteuid() == 0:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        with FreezingPause():
            found.append(work())
        is_seen.wait()  # the clock of a thread ends with it

    thread = Thread(target=in_thread)
    thread.start()
    clock = time.pthread_getcpuclockid(thread.ident or 0)
    last = begun = time.clock_gettime(clock)
    while not found and thread.is_alive():
        time.sleep(LOOK_S)
        now = time.clock_gettime(clock)
        if now - last > least_s:
            sys.stdout.write(f"{(now - last) * 1000:8.1f} ms  {frames_of(thread)}\n")
        last = time.clock_gettime(clock)
    is_seen.set()
    thread.join()
    sys.stdout.write(f"{what}: {last - begun:.2f} s of processor time\n")
    return found[0]


def frames_of(thread: Thread) -> str:
    """Return where a thread is, the innermost line first; read without a step of the interpreter."""
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        blocks = file.read().decode(errors="replace").split("\n\n")
    mine = next((block for block in blocks if f"{thread.ident:#018x}" in block), "")
    lines = re.findall(r'File ".*?([^/"]+/[^/"]+)", line (\S+) in (\S+)', mine)
    return " < ".join(f"{file}:{line} {name}" for file, line, name in lines[:FRAMES])


def main() -> None:
    """Open the file, and ask for the screens that take longest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", metavar="FILE")
    parser.add_argument("--least", type=float, default=20.0, metavar="MS")
    options = parser.parse_args()
    sys.setswitchinterval(TURN_S)
    if hasattr(os, "sched_setscheduler") and os.geteuid() == 0:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    least_s = options.least / 1000
    document = watched("opening", lambda: open_document(options.path, Progress()), least_s)
    state = replace(State(path=options.path), phase="ready", document=document)
    screens = {
        "judging": state,
        "searching": replace(state, query="weight"),
        "listing": replace(state, flat=Order()),
        "sorting the list": replace(state, flat=Order(Column.NAME)),
        "coloring the map": replace(state, map_by="dtype"),
    }
    for what, shown in screens.items():
        watched(what, partial(_work_out, shown, Progress()), least_s)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
