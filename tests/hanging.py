"""Ends a test that hangs, and shows where; a busy machine is no reason to be red.

pytest's own `faulthandler_timeout` starts a thread for each test and waits for its end, which costs a small
test a fifth of its time, and more where every core is busy. Here one thread is started anew each minute.
The clock decides only when: no result depends on it, and a test has nine minutes at least before it counts as
hanging, as many as a test may take that waits for a child process on a busy machine.
"""

from __future__ import annotations

import faulthandler
import os
import time

import pytest

PATIENCE = 600  # seconds
ROUND = 60


class Hanging:
    """Watches that tests go on."""

    def __init__(self) -> None:
        self._stderr = os.dup(2)  # before pytest captures what goes there
        self._armed = float("-inf")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        if time.monotonic() - self._armed > ROUND:
            self._armed = time.monotonic()
            faulthandler.dump_traceback_later(PATIENCE, exit=True, file=self._stderr)

    @pytest.hookimpl(tryfirst=True)
    def pytest_enter_pdb(self) -> None:
        self.pytest_unconfigure()

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(self) -> None:
        """Wait for who looks at the exception in a debugger, and watch again from the next test on."""
        self.pytest_unconfigure()

    def pytest_unconfigure(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._armed = float("-inf")
