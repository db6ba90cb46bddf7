"""Whether an undo record tells of a change that this program makes, and what the file would be then.

A record lies beside a file and may come from where the file comes from. So nothing of it is trusted: the
file as it would be is read like any other, the change is worked out again from the devices that the record
names, and what would be written must be what the record says, byte for byte. What is given back then differs
from what is there by the devices alone; whatever else is in it was in the file before.
"""

from __future__ import annotations

from typing import get_args

from inspector.containers.collector import collector_paused
from inspector.containers.container import Container
from inspector.containers.formats import find_format
from inspector.containers.source import Source
from inspector.errors import CancelledError, CheckpointError, ExportError, PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.quoting import command, file_word
from inspector.remap.hidden import plan_hidden
from inspector.remap.plan import Plan, device_texts, plan_moves, with_viewed
from inspector.remap.relabel.formats import pieces_of
from inspector.remap.relabel.overlay import Overlay
from inspector.remap.relabel.undo import UndoRecord
from inspector.remap.rules import Rule, check_destination
from inspector.safety.verdict import FileVerdict, judge
from inspector.safety.words import words_of

_VERDICTS: tuple[FileVerdict, ...] = get_args(FileVerdict)  # the best first
_MOST_QUESTIONS = 10_000_000
"""How often a rule may be asked about a device: some seconds."""


def _anyhow(path: str) -> str:
    return f"if you made the change yourself, use: {command('remap', file_word(path), '--undo', '--force')}"


def refuse_foreign(source: Source, record: UndoRecord, progress: Progress) -> None:
    """Refuse a record that would do anything but take a change of devices back.

    Args:
        source: The file.
        record: Its record.
        progress: Told of the stages, asked for cancellation.
    """
    with collector_paused(), Overlay(source, record.before, record.nbytes) as old:
        try:
            container, checkpoint = _read(old, progress)
            plan = with_viewed(_plan_of(record, checkpoint), container.storage_ids.values())
            pieces = pieces_of(container, old, plan, progress)
        except CancelledError:
            raise
        except CheckpointError as error:
            what = f"the undo record is of no change that this program makes: {error.what}"
            raise ExportError(what, where=source.path, remedy=_anyhow(source.path)) from error
    if tuple(sorted(pieces)) != record.after:
        what = "the undo record is of no change that this program makes"
        raise ExportError(what, where=source.path, remedy=_anyhow(source.path))
    del container
    _refuse_worse(source.path, judge(checkpoint).verdict, progress)


def _read(source: Source, progress: Progress) -> tuple[Container, Checkpoint]:
    limits = DEFAULT_LIMITS.started()
    container = find_format(source, limits, progress).reader_for(source)(source, limits, progress)
    return container, build_checkpoint(container, limits, progress)


def _plan_of(record: UndoRecord, checkpoint: Checkpoint) -> Plan:
    """Make the plan that the record notes."""
    count = len(checkpoint.tensors)
    moves: dict[int, str] = {}
    kept: list[int] = []
    last = 0
    for start, end, device in record.runs:
        if not last <= start < end <= count:
            raise PlanError("it moves tensors that are not there")
        last = end
        if device:
            moves |= dict.fromkeys(range(start, end), check_destination(device))
        else:
            kept += range(start, end)
    asked = len(record.rules) * (len(device_texts(checkpoint)) + checkpoint.needs.calls_made)
    if asked > _MOST_QUESTIONS:
        raise PlanError("it has too many rules")
    rules = [Rule(device=device, to=check_destination(to)) for device, to in record.rules]
    plan = plan_moves(checkpoint, rules or [Rule(role="", to="cpu")], moves, kept)
    return plan_hidden(checkpoint, plan, {index: check_destination(to) for index, to in record.hidden})


def _refuse_worse(path: str, will_be: FileVerdict, progress: Progress) -> None:
    """Refuse to make a file worse than it is; what a broken-off change made unreadable harms nobody yet."""
    try:
        now = judge(open_checkpoint(path, progress=progress)).verdict
    except CancelledError:
        raise
    except CheckpointError:
        now = _VERDICTS[0]
    if _VERDICTS.index(will_be) > _VERDICTS.index(now):
        what = f"the undo record gives back a worse file than the present one, {words_of(will_be)}"
        raise ExportError(what, where=path, remedy=_anyhow(path))
