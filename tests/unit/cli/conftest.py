from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.resources import demo_path


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl+C is heard, here and in child processes, even where whoever runs the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(demo_path(), tmp_path / "demo.pth"))
