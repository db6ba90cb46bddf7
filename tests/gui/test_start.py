"""In which order the window starts: its frame, then what reads files, the tree, and the pages last."""

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
    if window.workspace.pages._built:
        stages.append(["at last", sorted(window.workspace.pages._built)])
        app.quit()
    else:
        QTimer.singleShot(5, look)

import_controller = module._import_controller
module._import_controller = lambda progress: (begun.append(window_is_painted()), import_controller(progress))
begun = []

def window_is_painted():
    return any(one._was_painted for one in program.windows)

program = Program(app, Settings(fresh=True), "light")
painted = Painted()
window = program.open_window(demo=HAS_FILE)
window.painted.connect(lambda: note("frame"))
if not HAS_FILE:
    window.painted.connect(lambda: QTimer.singleShot(200, app.quit))
window._stack.workspace_built.connect(
    lambda: window._stack.built_workspace.tree.viewport().installEventFilter(painted)
)
QTimer.singleShot(60_000, app.quit)
app.exec()
print(json.dumps([begun, stages]))
"""


def stages_of(*, has_file):
    """Return whether the frame was painted before the core was imported, and what was there at each stage."""
    script = f"HAS_FILE = {has_file}\n{STAGES}"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    begun, stages = json.loads(done.stdout)
    return begun, stages


@pytest.mark.wide
def test_what_reads_a_file_is_imported_beside_the_frame_and_the_tree_is_painted_before_the_pages():
    begun, (frame, *stages) = stages_of(has_file=True)
    assert begun == [False]
    assert frame[0] == "frame"
    assert not {"numpy", "pyqtgraph"} & {*frame[1]}
    assert stages == [
        ["tree", ["inspector.model.build", "inspector.session.controller"]],
        ["pages", []],
        ["at last", ["memory"]],
    ]


@pytest.mark.wide
def test_the_frame_without_a_file_is_painted_before_the_core_is_imported():
    begun, stages = stages_of(has_file=False)
    assert begun == [True]
    assert [stage for stage, _ in stages] == ["frame"]
