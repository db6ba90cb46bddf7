from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl+C is heard, here and in child processes, even where whoever runs the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
