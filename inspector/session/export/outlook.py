"""What loading comes to once an export is carried out: judged before it by its plan, and after it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from inspector.diagnose.fitting import MAP_DOES_NOT_FIT
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.plan import Plan, with_hidden_moved
from inspector.report.words.verdicts import load_verdict, place
from inspector.target.call import short_message
from inspector.target.profile import Profile
from inspector.target.simulate import Judged, judge_load
from inspector.units import cut_text, escape_text

_MOST_CHARS = 300
_OF_MEMORY = frozenset({"does-not-fit", MAP_DOES_NOT_FIT})


class Outlook(NamedTuple):
    """What becomes of a file on a machine.

    Attributes:
        loads: Whether it simply loads, with nothing to be said against it.
        can_be_tried: Whether torch itself may load it without running anything that is in it.
    """

    loads: bool
    sentence: str
    can_be_tried: bool = False


def planned(checkpoint: Checkpoint, plan: Plan) -> Checkpoint:
    """Return a checkpoint as its copy by a plan will be."""
    tensors, moved = enumerate(checkpoint.tensors), plan.storages
    return replace(
        checkpoint,
        tensors=tuple([row._replace(device=plan.tensors.get(index, row.device)) for index, row in tensors]),
        storages=tuple([row._replace(device=moved.get(row.key, row.device)) for row in checkpoint.storages]),
        hidden_devices=with_hidden_moved(checkpoint.hidden_devices, plan.hidden),
    )


def outlook_of(checkpoint: Checkpoint, target: Profile) -> Outlook:
    """Judge a file as the window does when it is opened."""
    load = judge_load(checkpoint, target)
    findings = diagnose(checkpoint, load.safety, target)
    judged = Judged(checkpoint=checkpoint, target=target, load=load)
    said = load_verdict(judged, findings, place(target))
    damage = next((one for one in findings if one.severity == "error" and one.id not in _OF_MEMORY), None)
    if load.failure is None and damage is not None:
        title = f"{damage.title[:1].lower()}{damage.title[1:]}"
        said = said._replace(does="does not load", why=title, role="bad")
    error = load.last_error or load.failure
    says = "" if error is None else f" {load.loader} says: {short_message(error.message)}"
    text = f"{said.does} on {said.where}: {said.why}.{says}"
    return Outlook(
        loads=said.role == "good",
        sentence=escape_text(cut_text(text, _MOST_CHARS)),
        can_be_tried=load.way == "as-it-is" and load.loader == "torch.load" and not checkpoint.parts,
    )


def outlook_at(path: Path | str, target: Profile, progress: Progress) -> Outlook:
    """Open what was written, and judge it; it stays written whatever comes of that."""
    progress.start("judging what was written")
    try:
        return outlook_of(open_checkpoint(str(path), progress=progress), target)
    except Exception as error:  # noqa: BLE001 - it is told, and not as if nothing had been written
        what = error.what if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
        return Outlook(loads=False, sentence=escape_text(f"was not judged: {what}."))
