"""A record of one piece of long work."""

from __future__ import annotations

from typing import Literal

from inspector.progress import Progress
from inspector.records import dataclass

Status = Literal["running", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of long work; a kind without a job is idle.

    Attributes:
        kind: What it does; a second job of a kind replaces the first.
        about: The file that it is about, and is dropped with; None for what concerns the window.
        progress: How far it is; also tells two jobs of a kind apart.
    """

    kind: str
    about: str | None
    progress: Progress
    status: Status = "running"
    result: object = None
    error: Exception | None = None
