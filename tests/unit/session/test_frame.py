from __future__ import annotations

import subprocess
import sys

from inspector.session.frame import frame_of, tree_screen
from inspector.session.state import State
from tests.unit.session.documents import saved_on

IMPORTED = """
import sys
import inspector.session.controller
from inspector.progress import Progress
from inspector.resources import demo_path
from inspector.session.document import open_document
from inspector.session.frame import tree_screen
from inspector.session.state import State
document = open_document(str(demo_path()), Progress())
assert tree_screen(State(phase="ready", document=document)).tree is document.tree
print("\\n".join(sorted(name for name in sys.modules if name.startswith("inspector"))))
"""
MOST = 171
"""Half of what judging a file needs besides; each module costs half a millisecond of the start."""
AFTER = (
    "diagnose",
    "doctor",
    "desktop",
    "rescue",
    "safety.verdict",
    "snippet",
    "diff",
    "values",
    "pythons",
    "child",
)


def test_the_tree_is_reached_without_what_judges_a_file() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", IMPORTED], capture_output=True, text=True, check=True)
    found = done.stdout.split()
    late = tuple(f"inspector.{name}" for name in AFTER)
    assert [name for name in found if name.startswith(late)] == []
    assert len(found) <= MOST, found


def test_a_screen_with_the_tree_alone_claims_nothing() -> None:
    document = saved_on("cuda:0", names=("os.system",), path="/a.pth")
    state = State(phase="ready", path="/a.pth", document=document, selected=1)
    screen = tree_screen(state)
    assert (screen.is_checking, screen.selected, screen.title) == (True, 1, "a.pth - Checkpoint Inspector")
    assert screen.tree is document.tree
    assert (screen.safety, screen.code, screen.can_export, screen.device_map) == (None, None, False, ())
    assert (screen.banner.tone, screen.banner.error_text, screen.banner.advice) == ("neutral", None, "")
    assert screen.awaits_map
    assert not frame_of(state).awaits_map
    values = State(phase="ready", path="/v.pth", document=saved_on())
    assert not tree_screen(values).awaits_map  # where no device is, there is no map
    assert tree_screen(State()) == frame_of(State())
    assert not frame_of(State()).is_checking
