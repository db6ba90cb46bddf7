"""The description of a machine, as the probe writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machines import probed


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "node7.json"
    path.write_bytes(probed())
    return path
