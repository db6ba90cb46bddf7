"""The window goes on living while the worst files are opened, and can be closed in the midst of it.

What a user feels are milliseconds, which `python benchmarks/window_gaps.py FILE` measures. What is counted
here is what the main thread does between two beats of its event loop: a million rows would be as many calls.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import TESTS
from tests.hostile.cases import CASES
from tests.sweep import tries

SCRIPT = TESTS.parent / "benchmarks" / "window_gaps.py"
MOST_CALLS = 30_000  # 19,000 to 21,000 for making the pages; each row of the files would be one more
WORST = (
    "dictionaries a million deep",
    "calls half a million deep",
    "lists of lists that are 2 to the 60 written out",
    "60,000 integers with the same hash as keys",
    "a small size declared for a bomb",
    "a thousand records over the same bytes",
    "a directory that claims a thousand million records",
)


def build(number: int, folder: Path) -> str:
    path = folder / f"worst-{number}.pt"
    path.write_bytes(next(case for case in CASES if case.name == WORST[number]).build())
    return str(path)


def watch(*arguments: str) -> list[dict[str, object]]:
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TESTS.parent, timeout=550, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.wide
def test_the_main_thread_has_little_to_do_whatever_is_opened(tmp_path: Path) -> None:
    numbers = range(0, len(WORST), tries(2, 1))
    answers = watch("--count", *(build(number, tmp_path) for number in numbers))
    assert {answer["phase"] for answer in answers} <= {"ready", "failed"}
    names = (WORST[number] for number in numbers)
    most = dict(zip(names, (answer["most_calls"] for answer in answers), strict=True))
    assert {name: calls for name, calls in most.items() if calls > MOST_CALLS} == {}


@pytest.mark.wide
def test_closing_the_window_in_the_midst_of_it_ends_cleanly(tmp_path: Path) -> None:
    (answer,) = watch("--close", build(WORST.index("60,000 integers with the same hash as keys"), tmp_path))
    assert answer["phase"] in {"opening", "ready", "failed"}
