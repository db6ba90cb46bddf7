"""The Pythons of this machine to choose from: found at once, asked one after the other, and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from inspector.progress import Progress
from inspector.records import dataclass
from inspector.session.state import State
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.pythons import Installed, Python

PYTHONS = "pythons"
"""The kind of the job."""
_MOST = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An interpreter, and what it has; None where it gave no answer."""

    python: Python
    installed: Installed | None


def look_for_pythons(progress: Progress) -> tuple[Found, ...]:
    """Find interpreters and ask each."""
    from inspector.pythons import ask_python, find_pythons  # noqa: PLC0415 - few windows are asked

    pythons = find_pythons()[:_MOST]
    progress.start("asking each Python for its torch", len(pythons), is_counted=True)
    found = []
    for python in pythons:
        found.append(Found(python=python, installed=ask_python(python, progress)))
        progress.advance(1)
    return tuple(found)


def pythons_of(state: State) -> tuple[Found, ...] | None:
    """Return what was found, or None as long as it is looked for."""
    job = state.job(PYTHONS)
    return None if job is None else cast("tuple[Found, ...] | None", job.result)


# --- shown --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonRow:
    """An interpreter to choose."""

    path: str
    title: str
    detail: str
    is_chosen: bool
    is_usable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonsPage:
    """What the dialog shows.

    Attributes:
        rows: The interpreters, those that count most first; empty as long as they are looked for.
    """

    rows: tuple[PythonRow, ...]
    is_looking: bool


def pythons_page(state: State) -> PythonsPage | None:
    """Return the page of the dialog, or None where it is not wanted."""
    if state.job(PYTHONS) is None:
        return None
    found = pythons_of(state)
    chosen = state.this_machine.python if state.this_machine is not None else None
    now = "" if chosen is None else chosen.path
    return PythonsPage(rows=tuple(_row(one, now) for one in found or ()), is_looking=found is None)


def _row(found: Found, now: str) -> PythonRow:
    return PythonRow(
        path=found.python.path,
        title=escape_text(found.python.path),
        detail=f"{found.python.origin} \u00b7 {_has(found.installed)}",
        is_chosen=found.python.path == now,
        is_usable=found.installed is not None,
    )


def _has(installed: Installed | None) -> str:
    if installed is None:
        return "gives no answer"
    if installed.torch is None:
        return f"Python {installed.version}, no torch"
    return f"Python {installed.version}, torch {installed.torch or 'of unknown version'}"
