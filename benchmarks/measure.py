"""Whole processes, measured in turns: wall clock by this process, peak memory by the kernel (`wait4`).

Two commands alternate, so that a slow minute of the machine hits both. Before each run the output of the
last one is removed and the disk has come to rest.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from inspector.records import dataclass

# An installed program has its bytecode; so shall ours, after the round that warms up.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # getrusage(2): bytes there, kilobytes elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What several runs of a command took: medians of clock and processor, and the peak."""

    seconds: float
    cpu_seconds: float
    nbytes: int
    turns: tuple[float, ...] = ()


def put(document: Path, mark: str, text: str) -> None:
    """Put a table into a document, between the two comments that begin with a word."""
    before, rest = document.read_text(encoding="utf-8").split(f"<!-- {mark}: ")
    begin, after = rest.split("-->", 1)[0], rest.split(f"<!-- end of {mark} -->")[1]
    whole = f"{before}<!-- {mark}: {begin}-->\n\n{text}\n\n<!-- end of {mark} -->{after}"
    document.write_text(whole, encoding="utf-8")


def table_in(document: Path, mark: str) -> list[str]:
    """Return the lines of the table that stands there."""
    rest = document.read_text(encoding="utf-8").split(f"<!-- {mark}: ")[1]
    return rest.split("-->", 1)[1].split(f"<!-- end of {mark} -->")[0].strip().splitlines()


def compare(
    commands: Sequence[Sequence[str]], *, runs: int, out: Path | None = None, rotate: bool = False
) -> list[Figures]:
    """Run commands in turns, several times each, after one run that warms the caches up.

    What they write to `out` is removed before each run. With `rotate` each turn begins with the next command:
    what follows a large one finds the disk busy.
    """
    taken: list[list[Figures]] = [[] for _ in commands]
    for turn in range(runs + 1):
        for place in range(len(commands)):
            number = (place + turn * rotate) % len(commands)
            command, figures = commands[number], taken[number]
            if out is not None:
                out.unlink(missing_ok=True)
                os.sync()
            figure = run(command)
            if turn > 0:
                figures.append(figure)
    return [summarise(figures) for figures in taken]


def summarise(figures: Sequence[Figures]) -> Figures:
    """Return the median times, and the highest peak."""
    return Figures(
        seconds=statistics.median(each.seconds for each in figures),
        cpu_seconds=statistics.median(each.cpu_seconds for each in figures),
        nbytes=max(each.nbytes for each in figures),
        turns=tuple(each.seconds for each in figures),
    )


def run(command: Sequence[str]) -> Figures:
    """Run a command to its end, which must be a good one."""
    started = time.perf_counter()
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return Figures(
        seconds=seconds, cpu_seconds=usage.ru_utime + usage.ru_stime, nbytes=usage.ru_maxrss * _RSS_UNIT
    )
