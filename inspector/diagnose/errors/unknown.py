"""What is said of a text that no row knows, in at most 60 words: what was seen, and the file's part in it."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explanation import UNRECOGNIZED, Explanation, read_where
from inspector.diagnose.errors.paste import Pasted, Scene, Step, read_scene
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding
from inspector.units import cut_text, escape_text

_TYPE = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}(?P<name>[A-Za-z_]\w{0,60})(?= ?:| in |$)")
_MOST_NAME = 60
_MOST_TITLE = 80
_MOST_WHERE = 50
_DOING: dict[Step, str] = {
    "load": "while a file was loaded",
    "nested-load": "while a file was loaded",
    "script-load": "while a TorchScript file was loaded",
    "save": "while a file was saved",
    "load-weights": "in load_state_dict",
    "load-optimizer": "while optimizer state was loaded",
    "load-scheduler": "while scheduler state was loaded",
    "optimizer": "in an optimizer's step",
    "scheduler": "in a scheduler's step",
    "scaler": "in the gradient scaler",
    "clip": "while gradients were clipped",
    "loss": "in a loss function",
    "forward": "in the forward pass",
    "script": "in TorchScript code",
    "backward": "in the backward pass",
    "data": "while data was read",
    "pin": "while data was pinned",
    "move": "while something was moved or cast",
    "parallel": "in DataParallel",
    "distributed": "in torch.distributed",
    "wrap": "while the model was wrapped",
}
_OF_LOADING = frozenset({"", "load", "nested-load", "script-load"})
_OF_STATE = frozenset({"load-optimizer", "load-scheduler", "optimizer", "scheduler"})
_OF_WEIGHTS = "Of this file only names, shapes, dtypes and devices of its tensors can play a part."
_UNTOUCHED = "This step reads no checkpoint, so the file has probably no part in it."


def unrecognized(
    pasted: Pasted, checkpoint: Checkpoint | None, worst: Finding | None, without: str
) -> Explanation:
    """Say what was seen in an unknown text.

    Args:
        checkpoint: The file, or None.
        without: What is said of the file where there is none.
    """
    raised = pasted.raised[0] if pasted.raised else None
    scene = read_scene(pasted, raised)
    if checkpoint is None or scene.step not in _OF_LOADING:
        worst = None
    return Explanation(
        id=UNRECOGNIZED,
        finding="" if worst is None else worst.id,
        title="This message is not recognized" if pasted.lines else "There is no text",
        quoted="",
        cause=_seen(pasted, scene),
        where=cut_text(read_where(scene), _MOST_WHERE),
        here=without if checkpoint is None else _here(checkpoint, scene.step, worst),
        fits="unknown",
        advice=_wanted(pasted, scene),
        paths=() if worst is None else worst.paths,
        count=0 if worst is None else worst.count,
        fix=None if worst is None else worst.fix,
    )


def _seen(pasted: Pasted, scene: Scene) -> str:
    """Name the error, whose code raised it, and during which step."""
    if not pasted.raised:
        return "No error stands in it."
    raised = pasted.raised[0]
    match = _TYPE.match(raised.text)
    name = escape_text(cut_text(match["name"], _MOST_NAME)) if match is not None else "An error"
    inner = raised.frames[-1] if raised.frames else None
    place = "" if inner is None else f" by {cut_text(inner.package, _MOST_NAME) or 'your code'}"
    doing = _DOING.get(scene.step, "")
    tail = f"{escape_text(place)}{f' {doing}' if doing else ''}"
    return f"Recognized: {name}{f', raised{tail}' if tail else ''}."


def _here(checkpoint: Checkpoint, step: Step, worst: Finding | None) -> str:
    """Say what the file can have to do with an error of a step, and what not."""
    if step in _OF_LOADING:
        if worst is None:
            return "Nothing is known to be wrong with this file."
        return f"Known about this file: {cut_text(worst.title, _MOST_TITLE)}."
    if step in _OF_STATE and not checkpoint.optimizers:
        return "This file holds no optimizer state that could cause it."
    if step in {"save", "data", "pin", "distributed", "wrap"}:
        return _UNTOUCHED
    return "Of this file only its optimizer state can play a part." if step in _OF_STATE else _OF_WEIGHTS


def _wanted(pasted: Pasted, scene: Scene) -> str:
    """Name the lines that are missing from a text."""
    if not pasted.raised:
        return "Paste the whole text, from the first 'Traceback' to the last line, in English."
    if not scene.has_frames:
        return "Paste what stands above it as well, from 'Traceback' on."
    return "Paste what stands above as well: an earlier error is often the cause."
