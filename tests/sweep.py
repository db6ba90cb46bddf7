"""How much the tests try that try many things: a share of them, or with `SWEEP=1` (`make sweep`) all.

Each case that once found something is a test of its own and runs always. What varies is how many more are
tried at random, and how many of the genuine files are put through everything, which takes minutes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

IS_SWEEP = bool(os.environ.get("SWEEP"))


def tries(usual: int, sweep: int) -> int:
    """Return how many examples a test tries."""
    return sweep if IS_SWEEP else usual


def put_through(
    check: Callable[[Any], object], cases: Iterable[Any], name: Callable[[Any], str] = str
) -> None:
    """Put every case through one check, then fail with all that went wrong, each under its case's name."""
    failures = []
    for case in cases:
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - told below
            failures.append(f"--- {name(case)}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)
