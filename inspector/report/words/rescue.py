"""What `run` says at the end: which line needed another device, where its storages went, what mends it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from inspector.rescue.journal import Call, Journal, Place, Why
from inspector.rescue.mending import Mending, MendingKind, Need
from inspector.units import cut_text, escape_text, format_count, format_nbytes

_MOST_CHARS = 120
_MOST_FILES = 3

NO_HOOK = (
    "no Python that reads PYTHONPATH was started, so no load was mapped; name the Python of the program: "
    "run -- python SCRIPT"
)
NO_TORCH = "the command never imported torch, so there was nothing to map"
UNMAPPED = "no storage was mapped, though the program loads from devices that are not here"
NOTHING = "no load needed another device: the command works without this"
FAILED = "no load needed another device, and the command {ended}: what stopped it is no device of a load"

WHY: dict[Why, str] = {
    "missing": "",
    "target": "by --target",
    "rule": "by --map",
    "no-rule": "not here, and no rule of --map covers it; --target this maps what is missing",
    "no-destination": "what --map names is not here",
    "function": "its map_location asked for a device that is not here",
}
"""What stands behind the devices of a call."""

MENDINGS: dict[MendingKind, str] = {
    "line": "write",
    "argument": "give that call",
    "before": "put before it, once",
    "file": "that code is not yours, so change the file (remap --in-place --undo takes it back)",
}


def format_journal(journal: Journal, needs: tuple[Need, ...], code: int) -> str:
    """Return the report of a run, for stderr; of one that failed it is not said that it works."""
    lines = [_summary(journal, needs, code)]
    for need in needs:
        lines += _need(need)
    lines += [
        f"  the hook failed, and left the load to torch: {escape_text(text)}" for text in journal.failures
    ]
    return "".join(f"{line}\n" for line in lines)


def _summary(journal: Journal, needs: tuple[Need, ...], code: int) -> str:
    if not needs:
        ended = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
        told = FAILED.format(ended=ended) if code else NOTHING
        return NO_HOOK if not journal.processes else told if journal.with_torch else NO_TORCH
    mapped = [move for need in needs for move in need.moves if move.to is not None]
    if not mapped:
        return UNMAPPED
    storages = sum(move.storages for move in mapped)
    were = "storage was" if storages == 1 else "storages were"
    lines = format_count(len(needs), "line")
    processes = f"; {journal.with_torch:,} processes imported torch" if journal.with_torch > 1 else ""
    return f"{storages:,} {were} put on another device, in {lines}{processes}"


def _need(need: Need) -> Iterator[str]:
    yield f"  {_place(need.site)}{_reached(need)}{_files(need.files)}"
    for move in need.moves:
        yield f"      {_move(move)}"
    if need.mending is not None:
        yield from _mending(need.mending)


def _place(place: Place | None) -> str:
    return "in code of Python itself" if place is None else f"{_shown(place.file)}:{place.line}"


def _reached(need: Need) -> str:
    return "" if need.own is None or need.own == need.site else f", called at {_place(need.own)}"


def _shown(path: str) -> str:
    """Return a path as short as it can be: one below the working directory without that."""
    below = path.removeprefix(os.path.join(os.getcwd(), ""))  # noqa: PTH109, PTH118 - of texts, not of files
    return escape_text(cut_text(below, _MOST_CHARS))


def _files(files: tuple[str, ...]) -> str:
    if not files:
        return ""
    more = len(files) - _MOST_FILES
    named = ", ".join(_shown(file) for file in files[:_MOST_FILES])
    return f"  ({named}{f' and {more} more' if more > 0 else ''})"


def _move(move: Call) -> str:
    to = "left as it was" if move.to is None else escape_text(move.to)
    sizes = f", {format_nbytes(move.nbytes)}" if move.nbytes else ""
    why = WHY[move.why]
    reason = f" ({why})" if why else ""
    return f"{escape_text(move.saved)} -> {to}: {format_count(move.storages, 'storage')}{sizes}{reason}"


def _mending(mending: Mending) -> Iterator[str]:
    yield f"      => {MENDINGS[mending.kind]}:"
    for line in mending.code.split("\n"):
        yield f"           {escape_text(line)}"
