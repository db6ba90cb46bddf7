"""Measures the program against its goals: `python benchmarks/run.py [--only show,remap] [--big] [--update]`.

Prints a Markdown table; `--update` puts it into docs/benchmarks.md. Ratios are given rather than seconds,
which say more of a machine than of a program.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from measure import put, table_in
from tasks import MEGABYTE, TASKS, Bench, Row

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
COLUMNS = ("What", "Compared with", "Ratio", "Goal", "Peak memory", "Goal", "")
HEAD = f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}"


def main() -> None:
    """Measure and print."""
    options = parse()
    with tempfile.TemporaryDirectory(dir=options.workdir, prefix="benchmark-") as folder:
        bench = Bench(folder=Path(folder), runs=options.runs, big=options.big, matching=options.matching)
        print(HEAD, flush=True)
        for name in options.only:
            for row in TASKS[name](bench):
                line = format_row(row)
                print(line, flush=True)
                if options.update:  # at once: whoever stops halfway keeps what was measured
                    update(line)
                if options.verbose:
                    print(f"    {row.ours}\n    {row.theirs}", flush=True)


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(TASKS), metavar="TASK,...")
    parser.add_argument("--big", action="store_true", help="files of 10 GB too; takes 25 GB on the disk")
    parser.add_argument("--matching", default="", metavar="TEXT", help="of the task remap, these files only")
    parser.add_argument("--runs", type=int, default=5, help="how often each command counts (default: 5)")
    parser.add_argument("--workdir", type=Path, help="where files are made (default: the temporary folder)")
    parser.add_argument("--update", action="store_true", help="put the figures into docs/benchmarks.md")
    parser.add_argument("--verbose", action="store_true", help="print seconds and bytes as well")
    options = parser.parse_args()
    if unknown := set(options.only) - set(TASKS):
        parser.error(f"no task: {', '.join(sorted(unknown))}; there are {', '.join(TASKS)}")
    return options


def format_row(row: Row) -> str:
    """Return a row of the table."""
    goal = memory_goal = mark = ""
    if row.most_ratio is not None:
        grace = f" + {row.grace_seconds:g} s" if row.grace_seconds else ""
        goal = f"≤ {format_ratio(row.most_ratio)}{grace}"
        mark = "met" if row.is_met else "**missed**"
    if row.most_nbytes is not None:
        memory_goal = f"< {row.most_nbytes // MEGABYTE} MB"
    memory = f"{row.ours.nbytes / MEGABYTE:.0f} MB"
    cells = (row.what, row.against, format_ratios(row.ratios), goal, memory, memory_goal, mark)
    return f"| {' | '.join(cells)} |"


def format_ratios(ratios: list[float]) -> str:
    """Return the middle one, and in brackets the middle half where that is not the same."""
    middle = format_ratio(statistics.median(ratios))
    if len(ratios) < 4:
        return middle
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return middle if high / low < 1.05 else f"{middle} ({format_ratio(low)} to {format_ratio(high)})"


def format_ratio(ratio: float) -> str:
    """Return a ratio as people say it: 1/17, 1.04×."""
    return f"1/{1 / ratio:.3g}" if ratio < 0.5 else f"{ratio:.2f}×"


def update(row: str) -> None:
    """Put a row into the document, in the place of an older one of the same comparison."""
    kept = {key(line): line for line in table_in(DOCUMENT, "figures")[2:]} | {key(row): row}
    put(DOCUMENT, "figures", "\n".join([HEAD, *kept.values()]))


def key(line: str) -> str:
    """Return what names a comparison: the first two cells."""
    return "|".join(line.split("|")[1:3])


if __name__ == "__main__":
    main()
