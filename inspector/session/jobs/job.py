"""A record of one piece of long work."""

from __future__ import annotations

from typing import Literal

from inspector.progress import Progress
from inspector.records import dataclass

Status = Literal["running", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of work; while there is none of its kind, that kind is idle.

    Attributes:
        kind: What kind of work it is; a second job of a kind takes the place of the first.
        about: The file that it is about, with which it goes; None for what concerns the window.
        progress: How far it is. It tells jobs of a kind apart.
        status: Whether it runs, or how it ended.
        result: What came of it.
        error: Why nothing came of it.
    """

    kind: str
    about: str | None
    progress: Progress
    status: Status = "running"
    result: object = None
    error: Exception | None = None
