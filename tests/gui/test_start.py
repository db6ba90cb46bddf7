"""In which order the window starts: its frame, what reads files, the tree, a first page without charts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

STAGES = """
import json, sys
from PySide6.QtCore import QEvent, QObject, QTimer
from inspector.gui import app as module
from inspector.gui.app import Program, make_app
from inspector.gui.settings import Settings

HEAVY = ("inspector.model.build", "inspector.session.controller", "numpy", "pyqtgraph")
app = make_app()
stages = []

def note(stage):
    stages.append([stage, [name for name in HEAVY if name in sys.modules]])

class Painted(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and watched.parent().model().rowCount() and len(stages) == 1:
            note("tree")
            pages = window._stack.built_workspace.pages
            stages.append(["pages", sorted(pages._built)])
            QTimer.singleShot(0, look)
        return False

def look():
    pages = window.workspace.pages
    if pages._built and window.is_drawn:
        stages.append(["at last", sorted(pages._built)])
        note("all")
        app.quit()
    else:
        QTimer.singleShot(5, look)

import_controller = module._import_controller
module._import_controller = lambda progress: (note("frame"), import_controller(progress))
program = Program(app, Settings(fresh=True), "light")
painted = Painted()
window = program.open_window(demo=True)
window._stack.workspace_built.connect(
    lambda: window._stack.built_workspace.tree.viewport().installEventFilter(painted)
)
QTimer.singleShot(60_000, app.quit)
app.exec()
print(json.dumps(stages))
"""


@pytest.mark.wide
def test_the_frame_is_painted_before_the_core_and_the_tree_before_pages_and_no_chart_is_drawn():
    command = [sys.executable, "-P", "-c", STAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [
        ["frame", []],
        ["tree", ["inspector.model.build", "inspector.session.controller"]],
        ["pages", []],
        ["at last", ["findings"]],  # the demo does not load without a GPU
        ["all", ["inspector.model.build", "inspector.session.controller"]],
    ]
