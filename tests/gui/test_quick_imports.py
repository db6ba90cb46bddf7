from __future__ import annotations

import subprocess
import sys

from inspector.gui.quick_imports import leave_sources_unread

COUNT_READS = """
import inspect, sys
import PySide6.QtCore
from inspector.gui.quick_imports import leave_sources_unread
reads = []
read = inspect.getsource
inspect.getsource = lambda module: reads.append(module) or read(module)
import wave
before = len(reads)
assert leave_sources_unread()
import inspector.units, colorsys
print(before, len(reads) - before)
"""


def test_no_source_is_read_twice():
    done = subprocess.run(
        [sys.executable, "-P", "-c", COUNT_READS], capture_output=True, text=True, check=True
    )
    before, after = map(int, done.stdout.split())
    assert before > 0  # or there is nothing to be gained any more
    assert after == 0


def test_another_pyside_is_left_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "shibokensupport.feature", None)
    assert not leave_sources_unread()
