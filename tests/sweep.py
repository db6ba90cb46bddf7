"""How much the tests try that try many things: a share of them, or with `SWEEP=1` (`make sweep`) all.

Each case that once found something is a test of its own and runs always. What varies is how many more are
tried at random, and how many of the genuine files are put through everything, which takes minutes.
"""

from __future__ import annotations

import os

IS_SWEEP = bool(os.environ.get("SWEEP"))


def tries(usual: int, sweep: int) -> int:
    """Return how many examples a test tries."""
    return sweep if IS_SWEEP else usual
