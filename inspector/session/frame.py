"""What is known of a screen at once: all of it without a file, and the tree of one that was just opened.

This is on the way to the first paint of the tree, so it imports nothing that judges a file.
"""

from __future__ import annotations

from pathlib import PurePath

from inspector.records import replace
from inspector.report.words.formats import nothing_to_map
from inspector.session.history import edit_texts
from inspector.session.jobs.pythons import pythons_page
from inspector.session.present.export import export_page
from inspector.session.screen import Banner, CheckPage, Screen
from inspector.session.state import OPEN, State
from inspector.session.targets import devices_of, target_of, targets_of
from inspector.session.values.kinds import taken_page
from inspector.units import cut_text, escape_text

# What a checkpoint is called in titles.

_MOST_TITLE = 120
_IN_A_FOLDER, _OF_A_FOLDER = {".metadata", "latest"}, (".index.json", ".distcp")


def shown_name(path: str) -> str:
    """Return what a checkpoint is called: a file that stands for its folder by the name of that."""
    place = PurePath(path)
    folder = place.parent.name
    stands = place.name in _IN_A_FOLDER or place.name.endswith(_OF_A_FOLDER)
    return cut_text(escape_text(folder if stands and folder else place.name), _MOST_TITLE)


PROGRAM = "Checkpoint Inspector"
_CHECKING = "Checking what loading this file does\u2026"
_UNJUDGED = Banner(
    tone="neutral",
    verdict=_CHECKING,
    aside="",
    headline=_CHECKING,
    advice="",
    error_text=None,
)
"""In place of a verdict, as long as there is none."""


def frame_of(state: State) -> Screen:
    """Return the screen of a state without a document; `compose` fills in the rest."""
    title = PROGRAM if state.phase == "empty" else f"{shown_name(state.path)} - {PROGRAM}"
    opening = state.job(OPEN)
    return Screen(
        phase=state.phase,
        title=title,
        path=state.path,
        stamp=None,
        on_disk=None,
        parts=(),
        jobs=state.jobs,
        progress=None if opening is None else opening.progress,
        failure=state.failure,
        banner=None,
        safety=None,
        targets=targets_of(state),
        target=state.target,
        devices=devices_of(state),
        wanted=target_of(state).wanted or "",
        tree=None,
        query=state.query,
        matches=None,
        selected=state.selected,
        device_map=(),
        no_map="",
        branches=(),
        charts=(),
        forecast=None,
        tensor=(),
        findings=(),
        error_text=state.error_text,
        explanation=None,
        doctor=(),
        code=None,
        file=(),
        check=CheckPage(),
        export=export_page(state),
        status=(),
        recent=state.recent,
        edits=edit_texts(state),
        log=state.log,
        profiles=state.profiles,
        can_export=False,
        can_undo=False,
        python=state.python,
        pythons=pythons_page(state),
        taken=taken_page(state),
    )


def tree_screen(state: State) -> Screen:
    """Return the screen of a file of which nothing but its rows is known; the rest follows.

    It claims nothing: no verdict, no map, and nothing to export or to copy.
    """
    document = state.ready
    if document is None:
        return frame_of(state)
    return replace(
        frame_of(state),
        is_checking=True,
        stamp=document.checkpoint.stamp,
        on_disk=state.on_disk,
        parts=tuple(part.path for part in document.checkpoint.parts),
        banner=_UNJUDGED,
        tree=document.tree,
        row_marks=document.tree.marks,
        no_map=nothing_to_map(document.checkpoint),
    )
