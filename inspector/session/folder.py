"""A folder of checkpoints: what is in it, and one after the other what each would do on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from inspector.errors import CancelledError, CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.totals import device_totals
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.report.colors import device_colors, device_names
from inspector.session.present.failure import failure_page
from inspector.session.screen import Tone
from inspector.session.state import FOLDER, PROBE, State
from inspector.target.profile import Profile
from inspector.units import cut_text, escape_text, format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.containers.walking import Found

FolderColumn = Literal["name", "devices", "verdict", "size", "time"]
FOLDER_COLUMNS: dict[FolderColumn, str] = {
    "name": "Name",
    "devices": "Devices",
    "verdict": "On this machine",
    "size": "Size",
    "time": "Modified",
}
MOST_ROWS = 10_000
_MOST_DEVICES = 4
_MOST_CHARS = 300
_BATCH_S = 0.1
"""So often the page is brought up to date while files are read."""
_NONE = "not-a-checkpoint"
_UNREAD = "\u2026"
_RANKS: tuple[Tone, ...] = ("bad", "warning", "good", "neutral")
_COUNTED: dict[Tone, str] = {
    "good": "load here as they are",
    "warning": "with a warning",
    "bad": "do not load here or should not be loaded",
}


class FolderRow(NamedTuple):
    """A checkpoint of a folder.

    Attributes:
        name: Its path in the folder, as it is shown.
        devices: (device, bytes), the largest first; empty as long as it is not read, or cannot be.
        place: Its place in the walk: 2 before 10.
        tone: What becomes of a load on this machine; `neutral` as long as nobody knows.
    """

    path: str
    name: str
    nbytes: int
    modified_s: float
    devices: tuple[tuple[str, int], ...] = ()
    tone: Tone = "neutral"
    verdict: str = _UNREAD
    can_open: bool = True
    place: int = 0

    @property
    def is_read(self) -> bool:
        """Whether all is said that can be said of it."""
        return self.verdict != _UNREAD

    def text(self, column: FolderColumn) -> str:
        """Return what stands in a column."""
        if column == "name":
            return self.name
        if column == "devices":
            return device_names((device for device, _ in self.devices), _MOST_DEVICES)
        if column == "verdict":
            return self.verdict
        if not self.modified_s:
            return ""
        if column == "size":
            return format_nbytes(self.nbytes)
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.modified_s))


_KEYS: dict[FolderColumn, Callable[[FolderRow], Any]] = {
    "name": lambda row: row.place,
    "devices": lambda row: row.text("devices"),
    "verdict": lambda row: (_RANKS.index(row.tone), row.verdict),
    "size": lambda row: row.nbytes,
    "time": lambda row: row.modified_s,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderState:
    """A folder, as far as its checkpoints are read.

    Attributes:
        rows: In the order of the walk.
        judged: How many of them, from the first on, were read.
        stopped: Whether the others are not to be read.
        order: The column that they are sorted by, and whether its largest comes first.
    """

    rows: tuple[FolderRow, ...]
    judged: int = 0
    stopped: bool = False
    order: tuple[FolderColumn, bool] = ("name", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPage:
    """What is shown of a folder.

    Attributes:
        reading: How far reading is, in words; empty where nothing is read.
        done: The part of the rows that is read, from 0 to 1.
    """

    rows: tuple[FolderRow, ...]
    order: tuple[FolderColumn, bool]
    colors: dict[str, int]
    summary: str
    reading: str = ""
    done: float = 1.0


def list_folder(path: str, progress: Progress) -> FolderState | None:
    """Find the checkpoints in a folder; None for what is none, is empty, or is a checkpoint itself."""
    if not os.path.isdir(path):  # noqa: PTH112 - a text that may be no UTF-8
        return None
    from inspector.containers.walking import Found, checkpoints_in, is_one_checkpoint  # noqa: PLC0415 - most are files

    if is_one_checkpoint(path):
        return None
    progress.start("looking for checkpoints")
    found = list(islice(checkpoints_in(path, progress), MOST_ROWS + 1))
    rows = tuple(_row(path, one)._replace(place=place) for place, one in enumerate(found[:MOST_ROWS]))
    if len(found) > MOST_ROWS:
        what = f"more than {MOST_ROWS:,} checkpoints: the others are not listed"
        rows = (*rows, _row(path, Found(path, is_folder=True, problem=what))._replace(place=MOST_ROWS))
    return FolderState(rows=rows) if rows else None


def _row(folder: str, found: Found) -> FolderRow:
    name = found.path.removeprefix(folder).lstrip("/\\") or "(this folder)"
    row = FolderRow(found.path, escape_text(cut_text(name, _MOST_CHARS)), found.nbytes, found.modified_s)
    if not found.problem:
        return row
    return row._replace(tone="bad", verdict=_said(found.problem), can_open=False)


def judge_rows(rows: tuple[FolderRow, ...], target: Profile, progress: Progress) -> tuple[FolderRow, ...]:
    """Read the next few checkpoints, one at least, and say what becomes of each on a machine."""
    ends, found = time.monotonic() + _BATCH_S, []
    for row in rows:
        found.append(row if row.is_read else _judged(row, target, progress))
        if time.monotonic() > ends:
            break
    return tuple(found)


def _judged(row: FolderRow, target: Profile, progress: Progress) -> FolderRow:
    from inspector.diagnose.findings.unreadable import diagnose_failure  # noqa: PLC0415 - with the first folder
    from inspector.diagnose.run import diagnose  # noqa: PLC0415 - as above
    from inspector.session.present.banner import short_verdict  # noqa: PLC0415 - as above
    from inspector.target.simulate import Judged, judge_load  # noqa: PLC0415 - as above

    try:
        checkpoint = open_checkpoint(row.path, progress=progress, beside=True)
    except CancelledError:
        raise
    except CheckpointError as error:
        found = diagnose_failure(error)
        titles = [error.what if one.id == _NONE else one.title for one in found] or [error.what]
        return row._replace(tone="bad", verdict=_said("; ".join(titles)))
    except Exception as error:  # noqa: BLE001 - of one file, which is told, and the others are read
        return row._replace(tone="bad", verdict=_said(failure_page(error, "").what))
    load = judge_load(checkpoint, target)
    findings = diagnose(checkpoint, load.safety, target)
    tone, verdict = short_verdict(Judged(checkpoint=checkpoint, target=target, load=load), findings)
    devices = ((total.device, total.nbytes) for total in device_totals(checkpoint))
    ranked = tuple(sorted(devices, key=lambda item: -item[1]))
    return row._replace(tone=tone, verdict=_said(verdict), devices=ranked)


def _said(text: str) -> str:
    text = escape_text(cut_text(text, _MOST_CHARS))
    return f"{text[:1].upper()}{text[1:]}"


def folder_page(state: State) -> FolderPage | None:
    """Return what is shown of a folder; None without one."""
    folder = state.folder
    if folder is None:
        return None
    rows, (column, descending) = folder.rows, folder.order
    total, reading = len(rows), ""
    if state.job(FOLDER) is not None:
        reading = f"{folder.judged:,} of {total:,} read"
    elif state.job(PROBE) is not None and not folder.stopped:
        reading = "Asking what this machine can load"
    return FolderPage(
        rows=tuple(sorted(rows, key=_KEYS[column], reverse=descending)),
        order=folder.order,
        colors=device_colors(device for row in rows for device, _ in row.devices),
        summary=_summary(rows),
        reading=reading,
        done=folder.judged / max(total, 1),
    )


def _summary(rows: tuple[FolderRow, ...]) -> str:
    files = [row for row in rows if row.can_open]
    size = format_nbytes(sum(row.nbytes for row in files))
    counts = {tone: sum(row.tone == tone for row in files) for tone in _COUNTED}
    told = ", ".join(f"{count:,} {_COUNTED[tone]}" for tone, count in counts.items() if count)
    return f"{format_count(len(files), 'checkpoint')}, {size}{told and f': {told}'}"
