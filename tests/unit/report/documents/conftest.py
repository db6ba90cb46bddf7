from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inspector.resources import demo_path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(demo_path(), tmp_path / "demo.pth"))
