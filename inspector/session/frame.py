"""What is known of a screen at once: all of it without a file, and the tree of one that was just opened.

This is on the way to the first paint of the tree, so it imports nothing that judges a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, cast

from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.report.words.formats import nothing_to_map
from inspector.session.folder import folder_page
from inspector.session.history import edit_texts
from inspector.session.jobs.pythons import pythons_page
from inspector.session.present.export import export_page
from inspector.session.screen import Banner, FindingRow, Screen, SearchPage
from inspector.session.state import ASK, OPEN, SEARCH, State
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


SAME = (
    *("phase", "path", "failure", "target", "query", "selected", "error_text"),
    *("recent", "log", "profiles", "python", "page"),
)
"""What a screen has as the state has it."""


def _title(state: State) -> str:
    return PROGRAM if state.phase == "empty" else f"{shown_name(state.path)} - {PROGRAM}"


def _progress(state: State) -> Progress | None:
    opening = state.job(OPEN)
    return None if opening is None else opening.progress


FRAME: Mapping[str, Callable[[State], object]] = {
    "title": _title,
    "progress": _progress,
    "folder": folder_page,
    "targets": targets_of,
    "devices": devices_of,
    "wanted": lambda state: target_of(state).wanted or "",
    "export": export_page,
    "edits": edit_texts,
    "pythons": pythons_page,
    "taken": taken_page,
}
"""What stands around a document."""


def around(state: State) -> dict[str, Any]:
    """Return the fields of a screen that need no document."""
    same = {name: getattr(state, name) for name in SAME}
    return same | {name: make(state) for name, make in FRAME.items()}


def frame_of(state: State) -> Screen:
    """Return the screen of a state without a document; `compose` fills in the rest."""
    job = state.job(ASK) if state.error_text.strip() else None
    return Screen(**around(state), explanation=None if job is None else cast("FindingRow | None", job.result))


def tree_screen(state: State) -> Screen:
    """Return the screen of a file of which nothing but its rows is known; the rest follows.

    It claims nothing: no verdict, no map, and nothing to export or to copy.
    """
    document, job = state.ready, state.job(SEARCH)
    if document is None:
        return frame_of(state)
    found = None if job is None else cast("Found", job.result)
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
        matches=None if found is None else found.matches,
        search=None if found is None else found.page,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """What a search found in a file that is not judged yet, or looks for."""

    query: str
    matches: tuple[int, ...] | None = None
    page: SearchPage | None = None
