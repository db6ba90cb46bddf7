"""Counts work in steps of the interpreter, which are the same on a busy machine and on a quiet one.

A test that looks at a clock is red whenever something else runs. What such a test guards is nearly always the
*order* of the work: a walk within a walk, a row compared with each other row. That shows in steps, and at
sizes that take milliseconds. The seconds themselves are measured in `benchmarks/`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_steps(work: Callable[[], object]) -> int:
    """Return how many lines and calls of Python run in this thread during `work`.

    What a function of C does within counts as one step. The coverage of what runs here is not seen.
    """
    steps = 0

    def trace(_frame: FrameType, _event: str, _argument: object) -> Any:
        nonlocal steps
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def growth(prepare: Callable[[int], Callable[[], object]], small: int, large: int) -> float:
    """Return how the steps grow from a small size to a large one.

    1 is growth in proportion; `large / small` is growth with the square.

    Args:
        prepare: Makes the work for a size; what it does itself is not counted.
        small: How many things there are first.
        large: How many there are then.
    """
    prepare(small)()  # what is done once for all is not counted: imports, caches
    return count_steps(prepare(large)) / count_steps(prepare(small)) * small / large
