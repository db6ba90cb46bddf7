"""What the functions of the library take: a path or an open checkpoint, a map and a machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from inspector.library.opened import Opened
from inspector.progress import Progress
from inspector.remap.rules import Rule, parse_rule
from inspector.target.profile import Profile
from inspector.target.profile_file import probe_this_machine
from inspector.target.wish import Wish
from inspector.units import cut_text, escape_text

if TYPE_CHECKING:
    from inspector.library.checkpoint import Checkpoint

Path = str | os.PathLike[str]
"""The path of a file or folder."""
CheckpointLike: TypeAlias = "Path | Checkpoint"
"""A path, or an open checkpoint."""
Map = str | Sequence[str] | Mapping[str, str]
"""Rules: `"cuda:*=cpu"`, several of them in a list, or `{"cuda:*": "cpu"}`; the first match counts."""

_MOST_CHARS = 120
_BY_PLACE = ("path:", "role:", "dtype:")


def path_of(source: CheckpointLike) -> str:
    """Return the path of a checkpoint that is to be read again; absolute where it is open already."""
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    return source._opened.file  # noqa: SLF001 - one library


def opened_of(source: CheckpointLike, progress: Progress | None = None) -> Opened:
    """Return what is known of a checkpoint; a path is opened.

    Raises:
        CheckpointError: It cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        return Opened(os.fsdecode(source), progress)
    return source._opened  # noqa: SLF001 - the same


def rules_of(given: Map) -> tuple[Rule, ...]:
    """Read a map.

    Raises:
        PlanError: A rule is malformed, or torch would refuse its destination.
    """
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping):
        given = [f"{what}{'@' if what.startswith(_BY_PLACE) else '='}{to}" for what, to in given.items()]
    return tuple(parse_rule(text) for text in given)


def texts_of(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return one text or several as several."""
    return (given,) if isinstance(given, str) else tuple(given)


def shown(text: str) -> str:
    """Return a text from a file for one line: cut, in quotes, with nothing invisible in it."""
    return f"'{escape_text(cut_text(text, _MOST_CHARS))}'"


def machine_of(wish: Wish, python: Path | None, progress: Progress | None = None) -> Profile:
    """Return the machine that is wished for; this one is asked in the Python that runs, if none is named.

    Raises:
        PlanError: The machine lacks what is wanted, or there is no such Python.
        CheckpointError: torch gave no answer about this machine.
    """
    named = sys.executable or None if python is None else os.fsdecode(python)
    return wish.profile(lambda: probe_this_machine(progress or Progress(), named))
