"""The description of a machine, as the probe writes it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inspector.resources import PROBE, resource_path


@pytest.fixture(scope="module")
def probed() -> dict[str, Any]:
    """What the probe says of a machine."""
    command = [sys.executable, "-S", str(resource_path(PROBE))]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout.splitlines()[-1])


@pytest.fixture
def profile(probed: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "node7.json"
    path.write_text(json.dumps(probed))
    return path
