"""macOS hands over files as events, which are sent here as it sends them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from inspector.resources import demo_path

SENDS_A_FILE = """
import sys
from PySide6.QtCore import QCoreApplication, QEvent, QTimer, QUrl
from PySide6.QtGui import QFileOpenEvent
from inspector.gui import app as program

app = program.make_app()
app.paths_wanted.connect(lambda paths: print(*paths))

def send():
    for event in (QFileOpenEvent(QUrl("https://example.org/x.pth")), QEvent(QEvent.Type.User)):
        QCoreApplication.sendEvent(app, event)
    QCoreApplication.sendEvent(app, QFileOpenEvent(sys.argv[1]))

def look():
    titles = [window.windowTitle() for window in app.topLevelWidgets() if window.isVisible()]
    if any(title.startswith("demo.pth") for title in titles):
        print(*titles, sep=",")
        app.closeAllWindows()

QTimer.singleShot(0, send)
timer = QTimer()
timer.timeout.connect(look)
timer.start(20)
sys.exit(program.main([], fresh=True))
"""


@pytest.mark.wide
def test_the_first_file_opens_in_the_empty_window_of_the_start() -> None:
    path = str(demo_path())
    command = [sys.executable, "-P", "-c", SENDS_A_FILE, path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines() == [path, "demo.pth - Checkpoint Inspector"]
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
