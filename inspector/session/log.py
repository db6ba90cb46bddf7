"""What the program did in one window, in words: for its owner, and for who helps them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from inspector.records import dataclass, replace
from inspector.units import cut_text, escape_text, format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.session.state import State

MOST_LINES = 500
_MOST_CHARS = 300
LogKind = Literal["done", "warning", "error"]
_NAMED = {"check": "The check of every byte", "scan": "The scan of all tensors"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One thing that was done.

    Attributes:
        at: When, in seconds since 1970.
        text: What it was; escaped.
    """

    at: float
    kind: LogKind
    text: str


def with_log(old: State, new: State) -> State:
    """Return a state with what was done since another noted in it."""
    told = (*_opening(old, new), *_map(old, new), *_export(old, new), *_jobs(old, new))
    if not told:
        return new
    at = time.time()
    lines = (LogLine(at=at, kind=kind, text=cut_text(text, _MOST_CHARS)) for kind, text in told)
    return replace(new, log=(*old.log, *lines)[-MOST_LINES:])


def _opening(old: State, new: State) -> Iterator[tuple[LogKind, str]]:
    name = escape_text(PurePath(new.path).name)
    if new.phase == "opening" and old.phase != "opening":
        yield "done", f"Opening {name}"
    document = new.ready
    if document is not None and document is not old.document:
        rows = document.checkpoint
        amount = f"{format_count(len(rows.tensors), 'tensor')}, {format_nbytes(rows.file_nbytes)}"
        yield "done", f"Opened {name}: {rows.format}, {amount}, in {document.open_seconds:.2f} s"
        for note in rows.notes:
            if note.sentence:
                yield "done", note.sentence
    if new.failure is not None and new.failure is not old.failure:
        yield "error", f"{new.failure.title}: {new.failure.what}"
    if new.phase == "empty" and old.phase != "empty":
        yield "done", "Closed the file"


def _map(old: State, new: State) -> Iterator[tuple[LogKind, str]]:
    if len(new.undone) > len(old.undone):
        yield "done", f"Undone: {new.undone[-1].text}"
    elif new.edits and new.edits[-1:] != old.edits[-1:]:
        yield "done", f"Done: {new.edits[-1].text}"
    if new.target != old.target:
        yield "done", f"Target: {escape_text(new.target)}"


def _export(old: State, new: State) -> Iterator[tuple[LogKind, str]]:
    before, after = old.export, new.export
    if after is None:
        return
    if after.outcome is not None:
        result = after.outcome.result
        known = None if before is None or before.outcome is None else before.outcome.result
        if known is None:
            yield "done", f"{result.title}: {escape_text(PurePath(result.destination).name)}"
        else:  # a receipt, or what torch made of it
            yield from (("done", line) for line in result.lines if line not in known.lines)
        told = () if known is None else (*known.omissions, *known.warnings)
        for line in (*result.omissions, *result.warnings):
            if line not in told:
                yield "warning", line
    failure = after.failure
    if failure is not None and (before is None or before.failure is not failure):
        yield ("done" if after.cancelled else "error"), f"{failure.title}: {failure.what}"


def _jobs(old: State, new: State) -> Iterator[tuple[LogKind, str]]:
    ended = {job.kind: job.status for job in old.jobs}
    for job in new.jobs:
        if job.kind in _NAMED and job.status != "running" and ended.get(job.kind) == "running":
            why = f": {escape_text(str(job.error))}" if job.status == "failed" else ""
            yield ("error" if why else "done"), f"{_NAMED[job.kind]}: {job.status}{why}"
