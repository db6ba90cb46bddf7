"""WORKAROUND: PySide6 6.12 loses references to None on Python 3.11 and aborts; pyproject.toml excludes it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CHILD = """
from PySide6.QtWidgets import QApplication, QLabel
application = QApplication([])
label = QLabel()
for _ in range(20_000):
    label.setText("text")
print("alive")
"""


@pytest.mark.wide
def test_qt_survives_many_calls_that_return_nothing() -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    answer = subprocess.run(
        [sys.executable, "-c", CHILD],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (answer.returncode, answer.stdout.strip()) == (0, "alive"), answer.stderr
