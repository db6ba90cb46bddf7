"""Keeps what is there before the first test from the garbage collector.

The tests and what they import are 600,000 objects, all alive: a full collection walks over them for half a
second, whether it comes by itself, in a test of what is let go, or from the program. Frozen objects are not
walked over. A test that thaws them has the program, or itself, look at all of them; behind it they are frozen
again. Whoever counts frozen objects calls `gc.unfreeze()` first.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


class Frozen:
    """Freezes all there is once tests are collected, and again behind each test that has thawed it."""

    def __init__(self) -> None:
        self._unfreeze = gc.unfreeze  # to count what is frozen takes as long as a test
        self._is_frozen = False

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Keep the collector from walking over what is gathered again and again."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.unfreeze = self._thaw
            self._freeze()
            gc.enable()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            if not self._is_frozen:
                self._freeze()

    def pytest_unconfigure(self) -> None:
        gc.unfreeze = self._unfreeze

    def _freeze(self) -> None:
        gc.freeze()
        self._is_frozen = True

    def _thaw(self) -> None:
        self._is_frozen = False
        self._unfreeze()
