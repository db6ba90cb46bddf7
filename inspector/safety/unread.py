"""The verdict on a file that cannot be read: what loading it would run, as far as that was seen.

Never better than "unknown": what was not read may do anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from inspector.containers.dcp_metadata import OWN_NAMES
from inspector.containers.notes import NoteKind
from inspector.containers.unread import OPENER
from inspector.errors import CheckpointError
from inspector.model.checkpoint import Checkpoint
from inspector.model.programs.facts import unread_checkpoint
from inspector.pickles.oddities import OddityKind
from inspector.records import dataclass
from inspector.safety.calls import CallRow
from inspector.safety.names import GlobalVerdict
from inspector.safety.verdict import judge
from inspector.units import cut_text, escape_text

UnreadVerdict = Literal["unknown", "runs-code", "dangerous"]

_Rated = tuple[str, int, GlobalVerdict]
_MOST_NAMED = 4
_MOST_CHARS = 80
_DO_NOT = "do not load it with any program"
_ORDER: tuple[GlobalVerdict, ...] = ("dangerous", "unknown", "allowed", "tensor")
# TorchScript's own: they name code in the archive, which its interpreter runs, and no Python.
_SCRIPT = ("__torch__.", "torch.jit._pickle.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """What was seen of the programs of a file that cannot be read.

    Attributes:
        names: The names that they import, each with how often and with its verdict, the worst first.
        calls: What they call besides what makes plain data, the worst first.
        unread: What loading would unpickle and was not read, as clauses.
    """

    verdict: UnreadVerdict
    names: tuple[_Rated, ...]
    calls: tuple[CallRow, ...]
    is_whole: bool
    unread: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What loading does, in plain words; empty where all was seen, and none of it runs code."""
        if self.verdict == "unknown":
            return f"What loading it runs is not known: {self.unread[0]}." if self.unread else ""
        can = "can run commands" if self.verdict == "dangerous" else "runs code"
        rows = [row for row in self.calls if _counts(row)]
        named = dict.fromkeys(cut_text(row.text, _MOST_CHARS) for row in rows) or dict.fromkeys(
            escape_text(name) for name, _, verdict in self.names if verdict == "dangerous"
        )
        listed = ", ".join(list(named)[:_MOST_NAMED]) + (" and more" if len(named) > _MOST_NAMED else "")
        does = "calls" if rows else "imports"
        return f"Loading it {can}: as far as it could be read, it {does} {listed}."


def judge_unread(error: CheckpointError) -> Unread | None:
    """Judge what loading a file would run that could not be read; None where that is known to be nothing."""
    seen = unread_checkpoint(error)
    if seen is None:
        return None
    found = judge(seen)
    rated = zip(seen.globals, found.globals, strict=True)
    names: list[_Rated] = [
        (use.name, use.count, "unknown" if _is_harmless(use.name) else verdict) for use, verdict in rated
    ]
    return Unread(
        verdict=_verdict(seen, names, found.calls),
        names=tuple(sorted(names, key=lambda one: _ORDER.index(one[2]))),
        calls=found.calls,
        is_whole=_is_whole(seen),
        unread=seen.needs.unread,
    )


def advice(error: CheckpointError, seen: Unread | None) -> str:
    """Return what to do about an error: nobody is told to load or to fetch again what can run commands."""
    return _DO_NOT if seen is not None and seen.verdict == "dangerous" else error.remedy or ""


def _verdict(seen: Checkpoint, names: Sequence[_Rated], calls: Sequence[CallRow]) -> UnreadVerdict:
    """Judge by what is called: a text that begins like an import, and breaks off there, runs nothing."""
    is_built = OddityKind.BUILD_ON_NAME in seen.needs.faults
    is_whole = _is_whole(seen)
    if seen.needs.calls_made or is_whole or is_built:
        worst = {name for name, _, verdict in names if verdict == "dangerous"}
        if is_whole:
            worst.discard(OPENER)  # what it opens was read, and its names are among these
        if worst or is_built:
            return "dangerous"
    return "runs-code" if any(map(_counts, calls)) else "unknown"


def _is_whole(seen: Checkpoint) -> bool:
    """Return whether all of its programs were read to their end."""
    return all(note.kind is not NoteKind.BROKEN_OFF for note in seen.notes)


def _counts(row: CallRow) -> bool:
    return row.name != OPENER and not _is_harmless(row.name)


def _is_harmless(name: str) -> bool:
    """Return whether a name is TorchScript's own, or that of a class of `.metadata`, which holds data."""
    return name.startswith(_SCRIPT) or (name in OWN_NAMES and name.startswith("torch."))
